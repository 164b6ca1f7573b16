"""The parameter tree of BERT and its heads: the shape of every tensor, and how tensors of a file become one."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_elmo_jax.interop.report import Report
from bert_elmo_jax.interop.stored import StoredTensor
from bert_elmo_jax.models.bert_config import BertConfig

FLOATS = {"float16", "bfloat16", "float32", "float64"}
HEADS = ("mlm", "nsp", "classify", "choice", "tag", "span")
OUTPUTS = {"nsp": 2, "choice": 1, "span": 2}  # of the heads whose width does not depend on the task


def bert_shapes(config: BertConfig, outputs: Mapping[str, int] | None = None) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor that a BERT of this configuration may have, by its path in the tree.

    `outputs` says how many classes `classify` and `tag` have; without it these two are left out.

    >>> shapes = bert_shapes(BertConfig.preset("tiny"), {"classify": 3})
    >>> shapes["encoder/layer_1/feed_forward/up/kernel"], shapes["classify/bias"]
    ((128, 512), (3,))
    """
    d = config.hidden_size
    shapes: dict[str, tuple[int, ...]] = {
        "encoder/embeddings/word": (config.vocab_size, d),
        "encoder/embeddings/position": (config.max_positions, d),
        "encoder/embeddings/type": (config.type_vocab_size, d),
    }
    shapes |= _norm("encoder/embeddings/norm", d)
    for layer in range(config.num_layers):
        path = f"encoder/layer_{layer}"
        for name in ("query", "key", "value", "output"):
            shapes |= _dense(f"{path}/attention/{name}", d, d)
        shapes |= _norm(f"{path}/attention/norm", d)
        shapes |= _dense(f"{path}/feed_forward/up", d, config.feed_forward_size)
        shapes |= _dense(f"{path}/feed_forward/down", config.feed_forward_size, d)
        shapes |= _norm(f"{path}/feed_forward/norm", d)
    shapes |= _dense("encoder/pooler", d, d)
    shapes |= _dense("mlm/dense", d, d) | _norm("mlm/norm", d) | {"mlm/bias": (config.vocab_size,)}
    for head, size in (OUTPUTS | dict(outputs or {})).items():
        shapes |= _dense(head, d, size)
    return shapes


def _dense(path: str, inputs: int, outputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{path}/kernel": (inputs, outputs), f"{path}/bias": (outputs,)}


def _norm(path: str, size: int) -> dict[str, tuple[int, ...]]:
    return {f"{path}/scale": (size,), f"{path}/bias": (size,)}


def part(path: str) -> str:
    """Return the part of the model that is there or absent as a whole: a head, "pooler", or "encoder".

    >>> part("encoder/pooler/bias"), part("encoder/layer_0/attention/key/bias"), part("mlm/dense/bias")
    ('pooler', 'encoder', 'mlm')
    """
    names = path.split("/")
    return "pooler" if names[:2] == ["encoder", "pooler"] else names[0]


def collect(
    stored: Mapping[str, StoredTensor],
    found: Mapping[str, str],
    names: Mapping[str, str],
    transposed: set[str],
    shapes: Mapping[str, tuple[int, ...]],
    report: Report,
) -> dict[str, Any]:
    """Fill in the report, raise where the weights cannot be used, and read the tree, as float32 copies.

    `found` says which tensor each path of the tree was found in, `names` what it is called where it was not found,
    `transposed` which are stored [out, in].

    >>> report = Report("x")
    >>> stored = {"b": StoredTensor((2,), "float16", lambda: np.ones(2, np.float16))}
    >>> collect(stored, {"nsp/bias": "b"}, {"nsp/bias": "b"}, set(), {"nsp/bias": (2,)}, report)
    {'nsp': {'bias': array([1., 1.], dtype=float32)}}
    """
    present = {part(path) for path in found} | {"encoder"}
    wanted = [path for path in names if part(path) in present]
    report.missing |= {path: names[path] for path in wanted if path not in found}
    for path, name in found.items():
        shape = shapes[path][::-1] if path in transposed else shapes[path]
        if stored[name].shape != shape:
            report.misshaped[name] = f"{list(stored[name].shape)}, expected {list(shape)}"
        elif stored[name].dtype not in FLOATS:
            report.misshaped[name] = f"of {stored[name].dtype}, expected one of {', '.join(sorted(FLOATS))}"
        else:
            report.mapped[path] = name
    used = {*found.values(), *report.skipped}
    report.unexpected += sorted(name for name in stored if name not in used)
    report.raise_if_unusable()

    flat, broken = {}, []
    for path in wanted:
        values = stored[found[path]].read()
        # A copy: what was read may be a view of the file, which somebody may overwrite.
        with np.errstate(all="ignore"):  # what float32 cannot hold becomes infinity, which is reported below
            flat[path] = np.array(values.T if path in transposed else values, np.float32, order="C")
        if not np.isfinite(flat[path]).all():
            broken.append(found[path])
    if broken:
        raise ValueError(
            f"{len(broken)} of the tensors in {report.source} hold NaN or infinity (as float32): {', '.join(broken)}. "
            "The training that wrote them has diverged, or the file is damaged."
        )
    return nest(flat)


def nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return a flat dictionary of paths as a tree.

    >>> nest({"a/b": 1, "a/c": 2})
    {'a': {'b': 1, 'c': 2}}
    """
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        *folders, name = path.split("/")
        place = tree
        for folder in folders:
            place = place.setdefault(folder, {})
        place[name] = value
    return tree


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a tree as a flat dictionary of paths.

    >>> flatten({"a": {"b": 1, "c": 2}})
    {'a/b': 1, 'a/c': 2}
    """
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        flat |= flatten(value, f"{prefix}{name}/") if isinstance(value, Mapping) else {prefix + name: value}
    return flat


def ancestors(prefix: str, separator: str) -> list[str]:
    """Return a prefix and what is left as its last names are dropped: where the heads beside an encoder may be.

    >>> ancestors("module.bert.", ".")
    ['module.bert.', 'module.', '']
    """
    names = prefix.split(separator)[:-1]
    return [separator.join([*names[:size], ""]) for size in range(len(names), -1, -1)]


def encoder_prefix(names: Mapping[str, Any], word_embeddings: str, separator: str, source: str) -> str:
    """Return what stands before an encoder's names, seen from where its word embeddings are.

    >>> encoder_prefix({"bert.embeddings.word.weight": 0, "bert.pooler.bias": 0}, "embeddings.word.weight", ".", "x")
    'bert.'
    """
    ends = [name for name in names if name == word_embeddings or name.endswith(separator + word_embeddings)]
    if not ends:
        some = ", ".join(sorted(names)[:5]) or "nothing"
        raise ValueError(
            f"{source} holds no BERT: no name ends with {word_embeddings!r}. Among its {len(names)} tensors: {some}"
        )
    if len(ends) > 1:
        raise ValueError(
            f"{source} holds {len(ends)} encoders, and nothing says which is meant: {', '.join(sorted(ends))}"
        )
    return ends[0].removesuffix(word_embeddings)


def locate(
    table: Mapping[str, str], stored: Mapping[str, str], prefix: str, separator: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the name in the file of every path that is there, and for all paths the name it should have.

    `table` has their names without prefix, `stored` the names as the table writes them -> as the file does. An
    encoder's tensors stand under its prefix, those of a head under it or nearer to the top.

    >>> locate({"nsp/bias": "cls.bias"}, {"module.cls.bias": "module.cls.bias"}, "module.bert.", ".")
    ({'nsp/bias': 'module.cls.bias'}, {'nsp/bias': 'cls.bias'})
    """
    found, called = {}, {}
    for path, name in table.items():
        inside = path.startswith("encoder/")
        places = [prefix] if inside else ancestors(prefix, separator)
        called[path] = prefix + name if inside else name
        for place in places:
            if place + name in stored:
                found[path] = stored[place + name]
                break
    return found, called
