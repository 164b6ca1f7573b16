"""Shapes and types of the arrays in a training batch, so that a step can be compiled before any text is read."""

import numpy as np

from bert_elmo_jax.data.rows.pieces import PieceExamples
from bert_elmo_jax.data.rows.stream import LanguageModelExamples

Shapes = dict[str, tuple[tuple[int, ...], type[np.generic]]]


def batch_shapes(asked: PieceExamples | LanguageModelExamples, rows: int, shards: int = 1) -> Shapes:
    """Return the shape and type of every array in a batch of `rows` rows, by name.

    BERT batches always have these shapes. The length and the word table of a language-model batch vary with the text;
    the shapes returned are upper bounds: the longest bucket, with no word repeated within any of the `shards` parts.
    """
    if isinstance(asked, PieceExamples):
        widths = dict.fromkeys(("tokens", "types", "positions", "segments"), asked.length)
        widths |= {f"mlm_{name}": asked.places for name in ("positions", "targets", "weights")}
        widths |= {f"nsp_{name}": asked.sequences for name in ("positions", "targets", "weights")}
        return {name: ((rows, width), np.float32 if "weights" in name else np.int32) for name, width in widths.items()}
    if rows % shards:
        raise ValueError(f"{rows} rows cannot be split into {shards} equal parts; use a multiple of {shards}")
    shapes: Shapes = {"lengths": ((rows,), np.int32), "fresh": ((rows,), np.bool_)}
    for direction in ("forward", "backward"):
        shapes[f"words_{direction}"] = shapes[f"{direction}_targets"] = ((rows, asked.length), np.int32)
        shapes[f"{direction}_weights"] = ((rows, asked.length), np.float32)
    if asked.input == "characters":
        size = asked.table_size(2 * (rows // shards) * asked.length)  # both directions
        shapes["characters"] = ((shards, size, asked.max_characters), np.int32)
    return shapes
