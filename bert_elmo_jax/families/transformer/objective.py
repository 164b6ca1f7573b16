"""The Transformer's pretraining objective: translation."""

import functools

from ml_collections import ConfigDict

from bert_elmo_jax.families.family import Objective
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.families.pair_objective import pair_objective
from bert_elmo_jax.families.transformer.config import TransformerConfig
from bert_elmo_jax.families.transformer.family import FAMILY
from bert_elmo_jax.families.transformer.model import batch_logits


def translate_objective(config: ConfigDict, model: TransformerConfig) -> Objective:
    """Return the objective of a run's config: the target's pieces, by encoder and decoder."""
    return pair_objective(
        config,
        model,
        init=lambda key: init_params(FAMILY, model, key, ("decoder",), pooler=False),
        logits=functools.partial(batch_logits, model),
        start=model.start_id,
        end=model.end_ids[0],
        pad=model.pad_id,
    )
