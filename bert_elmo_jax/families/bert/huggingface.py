"""BERT as Hugging Face's transformers stores it: `config.json` and `model.safetensors` or `pytorch_model.bin`.

Kernels are [out, in] there; names are those of the PyTorch modules, with whatever prefix the saved module gave them.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from safetensors.numpy import save_file

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.shapes import HEADS, bert_shapes
from bert_elmo_jax.families.family import WeightFormat
from bert_elmo_jax.weights.huggingface_files import ELSEWHERE, WEIGHTS, read_folder, tokenizer_files
from bert_elmo_jax.weights.locate import ancestors, encoder_prefix, locate
from bert_elmo_jax.weights.parameter_tree import collect, flatten, part
from bert_elmo_jax.weights.report import Report
from bert_elmo_jax.weights.stored import StoredTensor

Classifier = Literal["classify", "choice", "tag"]

WORD_EMBEDDINGS = "embeddings.word_embeddings.weight"
DECODER = "cls.predictions.decoder"
ARCHITECTURES = {
    "classify": "BertForSequenceClassification",
    "choice": "BertForMultipleChoice",
    "tag": "BertForTokenClassification",
    "span": "BertForQuestionAnswering",
}
CLASSIFIERS: tuple[Classifier, ...] = ("classify", "choice", "tag")  # all three are called `classifier` in the file
NEEDS_POOLER = ("nsp", "classify", "choice")


def names(num_layers: int, classifier: str | None = None) -> dict[str, str]:
    """Return their name for each path of the tree, without prefix; `classifier` is the head that theirs stands for.

    >>> names(12)["encoder/layer_11/attention/output/kernel"]
    'encoder.layer.11.attention.output.dense.weight'
    """
    table = {f"encoder/embeddings/{ours}": f"embeddings.{ours}_embeddings.weight" for ours in ("word", "position")}
    table["encoder/embeddings/type"] = "embeddings.token_type_embeddings.weight"
    table |= _norm("encoder/embeddings/norm", "embeddings.LayerNorm")
    for i in range(num_layers):
        ours, theirs = f"encoder/layer_{i}", f"encoder.layer.{i}"
        for name in ("query", "key", "value"):
            table |= _dense(f"{ours}/attention/{name}", f"{theirs}.attention.self.{name}")
        table |= _dense(f"{ours}/attention/output", f"{theirs}.attention.output.dense")
        table |= _norm(f"{ours}/attention/norm", f"{theirs}.attention.output.LayerNorm")
        table |= _dense(f"{ours}/feed_forward/up", f"{theirs}.intermediate.dense")
        table |= _dense(f"{ours}/feed_forward/down", f"{theirs}.output.dense")
        table |= _norm(f"{ours}/feed_forward/norm", f"{theirs}.output.LayerNorm")
    table |= _dense("encoder/pooler", "pooler.dense")
    table |= _dense("mlm/dense", "cls.predictions.transform.dense")
    table |= _norm("mlm/norm", "cls.predictions.transform.LayerNorm") | {"mlm/bias": "cls.predictions.bias"}
    table |= _dense("nsp", "cls.seq_relationship") | _dense("span", "qa_outputs")
    return table | (_dense(classifier, "classifier") if classifier else {})


def _dense(ours: str, theirs: str) -> dict[str, str]:
    return {f"{ours}/kernel": f"{theirs}.weight", f"{ours}/bias": f"{theirs}.bias"}


def _norm(ours: str, theirs: str) -> dict[str, str]:
    return {f"{ours}/scale": f"{theirs}.weight", f"{ours}/bias": f"{theirs}.bias"}


def read_config(folder: str | Path) -> BertConfig:
    """Return the configuration of a folder, from its `config.json`.

    >>> read_config("tests/goldens/bert_tiny").num_layers
    3
    """
    path = Path(folder) / "config.json"
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} has no config.json, which says how many heads its BERT has: copy it there, or give config="
        )
    return BertConfig.from_json(path)


def read_weights(
    folder: str | Path, *, config: BertConfig | None = None, classifier: Classifier | None = None
) -> tuple[dict[str, Any], Report]:
    """Return the parameter tree of a folder and what became of every tensor.

    `config` replaces the folder's `config.json`; `classifier` says which head the tensors called `classifier` are
    where its `architectures` do not. A head whose tensors are all absent is absent from the tree.

    >>> params, report = read_weights("tests/goldens/bert_tiny")
    >>> params["nsp"]["kernel"].shape, report.heads
    ((64, 2), ('mlm', 'nsp'))
    """
    folder = Path(folder)
    config = config or read_config(folder)
    extras = _extras(folder / "config.json")
    source, stored = read_folder(folder)
    report = Report(source, extras=extras)
    if classifier is None:
        named = [head for head in CLASSIFIERS if ARCHITECTURES[head] in extras.get("architectures", ())]
        classifier = named[0] if len(named) == 1 else None

    table = names(config.num_layers, classifier)
    plain = _plain_names(stored, report.source)
    prefix = encoder_prefix(plain, WORD_EMBEDDINGS, ".", report.source)
    found, called = locate(table, plain, prefix, ".")
    for place in ancestors(prefix, "."):
        _check_decoder(place, plain, stored, found, report)
        for name in ("classifier.weight", "classifier.bias"):
            if place + name in plain and plain[place + name] not in found.values():
                report.skipped[plain[place + name]] = (
                    "config.json does not say (architectures) which head a `classifier` is; name it: classifier="
                    + "|".join(CLASSIFIERS)
                )
    for plain_name, name in plain.items():
        if plain_name.endswith(("embeddings.position_ids", "embeddings.token_type_ids")):
            report.skipped[name] = "a row of numbers that is always the same"

    outputs: dict[str, int] = {}
    rows = [stored[found[path]].shape[:1] for path in found if path.split("/")[0] == classifier]
    if classifier in ("classify", "tag") and rows:
        outputs[classifier] = extras.get("num_labels") or (*rows[0], 0)[0]
    shapes = bert_shapes(config, outputs)
    transposed = {path for path in table if path.endswith("/kernel")}
    return collect(stored, found, called, transposed, shapes, report), report


def _plain_names(stored: Mapping[str, StoredTensor], source: str) -> dict[str, str]:
    """Their name as it is today -> as it is in the file: layer norms had gamma and beta until 2019."""
    plain: dict[str, str] = {}
    for name in stored:
        today = name
        for old, new in ((".LayerNorm.gamma", ".LayerNorm.weight"), (".LayerNorm.beta", ".LayerNorm.bias")):
            today = today.removesuffix(old) + new if today.endswith(old) else today
        if today in plain:
            raise ValueError(f"{source} holds the same tensor under an old and a new name: {plain[today]}, {name}")
        plain[today] = name
    return plain


def _check_decoder(
    place: str, plain: Mapping[str, str], stored: Mapping[str, StoredTensor], found: dict[str, str], report: Report
) -> None:
    """Our masked-language head reuses the word embeddings: where a stored decoder differs, the head is left out."""
    weight, bias = plain.get(f"{place}{DECODER}.weight"), plain.get(f"{place}{DECODER}.bias")
    if bias and "mlm/bias" not in found:
        found["mlm/bias"] = bias  # only the decoder's name for it was saved
        bias = None
    different = [
        name
        for name, twin in ((weight, found.get("encoder/embeddings/word")), (bias, found.get("mlm/bias")))
        if name and twin and not _equal(stored[name], stored[twin])
    ]
    report.skipped |= {
        name: "the same as what it is tied to" for name in (weight, bias) if name and name not in different
    }
    if different:
        left = [path for path in found if path.startswith("mlm/")]
        reason = f"the head is left out, because {' and '.join(different)} is not what it should be tied to"
        report.skipped |= {found.pop(path): reason for path in left} | dict.fromkeys(different, reason)


def _equal(a: StoredTensor, b: StoredTensor) -> bool:
    same = a.shape == b.shape
    return same and np.array_equal(a.read().astype(np.float32), b.read().astype(np.float32), equal_nan=True)


def _extras(path: Path) -> dict[str, Any]:
    """What `config.json` says about the task: architectures, labels, problem_type, num_labels."""
    if not path.is_file():
        return {}
    config = json.loads(path.read_text(encoding="utf-8"))
    extras = {key: config[key] for key in ("architectures", "problem_type") if config.get(key)}
    labels = config.get("id2label")
    if labels:
        try:
            extras["labels"] = [labels[str(number)] for number in range(len(labels))]
        except (KeyError, TypeError):
            raise ValueError(
                f"{path}: id2label should name the labels 0 to {len(labels) - 1}, it has {labels}"
            ) from None
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
    """Write a folder that transformers loads: weights, `config.json` and, with `vocab`, the tokenizer's files.

    `config.json` names one architecture for each task head of the tree, else that of its pretraining heads. `vocab`
    are the pieces in the order of their ids, `tokenizer` is what `tokenizer_config.json` shall say (such as
    `do_lower_case`), `labels` name the classes. Parameters without their head's pooler, with tensors too many, too
    few or mis-shaped are an error.

    >>> import tempfile
    >>> params, _ = read_weights("tests/goldens/bert_tiny")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder, params, read_config("tests/goldens/bert_tiny"))
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['config.json', 'model.safetensors']
    """
    folder = Path(folder)
    heads, tensors = _to_theirs(params, config)
    content = _config_json(heads, config, tensors, labels, problem_type)
    texts = {"config.json": json.dumps(content, indent=2, ensure_ascii=False) + "\n"}
    if tokenizer is not None and vocab is None:
        raise ValueError("tokenizer= was given without vocab=, the pieces that it is about")
    if vocab is not None:
        texts |= tokenizer_files(vocab, tokenizer or {}, config.vocab_size, config.max_positions)
    there = [name for name in WEIGHTS if (folder / name).exists()]
    if there:
        raise FileExistsError(f"{folder} already holds weights ({', '.join(there)}): write to another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    # The weights come last and appear at once, so that a folder that can be loaded is whole.
    unfinished = folder / "model.safetensors.unfinished"
    save_file(tensors, unfinished, metadata={"format": "pt"})
    unfinished.chmod((folder / "config.json").stat().st_mode)  # the library lets nobody else read what it writes
    unfinished.replace(folder / WEIGHTS[0])


def _to_theirs(params: Mapping[str, Any], config: BertConfig) -> tuple[list[str], dict[str, np.ndarray]]:
    flat = {path: np.asarray(value, np.float32) for path, value in flatten(params).items()}
    heads = [head for head in HEADS if head in params]
    classifiers = [head for head in heads if head in CLASSIFIERS]
    if len(classifiers) > 1:
        raise ValueError(
            f"{' and '.join(classifiers)} would have the same names in one file: write one of them, or two folders"
        )
    lacking = [head for head in heads if head in NEEDS_POOLER and "encoder/pooler/kernel" not in flat]
    if lacking:
        raise ValueError(f"{', '.join(lacking)} cannot be written without the pooler it stands on (encoder/pooler)")
    outputs = {head: flat[f"{head}/bias"].size for head in ("classify", "tag") if f"{head}/bias" in flat}
    shapes = bert_shapes(config, outputs)
    table = names(config.num_layers, classifiers[0] if classifiers else None)
    present = {part(path) for path in flat} | {"encoder"}
    missing = [path for path in table if part(path) in present and path not in flat]
    foreign = [path for path in flat if path not in table]
    misshaped = [
        f"{path} {list(value.shape)}, expected {list(shapes[path])}"
        for path, value in flat.items()
        if path in table and path in shapes and value.shape != shapes[path]
    ]
    problems = {"missing": missing, "unknown": foreign, "mis-shaped": misshaped}
    if any(problems.values()):
        listed = "\n".join(f"{kind} ({len(paths)}): {', '.join(paths)}" for kind, paths in problems.items() if paths)
        raise ValueError(f"these parameters are not those of this configuration:\n{listed}")
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
    tasks = [head for head in heads if head in ARCHITECTURES]
    content = config.to_huggingface(tuple(head for head in heads if head not in ARCHITECTURES))
    if tasks:
        content["architectures"] = [ARCHITECTURES[head] for head in tasks]
    content["dtype"] = "float32"
    classes = tensors["classifier.bias"].size if "classify" in tasks or "tag" in tasks else 0
    if labels is not None and len(labels) != classes:
        raise ValueError(f"{len(labels)} labels were given for {classes} classes: {', '.join(map(str, labels))}")
    if labels is not None and len(set(labels)) < len(labels):
        raise ValueError(f"labels must differ from each other: {', '.join(map(str, labels))}")
    if classes:
        label_of = dict(enumerate(labels or [f"LABEL_{number}" for number in range(classes)]))
        content |= {"id2label": label_of, "label2id": {label: number for number, label in label_of.items()}}
    if problem_type is not None:
        content["problem_type"] = problem_type
    return content


def _advice(folder: Path) -> str:
    gone = [name for name in ELSEWHERE if (folder / name).exists()]
    return f"{', '.join(gone)} is not read: convert it with transformers." if gone else ""


FORMAT = WeightFormat(
    owner="Hugging Face's",
    looks_like=", ".join(WEIGHTS),
    files=lambda folder: [name for name in WEIGHTS if (folder / name).is_file()],
    read_config=read_config,
    read_weights=read_weights,
    write=write,
    classifiers=CLASSIFIERS,
    advice=_advice,
)
