"""An exported function of a model: its inputs with symbolic sizes, its outputs, and random inputs to check it with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from bert_elmo_jax.nn.int8_kernels import is_int8

IDS, MASK, TYPES = "input_ids", "attention_mask", "token_type_ids"
VECTORS = "last_hidden_state"


class Input(NamedTuple):
    """An input: its sizes, which may be symbols, and its type; ids are below `high`, a mask has the `high` 2."""

    sizes: str
    high: int = 2
    dtype: Any = np.int32


@dataclass(frozen=True)
class PlainForward:
    """The function `(params, ids, mask[, types]) -> arrays` of a model, and the kind of its outputs.

    `kind` is vectors, sentences, classify, regress, tag, read, words, network or write; `max_length` is the largest
    number of pieces of a row, None if there is no limit.
    """

    kind: str
    function: Callable[..., tuple[Any, ...]]
    read: Mapping[str, Input]
    outputs: tuple[str, ...]
    max_length: int | None
    params: Any

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return tuple(self.read)

    def symbolic_inputs(self) -> dict[str, jax.ShapeDtypeStruct]:
        """Return the inputs with symbolic sizes."""
        limit = [] if self.max_length is None else [f"length <= {self.max_length}"]
        scope = jax.export.SymbolicScope(limit)
        return {
            name: jax.ShapeDtypeStruct(jax.export.symbolic_shape(x.sizes, scope=scope), x.dtype)
            for name, x in self.read.items()
        }

    def example(self, rows: int, length: int, seed: int = 0) -> dict[str, np.ndarray]:
        """Return random inputs of rows of different lengths."""
        draw, lengths = np.random.default_rng(seed), np.maximum(length - np.arange(rows) % 3, 1)
        arrays: dict[str, np.ndarray] = {}
        for name, x in self.read.items():
            sizes = {"batch": rows, "length": length, "words": length, "source": length, "past": max(length - 1, 1)}
            shape = tuple(
                sum(sizes.get(part.strip()) or int(part) for part in size.split("+")) for size in x.sizes.split(",")
            )
            if x.dtype != np.int32:
                arrays[name] = draw.normal(size=shape).astype(np.float32)
                arrays[name] = arrays[name] > -1 if x.dtype == np.bool_ else arrays[name].astype(x.dtype)
                continue
            masks = np.arange(shape[1])[None, :] < lengths[:, None] + shape[1] - length
            real = masks.reshape(*shape[:2], *(1,) * (len(shape) - 2))
            ids = np.ones(shape, np.int64) if x.high == 2 else draw.integers(1, x.high, shape)
            arrays[name] = ids * (0 if name == TYPES else 1) * real
        return arrays


def check_numbers(model: Any) -> None:
    """Raise ValueError if a model computes in another type than float32."""
    parts: list[Any] = [model, getattr(model, "encoder", None)]
    for part in parts:
        params = getattr(part, "params", None)
        if params is None:
            continue
        if is_int8(params):
            raise ValueError(f"{part.source} is an int8 model: export the model that it was made from, with --int8")
        dtype = getattr(part.config, "dtype", "float32")
        if dtype != "float32":
            raise ValueError(f"{part.source} computes in {dtype}: load it without dtype= to export it")
