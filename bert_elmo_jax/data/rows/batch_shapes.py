"""The arrays of a training batch as shapes and types, without text: what a step can be compiled for beforehand."""

import numpy as np

from bert_elmo_jax.data.rows.pieces import BertExamples
from bert_elmo_jax.data.rows.stream import LanguageModelExamples

Shapes = dict[str, tuple[tuple[int, ...], type[np.generic]]]


def batch_shapes(asked: BertExamples | LanguageModelExamples, rows: int, shards: int = 1) -> Shapes:
    """The shape and type of every array of a batch of `rows` rows, by name.

    BERT's are always these. A language model's depend on the text in two places, and are given as the most that it can
    ask for: in the longest of its bucket, all words of each of the `shards` parts differ and one is as long as may be.

    >>> batch_shapes(BertExamples(length=128), rows=8)["mlm_positions"]
    ((8, 20), <class 'numpy.int32'>)
    >>> batch_shapes(LanguageModelExamples(length=20), rows=8, shards=2)["characters"]
    ((2, 256, 50), <class 'numpy.int32'>)
    """
    if isinstance(asked, BertExamples):
        return _bert(asked, rows)
    return _words(asked, rows, shards)


def _bert(asked: BertExamples, rows: int) -> Shapes:
    widths = dict.fromkeys(("tokens", "types", "positions", "segments"), asked.length)
    widths |= {f"mlm_{name}": asked.places for name in ("positions", "targets", "weights")}
    widths |= {f"nsp_{name}": asked.sequences for name in ("positions", "targets", "weights")}
    return {name: ((rows, width), np.float32 if "weights" in name else np.int32) for name, width in widths.items()}


def _words(asked: LanguageModelExamples, rows: int, shards: int) -> Shapes:
    if rows % shards:
        raise ValueError(f"{rows} rows cannot be split into {shards} equal parts; use a multiple of {shards}")
    shapes: Shapes = {"lengths": ((rows,), np.int32), "fresh": ((rows,), np.bool_)}
    for direction in ("forward", "backward"):
        shapes[f"words_{direction}"] = shapes[f"{direction}_targets"] = ((rows, asked.length), np.int32)
        shapes[f"{direction}_weights"] = ((rows, asked.length), np.float32)
    if asked.input == "characters":
        shapes["characters"] = ((shards, table_size(asked, rows // shards), asked.max_characters), np.int32)
    return shapes


def table_size(asked: LanguageModelExamples, rows: int) -> int:
    """Rows of the table of distinct words that hold any text of so many rows, both directions together.

    >>> table_size(LanguageModelExamples(length=20), rows=16)
    1024
    """
    size = asked.smallest_table
    while size < 2 * rows * asked.length:
        size *= 2
    return size
