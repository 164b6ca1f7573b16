"""The bidirectional language model's objective as a loss of a batch, for `train.make_step` and held-out evaluation.

Each direction predicts the word it reads next with one softmax that both share. In training the softmax may be sampled:
then a step draws its negatives with `draw_for`, once for each direction, and says with `touched_for` which rows of the
large tables it uses, so that nothing else of them is looked at.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.model import DIRECTIONS, Elmo, ElmoOutput
from bert_elmo_jax.losses import draw_negatives, full_softmax, sampled_softmax
from bert_elmo_jax.optim import places, values

Sums = dict[str, tuple[Any, Any]]
Batch = Mapping[str, Any]
Loss = Callable[[Any, Batch, PRNGKeyArray | None, Any], tuple[Sums, Sums, Any]]

INPUT = "encoder/token/embedding"


def elmo_loss(config: ElmoConfig, *, sampled: bool = False, chunk: int = 8192) -> Loss:
    """`loss(params, batch, key, state)` with the terms `forward` and `backward`, and the state after the batch.

    Without a state (None) every row starts from zeros, and None comes back. Without a key there is no dropout. The
    full softmax takes `chunk` words at a time; `sampled` takes the negatives that `draw_for` has put into the batch,
    and its terms are called `forward_sampled` and `backward_sampled`, because no perplexity follows from them.

    >>> import jax, numpy as np
    >>> from bert_elmo_jax.families.elmo.init_params import init_elmo_params
    >>> config = ElmoConfig.preset("toy", input="words", vocab_size=100)
    >>> words, count = np.array([[0, 7, 9]]), np.array([3])
    >>> batch = {"words_forward": words, "words_backward": words[:, ::-1], "lengths": count, "fresh": count > 0}
    >>> batch |= {"forward_targets": words, "forward_weights": words * 0.0 + 1}
    >>> batch |= {"backward_targets": words, "backward_weights": words * 0.0 + 1}
    >>> params = init_elmo_params(config, jax.random.key(0), lm=True)
    >>> terms, _, _ = jax.jit(elmo_loss(config))(params, batch, None, None)
    >>> [float(weight) for _, weight in terms.values()]
    [3.0, 3.0]
    """

    def loss(params: Any, batch: Batch, key: PRNGKeyArray | None, carry: Any) -> tuple[Sums, Sums, Any]:
        batch = jax.tree.map(jnp.asarray, dict(batch))
        output: ElmoOutput = run(config, params, batch, key, carry)
        table, bias = params["encoder"]["token"]["embedding"], params["lm"]["bias"]
        if not config.tie_softmax:
            table = params["lm"]["embedding"]
        terms: Sums = {}
        for direction in DIRECTIONS:
            hidden = getattr(output, direction)
            targets = batch[f"{direction}_targets"].reshape(-1)
            weights = batch[f"{direction}_weights"].reshape(-1)
            hidden = hidden.reshape(-1, hidden.shape[-1])
            if sampled:
                drawn = batch[f"{direction}_negatives"]
                terms[f"{direction}_sampled"] = sampled_softmax(
                    hidden, values(table), values(bias), places(table, targets), places(table, drawn.ids),
                    drawn.expected(targets), drawn.expected(drawn.ids), weights,
                )  # fmt: skip
            else:
                terms[direction] = full_softmax(hidden, values(table), values(bias), targets, weights, chunk)
        return terms, {}, None if carry is None else jax.lax.stop_gradient(output.state)

    return loss


def run(config: ElmoConfig, params: Any, batch: Batch, key: PRNGKeyArray | None, state: Any) -> ElmoOutput:
    """The encoder on a language-model batch; a word table of which only rows were taken is read by their places."""
    given: dict[str, Any] = {"characters": batch.get("characters")}
    forward, backward = batch["words_forward"], batch["words_backward"]
    if config.input == "words":
        table = params["encoder"]["token"]["embedding"]
        given = {"tokens": values(table)[None]}
        forward, backward = places(table, forward), places(table, backward)
    return Elmo(config).apply(  # type: ignore[return-value]
        {"params": params["encoder"]},
        forward,
        batch["lengths"],
        words_backward=backward,
        state=state,
        fresh=None if state is None else batch["fresh"],
        deterministic=key is None,
        rngs={} if key is None else {"dropout": key},
        **given,
    )


def draw_for(config: ElmoConfig, negatives: int) -> Callable[[Batch, PRNGKeyArray], dict[str, Any]]:
    """What a step draws once for all its parts and devices: each direction's negatives."""
    assert config.vocab_size is not None
    words = config.vocab_size

    def draw(batch: Batch, key: PRNGKeyArray) -> dict[str, Any]:
        del batch
        keys = jax.random.split(key, len(DIRECTIONS))
        return {
            f"{direction}_negatives": draw_negatives(keys[n], negatives, words)
            for n, direction in enumerate(DIRECTIONS)
        }

    return draw


def touched_for(config: ElmoConfig) -> Callable[[Batch], dict[str, Int[Array, " K"]]]:
    """Which rows of which tables a step with sampled negatives uses."""

    def touched(batch: Batch) -> dict[str, Int[Array, " K"]]:
        batch = jax.tree.map(jnp.asarray, dict(batch))
        predicted = [batch[f"{direction}_targets"].ravel() for direction in DIRECTIONS]
        predicted += [batch[f"{direction}_negatives"].ids for direction in DIRECTIONS]
        read = [batch[f"words_{direction}"].ravel() for direction in DIRECTIONS] if config.input == "words" else []
        rows = {"lm/bias": predicted}
        if config.tie_softmax:
            rows["lm/bias"] = rows[INPUT] = predicted + read  # of the same places, so that one look-up serves both
        else:
            rows["lm/embedding"] = predicted
            if read:
                rows[INPUT] = read
        return {name: jnp.concatenate(ids) for name, ids in rows.items()}

    return touched
