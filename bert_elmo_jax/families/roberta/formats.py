"""RoBERTa as Hugging Face transformers stores it: the fields of its `config.json`, the names of its tensors."""

from typing import Any

from bert_elmo_jax.families.huggingface_config import USUAL_FIELDS, ConfigFile, class_names
from bert_elmo_jax.families.huggingface_weights import WeightFile


def _to_ours(values: dict[str, Any]) -> dict[str, Any]:
    """Count positions from the first that a text uses; missing fields have the values that transformers assumes."""
    values = {"max_positions": 512, "type_vocab_size": 2, "norm_eps": 1e-12, "pad_id": 1} | values
    return values | {"max_positions": values["max_positions"] - values["pad_id"] - 1}


def _to_theirs(fields: dict[str, Any]) -> dict[str, Any]:
    return fields | {"max_position_embeddings": fields["max_position_embeddings"] + fields["pad_token_id"] + 1}


FILE = ConfigFile(
    called="a RoBERTa",
    model_type="roberta",
    names={"model_type": "model_type", **USUAL_FIELDS},
    architectures=class_names("Roberta"),
    variants={"xlm-roberta": "XLMRoberta", "camembert": "Camembert"},
    to_ours=_to_ours,
    to_theirs=_to_theirs,
)
WEIGHTS = WeightFile(
    family="roberta",
    config_file=FILE,
    prefix="roberta.",
    encoder={"embeddings/norm": "embeddings.LayerNorm", "pooler": "pooler.dense"},
    heads={
        "mlm": {"mlm/dense": "lm_head.dense", "mlm/norm": "lm_head.layer_norm"},
        "span": {"span": "qa_outputs"},
        "classify": {"encoder/pooler": "classifier.dense", "classify": "classifier.out_proj"},
        "choice": {"encoder/pooler": "roberta.pooler.dense", "choice": "classifier"},
        "tag": {"tag": "classifier"},
    },
    biases={"mlm/bias": "lm_head.bias"},
    decoder="lm_head.decoder",
)
FORMATS = {"huggingface": WEIGHTS.format()}
