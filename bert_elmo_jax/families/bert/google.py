"""BERT as Google released it: a TensorFlow checkpoint and a `bert_config.json`.

Also reads the checkpoints of Google's `run_classifier.py` and `run_squad.py`. Kernels are [in, out] like ours, but the
output weights of the small heads are [out, in].
"""

from pathlib import Path
from typing import Any, Literal

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.formats import WEIGHTS
from bert_elmo_jax.weights.parameter_tree import Report, check_depth, collect, encoder_prefix, keep_weights, locate
from bert_elmo_jax.weights.tensor_bundle import checkpoint_prefix, read_tensor_bundle

WORD_EMBEDDINGS = "embeddings/word_embeddings"
SCOPES = {"nsp": "cls/seq_relationship/", "span": "cls/squad/"}  # of small heads; a classifier has none
# The differences from the names of transformers, in this order.
RENAMED = {
    "LayerNorm.weight": "LayerNorm.gamma",
    "LayerNorm.bias": "LayerNorm.beta",
    "embeddings.weight": "embeddings",
    "predictions.bias": "predictions.output_bias",
    ".weight": ".kernel",
    "layer.": "layer_",
    ".": "/",
}


def names(config: BertConfig, classifier: str = "classify") -> dict[str, str]:
    """Return their name for each path of the tree, without prefix; `classifier` is the head stored at the top level."""
    table = {}
    for ours, theirs in WEIGHTS.names(config, classifier).items():
        head, *_, kind = ours.split("/")
        if head in (*SCOPES, classifier):
            table[ours] = SCOPES.get(head, "") + ("output_weights" if kind == "kernel" else "output_bias")
        else:
            for old, new in RENAMED.items():
                theirs = theirs.replace(old, new)
            table[ours] = theirs
    return table


def read_config(path: str | Path) -> BertConfig:
    """Return the configuration of a checkpoint, from the `bert_config.json` in its folder."""
    path = Path(path)
    file = (path if path.is_dir() else path.parent) / "bert_config.json"
    if not file.is_file():
        raise FileNotFoundError(
            f"{file} does not exist; it holds the sizes of the BERT: copy it there from the released model, or give "
            "config="
        )
    return BertConfig.from_json(file)


def read_weights(
    path: str | Path, *, config: BertConfig | None = None, classifier: Literal["classify", "choice", "tag"] = "classify"
) -> tuple[dict[str, Any], Report]:
    """Return the parameter tree of a checkpoint (its folder or its prefix) and a report on every tensor.

    `config` replaces the folder's `bert_config.json`. `classifier` names the head stored as top-level `output_weights`,
    `classify` as in `run_classifier.py` by default. Heads without any tensor are left out of the tree.
    """
    prefix = checkpoint_prefix(path)
    config = config or read_config(path)
    report = Report(str(prefix))
    stored = read_tensor_bundle(prefix)
    weights = keep_weights(stored, report)
    if "_CHECKPOINTABLE_OBJECT_GRAPH" in stored and not any(name.endswith(WORD_EMBEDDINGS) for name in weights):
        raise ValueError(
            f"{prefix} is an object-based TensorFlow 2 checkpoint, which does not use the names of the released BERT: "
            "convert it with the program that wrote it"
        )
    scope = encoder_prefix(weights, WORD_EMBEDDINGS, "/", report.source)
    check_depth(config.num_layers, stored, report.source)
    table = names(config, classifier)
    located, expected = locate(table, {name: name for name in weights}, scope, "/")
    transposed = {ours for ours, name in table.items() if name.endswith("output_weights")}
    rows = [weights[name].shape[:1] for ours, name in located.items() if ours.split("/")[0] == classifier]
    outputs = {str(classifier): (*rows[0], 0)[0]} if rows and classifier != "choice" else {}
    return collect(stored, located, expected, transposed, WEIGHTS.shapes(config, outputs), report), report
