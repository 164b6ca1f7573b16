"""TensorFlow checkpoints (V2, "tensor bundle"), read without TensorFlow.

`<prefix>.index` is a sorted string table: the empty key holds a BundleHeaderProto, every other key is a tensor's name
and holds a BundleEntryProto with the position of its bytes in `<prefix>.data-NNNNN-of-MMMMM`. A partitioned variable
has an entry under its name that lists its slices, and one entry with the position of the bytes per slice, under an
encoded key.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 - teaches numpy the name "bfloat16"
import numpy as np

from bert_elmo_jax.files import read_text
from bert_elmo_jax.weights.crc32c import crc32c, unmask
from bert_elmo_jax.weights.protobuf import fields
from bert_elmo_jax.weights.sorted_table import is_table, read_table
from bert_elmo_jax.weights.stored import StoredTensor

# TensorFlow's type numbers. numpy cannot read the bytes of the `UNREADABLE` ones.
DTYPES = dict(enumerate("float32 float64 int32 uint8 int16 int8 string complex64 int64 bool".split(), start=1))
DTYPES |= {14: "bfloat16", 17: "uint16", 18: "complex128", 19: "float16", 20: "resource", 21: "variant"}
DTYPES |= {22: "uint32", 23: "uint64"}
UNREADABLE = {"string", "resource", "variant"}
VERSION = 1  # the only version of the layout so far

Extents = tuple[tuple[int, int], ...]  # (start, length) of a slice for each axis, length -1 for the whole axis


@dataclass(frozen=True)
class _Entry:
    dtype: str
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int
    slices: tuple[Extents, ...]


def read_tensor_bundle(prefix: str | Path) -> dict[str, StoredTensor]:
    """Return all tensors of a checkpoint by name; files are checked at once, numbers read and verified on demand."""
    prefix = Path(prefix)
    index = _index_file(prefix)
    table = read_table(index)
    try:
        shards = _shards(table)
        entries = {key: _entry(value) for key, value in table.items() if key}
        named = {key.decode(): entry for key, entry in entries.items() if not key.startswith(b"\0")}
        parts = {
            name: {extents: entries[slice_key(name, extents)] for extents in entry.slices}
            for name, entry in named.items()
            if entry.slices
        }
        for name, entry in named.items():
            _check(name, entry, parts.get(name), shards)
    except KeyError:
        raise ValueError(f"{index} is damaged: it lacks a slice of a partitioned tensor.") from None
    except (ValueError, TypeError) as problem:  # TypeError: a number instead of a message
        raise ValueError(f"{index} is a damaged or foreign checkpoint index: {problem}.") from None
    stored = [part for name, entry in named.items() for part in parts.get(name, {(): entry}).values()]
    files = _open_shards(prefix, shards, stored)
    tensors = {}
    for name, entry in named.items():
        read: Any = partial(_read, prefix, files, name, entry)
        if name in parts:
            read = partial(_read_parts, prefix, files, name, entry, parts[name])
        tensors[name] = StoredTensor(entry.shape, entry.dtype, read)
    return tensors


def checkpoint_prefix(path: str | Path) -> Path:
    """Return the prefix of a folder's checkpoint (the file `checkpoint` selects one of several), or the path."""
    path = Path(path)
    if not path.is_dir():
        return path.with_name(path.name.removesuffix(".index"))
    prefixes = sorted(index.name.removesuffix(".index") for index in path.glob("*.index"))
    if len(prefixes) == 1:
        return path / prefixes[0]
    if not prefixes:
        data = [file.name for file in sorted(path.glob("*.data-?????-of-?????"))]
        orphans = f"; without it, {', '.join(data)} cannot be read" if data else ""
        raise FileNotFoundError(f"{path} has no TensorFlow checkpoint: there is no file that ends with .index{orphans}")
    state = path / "checkpoint"
    if state.is_file():
        named = re.search(r'^model_checkpoint_path:\s*"(.*)"\s*$', read_text(state), re.MULTILINE)
        last = re.split(r"[/\\]", named[1])[-1] if named else None  # only the name counts: folders are moved
        if last in prefixes:
            return path / last
    listed = ", ".join(prefixes)
    raise ValueError(
        f"{path} has {len(prefixes)} checkpoints, give the path of one: {listed} (such as {path / prefixes[-1]})"
    )


def _index_file(prefix: Path) -> Path:
    index = prefix.with_name(prefix.name + ".index")
    if index.is_file():
        return index
    old = [path for path in sorted(prefix.parent.glob(f"{prefix.name}*")) if is_table(path)]
    if old:
        raise ValueError(
            f"{old[0]} is a TensorFlow checkpoint of version 1 (one file per shard, no .index), which is not "
            "supported. Load and save it once with TensorFlow 0.12 or newer (tf.compat.v1.train.Saver)."
        )
    data = sorted(path.name for path in prefix.parent.glob(f"{prefix.name}.data-*"))
    hint = f"; its data {', '.join(data)} exists: put the index in the same folder" if data else ""
    raise FileNotFoundError(f"no TensorFlow checkpoint at {prefix}: there is no {index.name}{hint}")


def _shards(table: dict[bytes, bytes]) -> int:
    """Return the number of data files; raise unless the header says version 1 and little-endian."""
    if b"" not in table:
        raise ValueError("it has no header, so it is not an index of tensors")
    header = dict(fields(table[b""]))
    shards, endianness, versions = header.get(1, 0), header.get(2, 0), list(fields(header.get(3, b"")))
    if endianness != 0:
        raise ValueError("its numbers are big-endian; only little-endian checkpoints are supported")
    if dict(versions).get(2, 0) > VERSION or (3, VERSION) in versions:
        raise ValueError(f"its layout version {dict(versions).get(1)} is not readable by readers of version {VERSION}")
    return shards


def _entry(message: bytes) -> _Entry:
    values: dict[int, Any] = {number: value for number, value in fields(message) if number != 7}
    shape = []
    for number, dimension in fields(values.get(2, b"")):
        if number == 3:
            raise ValueError("a tensor has no known shape")
        size = dict(fields(dimension)).get(1, 0)
        if not 0 <= size < 1 << 63:
            raise ValueError("a tensor has a negative dimension")
        shape.append(size)
    slices = []
    for number, part in fields(message):
        if number == 7:
            extents = [dict(fields(extent)) for _, extent in fields(part)]
            slices.append(tuple((extent.get(1, 0), extent.get(2, -1)) for extent in extents))
    kind, shard, offset, size, checksum = (int(values.get(number, 0)) for number in (1, 3, 4, 5, 6))
    return _Entry(DTYPES.get(kind, f"type {kind}"), tuple(shape), shard, offset, size, checksum, tuple(slices))


def slice_key(name: str, extents: Extents) -> bytes:
    """Return the key of one slice, in TensorFlow's order-preserving code of numbers and text."""
    escaped = name.encode().replace(b"\xff", b"\xff\0").replace(b"\0", b"\0\xff") + b"\0\x01"
    rank = len(extents).to_bytes((len(extents).bit_length() + 7) // 8, "big")
    numbers = [_signed(number) for extent in extents for number in extent]
    return b"\0" + escaped + bytes([len(rank)]) + rank + b"".join(numbers)


def _signed(number: int) -> bytes:
    """Encode a signed number: n bytes hold 7 n - 1 bits, and the n leading bits differ from the sign."""
    magnitude = number if number >= 0 else ~number
    size = magnitude.bit_length() // 7 + 1
    header = ((1 << size) - 1) << (8 * size - size)
    return ((number & ((1 << 8 * size) - 1)) ^ header).to_bytes(size, "big")


def _open_shards(prefix: Path, shards: int, entries: Sequence[_Entry]) -> dict[int, np.ndarray]:
    """Return memory maps of the data files that the entries use; raise if any are missing or too short."""
    ends: dict[int, int] = {}
    for entry in entries:
        ends[entry.shard] = max(ends.get(entry.shard, 0), entry.offset + entry.size)
    paths = {shard: Path(f"{prefix}.data-{shard:05d}-of-{shards:05d}") for shard in sorted(ends)}
    missing = [path.name for path in paths.values() if not path.is_file()]
    if missing:
        raise FileNotFoundError(
            f"{len(missing)} of the {shards} data files of the checkpoint {prefix} are missing: {', '.join(missing)}"
        )
    short = {shard: path.stat().st_size for shard, path in paths.items() if path.stat().st_size < ends[shard]}
    if short:
        listed = ", ".join(f"{paths[s].name} has {size} bytes of {ends[s]}" for s, size in short.items())
        raise ValueError(f"the checkpoint's data is cut short ({listed}): copy or download it again")
    return {
        shard: np.memmap(path, np.uint8, "r") if ends[shard] else np.empty(0, np.uint8) for shard, path in paths.items()
    }


def _check(name: str, entry: _Entry, parts: dict[Extents, _Entry] | None, shards: int) -> None:
    for extents, part in (parts or {(): entry}).items():
        if part.shard >= shards:
            raise ValueError(f"{name} refers to data file {part.shard} of {shards}")
        if entry.dtype in UNREADABLE or entry.dtype.startswith("type "):
            continue
        width = np.dtype(part.dtype).itemsize
        if part.size != math.prod(part.shape) * width:
            raise ValueError(f"{name} has shape {list(part.shape)} of {part.dtype} but {part.size} bytes")
        if parts and (
            part.dtype != entry.dtype or part.slices or part.shape != _resolve(name, entry.shape, extents)[1]
        ):
            raise ValueError(f"a slice of {name} has another shape or type than the whole tensor says")
    if parts and sum(math.prod(part.shape) for part in parts.values()) != math.prod(entry.shape):
        raise ValueError(f"the slices of {name} do not fill its shape {list(entry.shape)}")


def _resolve(name: str, shape: tuple[int, ...], extents: Extents) -> tuple[tuple[slice, ...], tuple[int, ...]]:
    """Return the position of a slice in the whole tensor, and its shape."""
    if len(extents) != len(shape):
        raise ValueError(f"a slice of {name} has {len(extents)} axes, the whole {len(shape)}")
    sizes = tuple(size if length == -1 else length for (_, length), size in zip(extents, shape))
    if any(start + length > size for (start, _), length, size in zip(extents, sizes, shape)):
        raise ValueError(f"a slice of {name} reaches past its shape {list(shape)}")
    return tuple(slice(start, start + length) for (start, _), length in zip(extents, sizes)), sizes


def _read(prefix: Path, files: dict[int, np.ndarray], name: str, entry: _Entry) -> np.ndarray:
    if entry.dtype in UNREADABLE or entry.dtype.startswith("type "):
        raise ValueError(f"{name} in {prefix} is of type {entry.dtype}, which is not an array of numbers")
    content = files[entry.shard][entry.offset : entry.offset + entry.size]
    if crc32c(np.asarray(content)) != unmask(entry.checksum):
        raise ValueError(f"the checksum of {name} in {prefix} is wrong: the file is damaged, copy or download it again")
    return np.asarray(content).view(np.dtype(entry.dtype).newbyteorder("<")).reshape(entry.shape)


def _read_parts(
    prefix: Path, files: dict[int, np.ndarray], name: str, entry: _Entry, parts: dict[Extents, _Entry]
) -> np.ndarray:
    values = np.empty(entry.shape, entry.dtype)
    filled = np.zeros(entry.shape, bool)
    for extents, part in parts.items():
        place, _ = _resolve(name, entry.shape, extents)
        values[place] = _read(prefix, files, name, part)
        filled[place] = True
    if not filled.all():
        raise ValueError(f"the slices of {name} in {prefix} overlap and leave gaps")
    return values
