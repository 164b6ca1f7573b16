"""From a run's config to its family, objective and training step."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict
from optax import GradientTransformation

from bert_elmo_jax import train
from bert_elmo_jax.families import Family, get_family
from bert_elmo_jax.families.family import Objective
from bert_elmo_jax.optim import Schedule
from bert_elmo_jax.runs import optimisation
from bert_elmo_jax.runs.corpora import load_corpora, load_tokenizer_of
from bert_elmo_jax.train.step import Step


def build_objective(config: ConfigDict, vocab_size: int | None) -> tuple[Family, Objective]:
    """Return the family and the objective of a config, on its data's vocabulary or one of the given size."""
    family = get_family(config.family)
    if vocab_size is None and config.data == "toyworld":
        vocab_size = config.toyworld.vocab_size
    elif vocab_size is None and config.data:
        vocab_size = load_tokenizer_of(load_corpora(config, Path(), family.inputs), family.inputs).vocab_size
    model = family.config(vocab_size=vocab_size or family.vocab_size, **config.model)
    return family, family.objective(config, model)


def build_step(
    config: ConfigDict, objective: Objective, axis: str | None = None
) -> tuple[Schedule, GradientTransformation, Step]:
    """Return the learning rate, the optimiser and the training step of a config."""
    options: Mapping[str, Any] = objective.step
    if config.optimizer.name not in optimisation.ROW_SPARSE:
        options = {name: value for name, value in options.items() if name != "touched"}
    rate = optimisation.learning_rate(config.optimizer, config.steps, objective.long_steps)
    method = optimisation.optimizer(config.optimizer, rate)
    step = train.make_step(
        objective.loss, method, objective.coefficients, accumulate=config.accumulate, carry_axis=2, axis=axis, **options
    )
    return rate, method, step
