"""The goldens of ModernBERT, with their weights in our tree."""

import functools
import re
from typing import NamedTuple

import numpy as np
import pytest
from safetensors.numpy import load_file

from bert_elmo_jax.families.modernbert.config import ModernBertConfig

# Hugging Face's names in our tree; kept apart from the package's own on purpose, as a second opinion.
RENAMED = [
    (r"^model\.layers\.(\d+)\.", r"encoder/layer_\1/"),
    (r"^model\.embeddings\.tok_embeddings\.weight$", "encoder/embeddings/word"),
    (r"^model\.final_norm", "encoder/norm"),
    (r"^model\.", "encoder/"),
    (r"^decoder\.bias$", "mlm/bias"),
    (r"^head\.", "mlm/"),
    (r"attn_norm", "attention/norm"),
    (r"mlp_norm", "feed_forward/norm"),
    (r"attn\.Wo", "attention/output"),
    (r"mlp\.Wo", "feed_forward/down"),
    (r"embeddings\.norm", "embeddings/norm"),
    (r"norm\.weight$", "norm/scale"),
    (r"\.weight$", "/kernel"),
]
PARTS = {"attn.Wqkv": ("attention", "query", "key", "value"), "mlp.Wi": ("feed_forward", "gate", "up")}


def as_tree(tensors):
    """Return tensors of transformers as our tree."""
    tree = {}

    def put(path, value):
        *above, last = path.split("/")
        node = functools.reduce(lambda t, part: t.setdefault(part, {}), above, tree)
        node[last] = value.T if last == "kernel" else value

    for name, tensor in tensors.items():
        joined = next((part for part in PARTS if part in name), None)
        if joined is None:
            put(functools.reduce(lambda n, rule: re.sub(*rule, n), RENAMED, name), tensor)
            continue
        layer = re.search(r"layers\.(\d+)\.", name)[1]
        above, *names = PARTS[joined]
        for ours, part in zip(names, np.split(tensor, len(names)), strict=True):
            put(f"encoder/layer_{layer}/{above}/{ours}/kernel", part)
    return tree


class Golden(NamedTuple):
    """A folder, its configuration, its weights in our tree, and its arrays."""

    folder: object
    config: ModernBertConfig
    params: dict
    inputs: dict
    outputs: dict

    @property
    def logits(self):
        return self.outputs["logits" if "logits" in self.outputs else "mlm_logits"]

    @property
    def labels(self):
        return self.inputs["labels" if "labels" in self.inputs else "mlm_labels"]


def read_golden(folder):
    arrays = [dict(np.load(folder / f"{name}.npz")) for name in ("inputs", "outputs")]
    params = as_tree(load_file(folder / "model.safetensors"))
    return Golden(folder, ModernBertConfig.from_json(folder / "config.json"), params, *arrays)


@pytest.fixture(scope="module")
def tiny(goldens):
    return read_golden(goldens / "modernbert_tiny")


@pytest.fixture(scope="module")
def packed(goldens):
    return read_golden(goldens / "modernbert_packed")
