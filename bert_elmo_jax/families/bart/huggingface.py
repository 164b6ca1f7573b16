"""BART as Hugging Face transformers stores it: the names of its tensors."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bert_elmo_jax.families.bart.config import BartConfig
from bert_elmo_jax.families.bart.config_file import FILE, generation_fields, read_fields
from bert_elmo_jax.families.huggingface_weights import WeightFile
from bert_elmo_jax.families.transformer.marian import BIAS, CROSS, LAYER
from bert_elmo_jax.weights.parameter_tree import Report
from bert_elmo_jax.weights.stored import StoredTensor

SHARED = "shared.weight"
COPIES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")  # of the table of pieces


class BartFile(WeightFile):
    """The names of a BART's tensors, with one table of pieces for both sides and a constant bias of the logits."""

    def stored_outside(self, classifier: str | None) -> set[str]:
        """Return the paths of the encoder that are stored with a head; the bias of the logits is, too."""
        return super().stored_outside(classifier) | {"encoder/decoder/output_bias"}

    def from_file(self, stored: dict[str, StoredTensor], config: Any) -> dict[str, StoredTensor]:
        """Return the tensors with one table of pieces and a bias; raise if copies of the table differ."""
        named = {name: next((table for table in (SHARED, *COPIES) if f".{name}".endswith(f".{table}")), None)
                 for name in stored}  # fmt: skip
        tables = {table: name for name, table in named.items() if table}
        if not tables:
            return stored
        first = next(tables[table] for table in (SHARED, *COPIES) if table in tables)
        for name in tables.values():
            if name != first and not (stored[name].shape == stored[first].shape and stored[name].equals(stored[first])):
                raise ValueError(f"{name} differs from {first}, but a BART has one table of pieces for all uses")
        if SHARED not in tables:
            table = stored.pop(first)
            stored[f"model.{SHARED}" if first in COPIES else first.removesuffix(named[first] or "") + SHARED] = table
        vocab_size = next(tensor.shape[0] for name, tensor in stored.items() if f".{name}".endswith(f".{SHARED}"))
        bias = stored.get(BIAS)  # a model without the head of pieces has none
        read = (lambda: np.zeros(vocab_size, np.float32)) if bias is None else (lambda: np.reshape(bias.read(), -1))
        shape = (vocab_size,) if bias is None else (int(np.prod(bias.shape)),)
        return {**stored, BIAS: StoredTensor(shape, "float32" if bias is None else bias.dtype, read)}

    def to_file(self, tensors: dict[str, np.ndarray], config: Any) -> dict[str, np.ndarray]:
        """Return the tensors with the bias as one row; transformers' classifiers have none."""
        bias = tensors.pop(BIAS)
        classifies = any(name.startswith("classification_head.") for name in tensors)
        return tensors if classifies else {**tensors, BIAS: bias[None]}

    def more_files(self, config: Any) -> dict[str, Any]:
        """Return the content of `generation_config.json`."""
        return {"generation_config.json": generation_fields(config)}


def weight_file(config: BartConfig) -> WeightFile:
    """Return the names of the tensors of a BART with so many layers."""
    decoder = {
        f"decoder/layer_{i}/{ours}": f"decoder.layers.{i}.{theirs}"
        for i in range(config.target.num_layers)
        for ours, theirs in (LAYER | CROSS).items()
    }
    return BartFile(
        family="bart",
        config_file=FILE,
        prefix="model.",
        encoder={
            "embeddings/norm": "encoder.layernorm_embedding",
            "decoder/embeddings/norm": "decoder.layernorm_embedding",
            **decoder,
        },
        tables={
            "embeddings/word": "shared",
            "embeddings/position": "encoder.embed_positions",
            "decoder/embeddings/position": "decoder.embed_positions",
        },
        layers="encoder.layers",
        layer=LAYER,
        heads={"classify": {"encoder/pooler": "classification_head.dense", "classify": "classification_head.out_proj"}},
        biases={"encoder/decoder/output_bias": BIAS},
        classifiers=(),
        constants=COPIES,
        bare=False,
        uncalled=("encoder/embeddings/word",),
    )


def read_config(folder: str | Path) -> BartConfig:
    """Return the configuration of a folder, from its `config.json` and `generation_config.json`."""
    config: BartConfig = FILE.read_folder(BartConfig, folder, "BART", read_fields)
    return config


def read_weights(
    folder: str | Path, *, config: Any = None, classifier: str | None = None
) -> tuple[dict[str, Any], Report]:
    """Return the parameter tree of a folder and a report on every tensor; see `WeightFile.read_weights`."""
    config = config or read_config(folder)
    params, report = weight_file(config).read_weights(folder, config=config, classifier=classifier)
    report.skipped = dict.fromkeys(report.skipped, "a copy of its tied tensor")
    if "classify" not in params:  # every config.json of a BART names labels
        report.extras = {name: value for name, value in report.extras.items() if name not in ("labels", "num_labels")}
    return params, report


def write(folder: str | Path, params: Mapping[str, Any], config: BartConfig, **more: Any) -> None:
    """Write a folder that transformers can load; see `WeightFile.write`."""
    weight_file(config).write(folder, params, config, **more)
