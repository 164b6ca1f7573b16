"""ELMo's pretraining objective: the next word in each direction, by the full softmax or a sampled one, both shared."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray
from ml_collections import ConfigDict

from bert_elmo_jax.data.rows.stream import LanguageModelExamples
from bert_elmo_jax.families.elmo.model import DIRECTIONS, Elmo, ElmoConfig, ElmoOutput, init_elmo_params, zero_state
from bert_elmo_jax.families.family import Objective, Phase
from bert_elmo_jax.families.piece_objective import count_weights
from bert_elmo_jax.losses import draw_negatives, full_softmax, perplexity, sampled_softmax
from bert_elmo_jax.losses.loss_types import Batch, Loss, Terms
from bert_elmo_jax.nn.dropout import dropout_options
from bert_elmo_jax.optim import places, values

INPUT = "encoder/token/embedding"


def bilm_objective(config: ConfigDict, model: ElmoConfig) -> Objective:
    """Return the bidirectional language model of a run's config."""
    assert model.vocab_size is not None
    predicted = len(DIRECTIONS) * (config.negatives or model.vocab_size) * model.width
    options: dict[str, Any] = {"shared": ("characters",)}
    if config.negatives:
        options |= {"draw": build_draw(model, config.negatives), "touched": build_touched(model)}
    examples = LanguageModelExamples(
        config.reading, config.length, model.input, model.max_characters, max(width for width, _ in model.filters)
    )
    streams = config.reading == "streams"
    if streams and model.reader == "attention":
        raise ValueError('reading="streams" carries a state, which attention has not: set --config.reading=sentences')
    return Objective(
        init=lambda key: init_elmo_params(model, key, lm=True),
        loss=elmo_loss(model, sampled=bool(config.negatives)),
        held_out_loss=elmo_loss(model),
        coefficients={f"{name}_sampled" if config.negatives else name: 0.5 for name in DIRECTIONS},
        phases=(Phase(config.steps, config.batch_size, examples),),
        work=lambda params, length: 6.0 * (count_weights([params["encoder"][name] for name in DIRECTIONS]) + predicted),
        figures=name_figures,
        score="held_out/score",
        width=model.width,
        size=lambda batch: int(batch["lengths"].sum()),
        carry=lambda rows: zero_state(model, rows) if streams else None,
        step=options,
    )


def name_figures(means: Mapping[str, float]) -> dict[str, float]:
    """Return the perplexities by the full softmax; the published figure is the mean of both directions."""
    each = {f"held_out/{direction}_perplexity": perplexity(means[direction], 1) for direction in DIRECTIONS}
    mean = sum(each.values()) / len(each)
    return {**each, "held_out/perplexity": mean, "held_out/score": -mean}


def elmo_loss(config: ElmoConfig, *, sampled: bool = False, chunk: int = 8192) -> Loss:
    """Return `loss(params, batch, key, state)` with the terms `forward` and `backward`, and the state after the batch.

    Without a state, every row starts from zeros, and None is returned. Without a key there is no dropout. The full
    softmax takes `chunk` words at a time. With `sampled`, the negatives are in the batch (`build_draw`), and the terms
    are `forward_sampled` and `backward_sampled`, which give no perplexity.
    """

    def loss(params: Any, batch: Batch, key: PRNGKeyArray | None, carry: Any) -> tuple[Terms, Terms, Any]:
        batch = jax.tree.map(jnp.asarray, dict(batch))
        output: ElmoOutput = run(config, params, batch, key, carry)
        table, bias = params["encoder"]["token"]["embedding"], params["lm"]["bias"]
        if not config.tie_softmax:
            table = params["lm"]["embedding"]
        terms: Terms = {}
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
    """Return the encoder's output for a batch; a word table may hold only the rows that the batch uses."""
    inputs: dict[str, Any] = {"characters": batch.get("characters")}
    forward, backward = batch["words_forward"], batch["words_backward"]
    if config.input == "words":
        table = params["encoder"]["token"]["embedding"]
        inputs = {"tokens": values(table)[None]}
        forward, backward = places(table, forward), places(table, backward)
    return Elmo(config).apply(  # type: ignore[return-value]
        {"params": params["encoder"]},
        forward,
        batch["lengths"],
        words_backward=backward,
        state=state,
        fresh=None if state is None else batch["fresh"],
        **dropout_options(key),
        **inputs,
    )


def build_draw(config: ElmoConfig, negatives: int) -> Callable[[Batch, PRNGKeyArray], dict[str, Any]]:
    """Return the function that draws each direction's negatives, once per step for all devices."""
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


def build_touched(config: ElmoConfig) -> Callable[[Batch], dict[str, Int[Array, " K"]]]:
    """Return the function that names the rows of each table that a step with sampled negatives uses."""

    def touched(batch: Batch) -> dict[str, Int[Array, " K"]]:
        batch = jax.tree.map(jnp.asarray, dict(batch))
        predicted = [batch[f"{direction}_targets"].ravel() for direction in DIRECTIONS]
        predicted += [batch[f"{direction}_negatives"].ids for direction in DIRECTIONS]
        read = [batch[f"words_{direction}"].ravel() for direction in DIRECTIONS] if config.input == "words" else []
        rows = {"lm/bias": predicted}
        if config.tie_softmax:
            rows["lm/bias"] = rows[INPUT] = predicted + read  # the same places, so that one look-up serves both
        else:
            rows["lm/embedding"] = predicted
            if read:
                rows[INPUT] = read
        return {name: jnp.concatenate(ids) for name, ids in rows.items()}

    return touched
