"""The logits of a BERT's pretraining heads, computed with the modules."""

from typing import NamedTuple

import jax

from bert_elmo_jax.families.bert.family import FAMILY


class Logits(NamedTuple):
    """The logits of pieces [B, K, V], and of the order of each pair [B, S, 2]."""

    mlm: jax.Array
    nsp: jax.Array


def pretraining_logits(
    config, params, tokens, types=None, positions=None, segments=None, *, mlm_positions, nsp_positions, key=None
):
    """Return the logits of a batch; with a key, with dropout."""
    output = FAMILY.build(config, pooler=True).apply(
        {"params": params["encoder"]}, tokens, types, positions, segments, nsp_positions=nsp_positions,
        deterministic=key is None, rngs={} if key is None else {"dropout": key},
    )  # fmt: skip
    words = params["encoder"]["embeddings"]["word"]
    mlm = FAMILY.head("mlm", config).apply({"params": params["mlm"]}, output.last, words, mlm_positions)
    return Logits(mlm, FAMILY.head("nsp", config).apply({"params": params["nsp"]}, output.pooled))
