"""ELMo's pretraining objective: the next word in each direction, by the full softmax or a sampled one."""

from collections.abc import Mapping
from typing import Any

from ml_collections import ConfigDict

from bert_elmo_jax.data.rows.stream import LanguageModelExamples
from bert_elmo_jax.families.elmo.init_params import init_elmo_params
from bert_elmo_jax.families.elmo.loss import build_draw, build_touched, elmo_loss
from bert_elmo_jax.families.elmo.model import DIRECTIONS, ElmoConfig, zero_state
from bert_elmo_jax.families.family import Objective, Phase
from bert_elmo_jax.families.piece_objective import count_weights
from bert_elmo_jax.losses import perplexity


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
    return Objective(
        init=lambda key: init_elmo_params(model, key, lm=True),
        loss=elmo_loss(model, sampled=bool(config.negatives)),
        held_out_loss=elmo_loss(model),
        coefficients={f"{name}_sampled" if config.negatives else name: 0.5 for name in DIRECTIONS},
        phases=(Phase(config.steps, config.batch_size, examples),),
        work=lambda params, length: 6.0 * (count_weights([params["encoder"][name] for name in DIRECTIONS]) + predicted),
        figures=name_figures,
        score="held_out/score",
        size=lambda batch: int(batch["lengths"].sum()),
        carry=lambda rows: zero_state(model, rows) if streams else None,
        step=options,
    )


def name_figures(means: Mapping[str, float]) -> dict[str, float]:
    """Return the perplexities by the full softmax; the published figure is the mean of both directions."""
    each = {f"held_out/{direction}_perplexity": perplexity(means[direction], 1) for direction in DIRECTIONS}
    mean = sum(each.values()) / len(each)
    return {**each, "held_out/perplexity": mean, "held_out/score": -mean}
