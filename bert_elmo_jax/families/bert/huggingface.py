"""BERT as Hugging Face transformers stores it: the names of its tensors."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from bert_elmo_jax.families.bert.config import FILE, BertConfig
from bert_elmo_jax.families.huggingface_weights import WeightFile

Classifier = Literal["classify", "choice", "tag"]

WEIGHTS = WeightFile(
    family="bert",
    config_file=FILE,
    prefix="bert.",
    encoder={"embeddings/norm": "embeddings.LayerNorm", "pooler": "pooler.dense"},
    heads={
        "mlm": {"mlm/dense": "cls.predictions.transform.dense", "mlm/norm": "cls.predictions.transform.LayerNorm"},
        "nsp": {"nsp": "cls.seq_relationship"},
        "span": {"span": "qa_outputs"},
        **{name: {name: "classifier"} for name in ("classify", "choice", "tag")},
    },
    biases={"mlm/bias": "cls.predictions.bias"},
    decoder="cls.predictions.decoder",
)
read_config, read_weights = WEIGHTS.read_config, WEIGHTS.read_weights


def write(folder: str | Path, params: Mapping[str, Any], config: BertConfig, **options: Any) -> None:
    """Write a folder for transformers, see `WeightFile.write`; raise first on a field that their BERT has not."""
    config.to_huggingface()
    WEIGHTS.write(folder, params, config, **options)


def names(num_layers: int, classifier: str | None = None) -> dict[str, str]:
    """Return their name for each path of the tree, without prefix; `classifier` is our name for their `classifier`."""
    return WEIGHTS.names(num_layers, classifier)


def bert_shapes(config: BertConfig, outputs: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Return the shape of every parameter that a BERT may have; `outputs` are the sizes of `classify` and `tag`."""
    return WEIGHTS.shapes(config, outputs)
