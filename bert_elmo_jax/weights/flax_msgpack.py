"""Read the `flax_model.msgpack` of transformers' former Flax classes, without running Flax's decoder.

A file is a tree of maps whose leaves are arrays: msgpack extension 1 with (shape, dtype, bytes). Everything else is
refused, and a shape must describe exactly the bytes that are there.
"""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import msgpack
import numpy as np

from bert_elmo_jax.files import read_bytes
from bert_elmo_jax.weights.stored import StoredTensor, unreadable

ARRAY = 1  # Flax's code of an array among the extensions of msgpack
MOST_AXES = 32
DTYPES = {name: np.dtype(name) for name in ("bool", "float16", "float32", "float64")}
DTYPES |= {f"{kind}{bits}": np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
DTYPES["bfloat16"] = np.dtype(ml_dtypes.bfloat16)
# Flax splits arrays of more than a gigabyte into maps with these keys.
CHUNKED, CHUNKS, SHAPE = "__msgpack_chunked_array__", "chunks", "shape"


def read_flax(path: str | Path) -> dict[str, StoredTensor]:
    """Return the tensors of a file under the names and in the layout of PyTorch."""
    path = Path(path)
    content = read_bytes(path, largest=1 << 36)
    try:
        # Lists occur in arrays only; a limit keeps a damaged file from reserving memory for long ones.
        tree = msgpack.unpackb(content, ext_hook=_read_array, max_array_len=MOST_AXES)
    except (ValueError, TypeError, UnicodeDecodeError, msgpack.UnpackException) as problem:
        begins_like_a_map = bool(content) and (0x80 <= content[0] <= 0x8F or content[0] in (0xDE, 0xDF))
        raise unreadable(path, "a msgpack file of Flax", begins_like_a_map, problem) from None
    if not isinstance(tree, dict):
        raise ValueError(f"{path} holds a {type(tree).__name__} instead of a tree of parameters: download it again")
    if isinstance(tree.get("params"), dict):  # next to the statistics of other layers
        tree = tree["params"]
    tensors: dict[str, StoredTensor] = {}
    for name, array in _leaves(tree, path):
        if turn_name(name) in tensors:
            raise ValueError(f"{path} has two tensors that PyTorch calls {turn_name(name)}: download it again")
        array = array.T if name.endswith("/kernel") else array
        tensors[turn_name(name)] = StoredTensor(array.shape, array.dtype.name, partial(np.asarray, array))
    return tensors


def turn_name(name: str) -> str:
    """Return PyTorch's name of a parameter.

    >>> turn_name("bert/encoder/layer/0/output/LayerNorm/scale")
    'bert.encoder.layer.0.output.LayerNorm.weight'
    """
    *modules, kind = name.split("/")
    return ".".join([*modules, "weight" if kind in ("kernel", "embedding", "scale") else kind])


def _leaves(tree: dict[str, Any], path: Path) -> Iterator[tuple[str, np.ndarray]]:
    waiting = [("", tree)]
    while waiting:
        prefix, branch = waiting.pop()
        for key, value in branch.items():
            name = f"{prefix}{key}"
            if isinstance(value, dict) and CHUNKED in value:
                value = _join_chunks(value, name, path)
            if isinstance(value, np.ndarray):
                yield name, value
            elif isinstance(value, dict):
                waiting.append((f"{name}/", value))
            else:
                raise ValueError(f"{path}: {name} is a {type(value).__name__}; a parameter is an array")


def _read_array(code: int, content: bytes) -> np.ndarray:
    """Return the array of an extension of msgpack; raise on any other content."""
    if code != ARRAY:
        raise ValueError(f"an extension of type {code}, where only arrays, type {ARRAY}, are expected")
    match msgpack.unpackb(content, max_array_len=MOST_AXES, max_map_len=0, max_ext_len=0):
        case [[*sizes], str(dtype), bytes(numbers)] if dtype in DTYPES:
            return _shape(np.frombuffer(numbers, DTYPES[dtype]), sizes)
        case [_, dtype, bytes()]:
            raise ValueError(f"an array of the type {dtype!r:.40}; expected one of {', '.join(DTYPES)}")
    raise ValueError("an array that is not (shape, type, bytes)")


def _shape(numbers: np.ndarray, sizes: list[Any]) -> np.ndarray:
    if not all(type(size) is int and size >= 0 for size in sizes) or math.prod(sizes) != numbers.size:
        raise ValueError(f"an array of the shape {sizes!r:.60} with {numbers.size:,} numbers")
    return numbers.reshape(sizes)


def _join_chunks(parts: dict[str, Any], name: str, path: Path) -> np.ndarray:
    try:
        sizes, chunks = ([parts[key][str(n)] for n in range(len(parts[key]))] for key in (SHAPE, CHUNKS))
        return _shape(np.concatenate(chunks), sizes)
    except (KeyError, TypeError, ValueError) as problem:
        raise ValueError(
            f"{path}: the parts of {name} do not make up an array ({problem}): download it again"
        ) from None
