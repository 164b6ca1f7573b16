"""The parameter tree of BERT and its heads: the shape of every tensor, and where a file has them."""

from collections.abc import Mapping
from typing import Any

from bert_elmo_jax.families.bert.config import BertConfig

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
