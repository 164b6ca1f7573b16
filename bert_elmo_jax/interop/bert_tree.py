"""The parameter tree of BERT and its heads: tensor shapes, and their names in a weight file."""

from collections.abc import Mapping
from typing import Any

from bert_elmo_jax.models.bert_config import BertConfig

HEADS = ("mlm", "nsp", "classify", "choice", "tag", "span")
OUTPUTS = {"nsp": 2, "choice": 1, "span": 2}  # width of the heads that is the same for every task


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


def ancestors(prefix: str, separator: str) -> list[str]:
    """Return a prefix and all its parents, the possible scopes of an encoder's heads.

    >>> ancestors("module.bert.", ".")
    ['module.bert.', 'module.', '']
    """
    names = prefix.split(separator)[:-1]
    return [separator.join([*names[:size], ""]) for size in range(len(names), -1, -1)]


def encoder_prefix(names: Mapping[str, Any], word_embeddings: str, separator: str, source: str) -> str:
    """Return the prefix of an encoder's tensor names, found by its word embeddings.

    >>> encoder_prefix({"bert.embeddings.word.weight": 0, "bert.pooler.bias": 0}, "embeddings.word.weight", ".", "x")
    'bert.'
    """
    ends = [name for name in names if name == word_embeddings or name.endswith(separator + word_embeddings)]
    if not ends:
        some = ", ".join(sorted(names)[:5]) or "nothing"
        raise ValueError(
            f"{source} has no BERT encoder: no name ends with {word_embeddings!r}. It has {len(names)} tensors: {some}"
        )
    if len(ends) > 1:
        raise ValueError(f"{source} has {len(ends)} encoders: {', '.join(sorted(ends))}. Save one model per file.")
    return ends[0].removesuffix(word_embeddings)


def locate(
    table: Mapping[str, str], stored: Mapping[str, str], prefix: str, separator: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the stored name of every path found in the file, and the expected name of every path.

    `table` maps paths to names without prefix, `stored` maps names as the table spells them to names as the file does.
    An encoder's tensors are looked up under `prefix`, a head's tensors also under each parent of it.

    >>> locate({"nsp/bias": "cls.bias"}, {"module.cls.bias": "module.cls.bias"}, "module.bert.", ".")
    ({'nsp/bias': 'module.cls.bias'}, {'nsp/bias': 'cls.bias'})
    """
    found, expected = {}, {}
    for path, name in table.items():
        inside = path.startswith("encoder/")
        expected[path] = prefix + name if inside else name
        for scope in [prefix] if inside else ancestors(prefix, separator):
            if scope + name in stored:
                found[path] = stored[scope + name]
                break
    return found, expected
