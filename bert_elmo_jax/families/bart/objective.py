"""BART's pretraining objective: the original of a damaged text."""

import functools

from ml_collections import ConfigDict

from bert_elmo_jax.data.rows.denoising import DenoisingExamples, Noise
from bert_elmo_jax.families.bart.config import BartConfig
from bert_elmo_jax.families.bart.family import FAMILY
from bert_elmo_jax.families.bart.model import denoising_logits
from bert_elmo_jax.families.family import Objective
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.families.pair_objective import pair_objective


def denoise_objective(config: ConfigDict, model: BartConfig) -> Objective:
    """Return the objective of a run's config: every piece of a text, from its damaged form."""
    start, end, pad = model.start_id, model.end_ids[0], model.pad_id
    examples = DenoisingExamples(
        config.length, config.length, start, end, pad, sequences=config.sequences, noise=Noise(**config.noise)
    )
    return pair_objective(
        config,
        model,
        init=lambda key: init_params(FAMILY, model, key, (), pooler=False),
        logits=functools.partial(denoising_logits, model),
        start=start,
        end=end,
        pad=pad,
        examples=examples,
        term="denoising",
    )
