"""The pretraining objective of families that translate: the next piece of the target, given the source."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from ml_collections import ConfigDict

from bert_elmo_jax.data.rows.translation import PairExamples
from bert_elmo_jax.families.family import Objective, Params, Phase
from bert_elmo_jax.families.piece_objective import count_weights
from bert_elmo_jax.losses import Sums, accuracy, cross_entropy, perplexity, smoothed_cross_entropy
from bert_elmo_jax.losses.loss_types import Batch, Loss

# Returns the scores of the piece after each piece of `target_in`; without a key there is no dropout.
Logits = Callable[[Params, Batch, PRNGKeyArray | None], Float[Array, "B U V"]]


def pair_objective(
    config: ConfigDict,
    model: Any,
    *,
    init: Callable[[PRNGKeyArray], Params],
    logits: Logits,
    start: int,
    end: int,
    pad: int,
    packs: bool = True,
    examples: PairExamples | None = None,
    term: str = "translation",
) -> Objective:
    """Return the objective of a run's config for a model with an encoder and a decoder.

    `start`, `end` and `pad` are pieces: the decoder's first, the last of a target, and what fills a row. A model that
    does not keep the pairs of a row apart (`packs=False`) gets one pair per row. Evaluations have no smoothing.
    `examples` replace the translations of the config, and `term` is the name of the loss.
    """
    if config.sequences > 1 and not packs:
        raise ValueError(
            f"config.sequences={config.sequences}: this model does not keep the pairs of a row apart; use sequences=1"
        )
    most = getattr(model, "max_positions", None)
    for name in [name for name in ("length", "target_length") if name in config]:
        if most is not None and config[name] > most:
            raise ValueError(
                f"config.{name}={config[name]}, but the model has {most} positions: lower it, or raise "
                "config.model.max_positions"
            )
    if examples is None:
        examples = PairExamples(
            config.length, config.target_length, start, end, pad, sequences=config.sequences, reverse=config.reverse
        )
    return Objective(
        init=init,
        loss=pair_loss(logits, config.smoothing, term),
        held_out_loss=held_out_pair_loss(logits, config.sequences, term),
        coefficients={term: 1.0},
        phases=(Phase(config.steps, config.batch_size, examples),),
        work=count_pair_work,
        figures=partial(name_figures, term=term),
        score="held_out/accuracy",
        size=lambda batch: int((batch["source_segments"] > 0).sum() + (batch["target_segments"] > 0).sum()),
        width=model.hidden_size,
    )


def pair_loss(logits: Logits, smoothing: float, term: str = "translation") -> Loss:
    """Return `loss(params, batch, key, carry)` with one term: cross entropy with smoothed targets."""

    def loss(params: Params, batch: Batch, key: PRNGKeyArray | None, carry: Any) -> Any:
        batch = jax.tree.map(jnp.asarray, dict(batch))
        pieces = _pieces(logits(params, batch, key), batch)
        return {term: smoothed_cross_entropy(*pieces, smoothing)}, {"accuracy": accuracy(*pieces)}, carry

    return loss


def held_out_pair_loss(logits: Logits, sequences: int, term: str = "translation") -> Loss:
    """Return the loss of evaluations: no smoothing, the accuracy of pieces, and the sentences without an error.

    A sentence counts as exact if the most probable piece is right in every place, after the right pieces before it.
    This is so if and only if greedy decoding writes the reference.
    """

    def loss(params: Params, batch: Batch, key: PRNGKeyArray | None, carry: Any) -> Any:
        batch = jax.tree.map(jnp.asarray, dict(batch))
        scores = logits(params, batch, key)
        pieces = _pieces(scores, batch)
        right = jnp.argmax(scores, axis=-1) == batch["target_out"]
        exact = count_exact(right, batch["target_segments"], sequences)
        return {term: cross_entropy(*pieces)}, {"accuracy": accuracy(*pieces), "exact": exact}, carry

    return loss


def count_exact(right: Bool[Array, "B U"], segments: Int[Array, "B U"], sequences: int) -> Sums:
    """Return the number of sentences without a wrong piece, and the number of sentences."""
    in_sentence = segments[:, None, :] == jnp.arange(1, sequences + 1)[None, :, None]
    present = in_sentence.any(axis=2)
    exact = present & ~(in_sentence & ~right[:, None, :]).any(axis=2)
    return exact.sum().astype(jnp.float32), present.sum().astype(jnp.float32)


def count_pair_work(params: Params, length: int) -> float:
    """Return the operations per token of either text: half of the model's weights are used for each; no attention."""
    del length
    return 3.0 * count_weights(params)


def name_figures(means: Mapping[str, float], term: str = "translation") -> dict[str, float]:
    """Return the held-out figures: perplexity per piece, accuracy of pieces, share of exact sentences."""
    named = {f"held_out/{name}": value for name, value in means.items() if name != term}
    return {"held_out/perplexity": perplexity(means[term], 1), **named}


def _pieces(scores: Float[Array, "B U V"], batch: Batch) -> tuple[Any, Any, Any]:
    return scores, batch["target_out"], (batch["target_segments"] > 0).astype(jnp.float32)
