"""BERT as Hugging Face transformers stores it: `config.json` and `model.safetensors` or `pytorch_model.bin`.

Kernels are [out, in], and names are PyTorch module paths, with any prefix that the saved module added.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from safetensors.numpy import save_file

from bert_elmo_jax.families.bert.config import ARCHITECTURES, BertConfig
from bert_elmo_jax.files import read_json
from bert_elmo_jax.weights.huggingface_files import WEIGHTS, read_folder, tokenizer_files
from bert_elmo_jax.weights.parameter_tree import (
    Report,
    ancestors,
    check_shapes,
    collect,
    encoder_prefix,
    flatten,
    locate,
    part,
)
from bert_elmo_jax.weights.stored import StoredTensor

Classifier = Literal["classify", "choice", "tag"]

WORD_EMBEDDINGS = "embeddings.word_embeddings.weight"
DECODER = "cls.predictions.decoder"
HEADS = ("mlm", "nsp", "classify", "choice", "tag", "span")
CLASSIFIERS: tuple[Classifier, ...] = ("classify", "choice", "tag")  # all three are called `classifier` in the file
TASKS = (*CLASSIFIERS, "span")
NEEDS_POOLER = ("nsp", "classify", "choice")
# The modules of a layer: our name -> theirs. All have a bias and a matrix, or the scale of a norm.
LAYER = {
    "attention/query": "attention.self.query",
    "attention/key": "attention.self.key",
    "attention/value": "attention.self.value",
    "attention/output": "attention.output.dense",
    "attention/norm": "attention.output.LayerNorm",
    "feed_forward/up": "intermediate.dense",
    "feed_forward/down": "output.dense",
    "feed_forward/norm": "output.LayerNorm",
}


def names(num_layers: int, classifier: str | None = None) -> dict[str, str]:
    """Return their name for each path of the tree, without prefix; `classifier` is our name for their `classifier`."""
    modules = {"encoder/embeddings/norm": "embeddings.LayerNorm"}
    for i in range(num_layers):
        modules |= {f"encoder/layer_{i}/{ours}": f"encoder.layer.{i}.{theirs}" for ours, theirs in LAYER.items()}
    modules |= {
        "encoder/pooler": "pooler.dense",
        "mlm/dense": "cls.predictions.transform.dense",
        "mlm/norm": "cls.predictions.transform.LayerNorm",
        "nsp": "cls.seq_relationship",
        "span": "qa_outputs",
        **({classifier: "classifier"} if classifier else {}),
    }
    tables = {"word": "word", "position": "position", "type": "token_type"}
    table = {f"encoder/embeddings/{ours}": f"embeddings.{name}_embeddings.weight" for ours, name in tables.items()}
    for ours, theirs in modules.items():
        weight = "scale" if ours.endswith("/norm") else "kernel"
        table |= {f"{ours}/{weight}": f"{theirs}.weight", f"{ours}/bias": f"{theirs}.bias"}
    return table | {"mlm/bias": "cls.predictions.bias"}


def bert_shapes(config: BertConfig, outputs: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Return the shape of every parameter that a BERT may have; `outputs` are the sizes of `classify` and `tag`."""
    from bert_elmo_jax.families.bert.family import FAMILY
    from bert_elmo_jax.families.init_params import param_shapes

    heads = [head for head in HEADS if head not in ("classify", "tag") or head in outputs]
    return param_shapes(FAMILY, config, heads, outputs=outputs)


def read_config(folder: str | Path) -> BertConfig:
    """Return the configuration of a folder, from its `config.json`."""
    path = Path(folder) / "config.json"
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} has no config.json, which holds the sizes of the BERT: copy it there, or give config="
        )
    return BertConfig.from_json(path)


def read_weights(
    folder: str | Path, *, config: BertConfig | None = None, classifier: Classifier | None = None
) -> tuple[dict[str, Any], Report]:
    """Return the parameter tree of a folder and a report on every tensor.

    `config` replaces the folder's `config.json`. `classifier` says which head the `classifier` tensors are if
    `architectures` does not. Heads without any tensor are left out of the tree.
    """
    folder = Path(folder)
    config = config or read_config(folder)
    extras = _extras(folder / "config.json")
    source, stored = read_folder(folder)
    report = Report(source, extras=extras)
    if classifier is None:
        named = [head for head in CLASSIFIERS if ARCHITECTURES[head,] in extras.get("architectures", ())]
        classifier = named[0] if len(named) == 1 else None

    table = names(config.num_layers, classifier)
    plain = _plain_names(stored, report.source)
    prefix = encoder_prefix(plain, WORD_EMBEDDINGS, ".", report.source)
    found, expected = locate(table, plain, prefix, ".")
    for scope in ancestors(prefix, "."):
        _check_decoder(scope, plain, stored, found, report)
        for name in ("classifier.weight", "classifier.bias"):
            if scope + name in plain and plain[scope + name] not in found.values():
                report.skipped[plain[scope + name]] = (
                    "the architectures in config.json do not say which head the classifier is; give classifier="
                    + "|".join(CLASSIFIERS)
                )
    for plain_name, name in plain.items():
        if plain_name.endswith(("embeddings.position_ids", "embeddings.token_type_ids")):
            report.skipped[name] = "a constant"

    outputs: dict[str, int] = {}
    rows = [stored[found[path]].shape[:1] for path in found if path.split("/")[0] == classifier]
    if classifier in ("classify", "tag") and rows:
        outputs[classifier] = extras.get("num_labels") or (*rows[0], 0)[0]
    shapes = bert_shapes(config, outputs)
    transposed = {path for path in table if path.endswith("/kernel")}
    return collect(stored, found, expected, transposed, shapes, report), report


def _plain_names(stored: Mapping[str, StoredTensor], source: str) -> dict[str, str]:
    """Map current names to the names in the file: layer norms had gamma and beta until 2019."""
    plain: dict[str, str] = {}
    for name in stored:
        current = name
        for old, new in ((".LayerNorm.gamma", ".LayerNorm.weight"), (".LayerNorm.beta", ".LayerNorm.bias")):
            current = current.removesuffix(old) + new if current.endswith(old) else current
        if current in plain:
            raise ValueError(f"{source} has the same tensor under an old and a new name: {plain[current]}, {name}")
        plain[current] = name
    return plain


def _check_decoder(
    scope: str, plain: Mapping[str, str], stored: Mapping[str, StoredTensor], found: dict[str, str], report: Report
) -> None:
    """Leave out the masked-language head if the stored decoder differs from the word embeddings: ours are tied."""
    weight, bias = plain.get(f"{scope}{DECODER}.weight"), plain.get(f"{scope}{DECODER}.bias")
    if bias and "mlm/bias" not in found:
        found["mlm/bias"] = bias  # saved only under the decoder's name
        bias = None
    different = [
        name
        for name, twin in ((weight, found.get("encoder/embeddings/word")), (bias, found.get("mlm/bias")))
        if name and twin and not _equal(stored[name], stored[twin])
    ]
    report.skipped |= {name: "a copy of its tied tensor" for name in (weight, bias) if name and name not in different}
    if different:
        left = [path for path in found if path.startswith("mlm/")]
        reason = f"the head is left out: {' and '.join(different)} differs from its tied tensor"
        report.skipped |= {found.pop(path): reason for path in left} | dict.fromkeys(different, reason)


def _equal(a: StoredTensor, b: StoredTensor) -> bool:
    return np.array_equal(a.read().astype(np.float32), b.read().astype(np.float32), equal_nan=True)


def _extras(path: Path) -> dict[str, Any]:
    """Return the task fields of `config.json`: architectures, problem_type, labels, num_labels."""
    config = read_json(path, default={})
    extras = {key: config[key] for key in ("architectures", "problem_type") if config.get(key)}
    labels: Any = config.get("id2label")
    if labels:
        try:
            extras["labels"] = [labels[str(number)] for number in range(len(labels))]
        except (KeyError, TypeError):
            raise ValueError(f"{path}: id2label must name the labels 0 to {len(labels) - 1}, it is {labels}") from None
    if config.get("num_labels") or labels:
        extras["num_labels"] = config.get("num_labels") or len(labels)
    return extras


def write(
    folder: str | Path,
    params: Mapping[str, Any],
    config: BertConfig,
    *,
    vocab: Sequence[str] | None = None,
    tokenizer: Mapping[str, Any] | None = None,
    labels: Sequence[str] | None = None,
    problem_type: str | None = None,
) -> None:
    """Write a folder that transformers can load: weights, `config.json` and, with `vocab`, the tokenizer files.

    `config.json` names one architecture for each task head of the tree, or else the pretraining architecture. `vocab`
    lists the pieces in the order of their ids, `tokenizer` holds fields of `tokenizer_config.json` such as
    `do_lower_case`, and `labels` name the classes. Raise if a head lacks its pooler, or if tensors are missing,
    unknown or mis-shaped.
    """
    folder = Path(folder)
    heads, tensors = _to_theirs(params, config)
    content = _config_json(heads, config, tensors, labels, problem_type)
    texts = {"config.json": json.dumps(content, indent=2, ensure_ascii=False) + "\n"}
    if tokenizer is not None and vocab is None:
        raise ValueError("tokenizer= was given without vocab=: give both")
    if vocab is not None:
        texts |= tokenizer_files(vocab, tokenizer or {}, config.vocab_size, config.max_positions)
    existing = [name for name in WEIGHTS if (folder / name).exists()]
    if existing:
        raise FileExistsError(f"{folder} already holds weights ({', '.join(existing)}): write to another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    # The weights appear last and at once, so a folder that can be loaded is complete.
    unfinished = folder / "model.safetensors.unfinished"
    save_file(tensors, unfinished, metadata={"format": "pt"})
    unfinished.chmod((folder / "config.json").stat().st_mode)  # safetensors makes its files private
    unfinished.replace(folder / WEIGHTS[0])


def _to_theirs(params: Mapping[str, Any], config: BertConfig) -> tuple[list[str], dict[str, np.ndarray]]:
    flat = {path: np.asarray(value, np.float32) for path, value in flatten(params).items()}
    heads = [head for head in HEADS if head in params]
    classifiers = [head for head in heads if head in CLASSIFIERS]
    if len(classifiers) > 1:
        raise ValueError(
            f"{' and '.join(classifiers)} would have the same names in one file: write each to its own folder"
        )
    lacking = [head for head in heads if head in NEEDS_POOLER and "encoder/pooler/kernel" not in flat]
    if lacking:
        raise ValueError(f"{', '.join(lacking)} cannot be written without its pooler: encoder/pooler is missing")
    outputs = {head: flat[f"{head}/bias"].size for head in ("classify", "tag") if f"{head}/bias" in flat}
    shapes = bert_shapes(config, outputs)
    table = names(config.num_layers, classifiers[0] if classifiers else None)
    present = {part(path) for path in flat} | {"encoder"}
    found = {path: value.shape for path, value in flat.items()}
    # A classifier without a bias has no known width: only its missing bias is reported.
    wanted = {path: shapes.get(path, found.get(path, ())) for path in table if part(path) in present}
    check_shapes(found, wanted, "cannot write")
    prefix = "bert." if heads else ""
    tensors = {
        (prefix if path.startswith("encoder/") else "") + table[path]: value.T if path.endswith("/kernel") else value
        for path, value in flat.items()
    }
    return heads, {name: np.ascontiguousarray(value) for name, value in tensors.items()}


def _config_json(
    heads: Sequence[str],
    config: BertConfig,
    tensors: Mapping[str, np.ndarray],
    labels: Sequence[str] | None,
    problem_type: str | None,
) -> dict[str, Any]:
    tasks = [head for head in heads if head in TASKS]
    content = config.to_huggingface(tuple(head for head in heads if head not in TASKS))
    if tasks:
        content["architectures"] = [ARCHITECTURES[head,] for head in tasks]
    content["dtype"] = "float32"
    classes = tensors["classifier.bias"].size if "classify" in tasks or "tag" in tasks else 0
    if labels is not None and len(labels) != classes:
        raise ValueError(f"{len(labels)} labels were given for {classes} classes: {', '.join(map(str, labels))}")
    if labels is not None and len(set(labels)) < len(labels):
        raise ValueError(f"labels must be different: {', '.join(map(str, labels))}")
    if classes:
        label_of = dict(enumerate(labels or [f"LABEL_{number}" for number in range(classes)]))
        content |= {"id2label": label_of, "label2id": {label: number for number, label in label_of.items()}}
    if problem_type is not None:
        content["problem_type"] = problem_type
    return content
