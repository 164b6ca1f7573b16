"""BERT's entry in the registry."""

from collections.abc import Callable

from jax.sharding import PartitionSpec as P

from bert_elmo_jax.families.bert import google, huggingface
from bert_elmo_jax.families.bert.config import PRESETS, BertConfig
from bert_elmo_jax.families.bert.mlm import MaskedLM
from bert_elmo_jax.families.bert.model import Bert
from bert_elmo_jax.families.bert.nsp import NextSentence
from bert_elmo_jax.families.family import Family, Objective
from bert_elmo_jax.families.piece_objective import piece_objective


def _objective(pairs: bool) -> Callable[..., Objective]:
    return lambda config, model: piece_objective(FAMILY, config, model, pairs)


FAMILY = Family(
    name="bert",
    called="a BERT",
    config=BertConfig,
    module=Bert,
    inputs="pieces",
    objectives={
        "nsp": _objective(True),
        "sop": _objective(True),
        "sentences": _objective(False),
        "documents": _objective(False),
    },
    heads={"mlm": MaskedLM, "nsp": NextSentence},
    formats={"huggingface": huggingface.FORMAT, "google": google.FORMAT},
    sharding=(
        (r"attention/(query|key|value)/kernel$", P("fsdp", "tensor")),
        (r"attention/(query|key|value)/bias$", P("tensor")),
        (r"attention/output/kernel$", P("tensor", "fsdp")),
        (r"feed_forward/up/kernel$", P("fsdp", "tensor")),
        (r"feed_forward/up/bias$", P("tensor")),
        (r"feed_forward/down/kernel$", P("tensor", "fsdp")),
        (r"embeddings/(word|position)$", P("tensor", "fsdp")),
    ),
    pooler=True,
    presets=PRESETS,
)
