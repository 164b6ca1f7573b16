"""Read PyTorch's `.bin` files without torch and without executing anything.

Both layouts hold a pickle that describes the tensors (storage, offset, strides) and the raw bytes of the storages.
Since PyTorch 1.6 a file is a zip archive (`data.pkl`, `data/0` …), before that a stream of pickles and storages.
"""

import io
import math
import mmap
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 - teaches numpy the name "bfloat16"
import numpy as np

from bert_elmo_jax.weights.pickle_machine import Called, Name, run_pickle
from bert_elmo_jax.weights.stored import StoredTensor, what_is

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
LEGACY_PROTOCOL = 1001
STORAGES = {
    "torch DoubleStorage": "float64",
    "torch FloatStorage": "float32",
    "torch HalfStorage": "float16",
    "torch BFloat16Storage": "bfloat16",
    "torch LongStorage": "int64",
    "torch IntStorage": "int32",
    "torch ShortStorage": "int16",
    "torch CharStorage": "int8",
    "torch ByteStorage": "uint8",
    "torch BoolStorage": "bool",
    "torch ComplexFloatStorage": "complex64",
    "torch ComplexDoubleStorage": "complex128",
    "torch.storage UntypedStorage": "uint8",  # the tensor has the type
}
DTYPES = {f"torch {name}": name for name in (*STORAGES.values(), "uint16", "uint32", "uint64")}
# The arguments that rebuild a tensor: storage, offset, shape, strides, then gradient, hooks, type and metadata.
REBUILD = {
    "torch._utils _rebuild_tensor": 4,
    "torch._utils _rebuild_tensor_v2": 6,
    "torch._utils _rebuild_tensor_v3": 7,
}
PARAMETER, SIZE = "torch._utils _rebuild_parameter", "torch Size"
ALLOWED = STORAGES.keys() | DTYPES.keys() | REBUILD.keys() | {PARAMETER, SIZE}
LARGEST_PICKLE = 1 << 26  # bytes; BERT-large has 60,000
MOST_AXES = 32
LARGEST = 1 << 48  # size, stride or offset: beyond any file
MOST_SHARED = 16  # times that all tensors may be larger than the file: some models store tied layers under all names
SHARED_FREELY = 1 << 28  # bytes of tensors that are allowed in any case


@dataclass(frozen=True, eq=False)
class _Storage:
    key: str
    dtype: str
    size: int  # in elements


Find = Callable[[str], np.ndarray]  # returns the bytes of a storage


def read_torch_pickle(path: str | Path) -> dict[str, StoredTensor]:
    """Return all tensors of a `.bin` or `.pt` file by name, each a view of the file.

    The file holds a dictionary of tensors, or a dictionary with one such dictionary inside. Anything other than tensors
    and containers is refused, and sizes and strides are checked against the length of the storages.
    """
    path = Path(path)
    with path.open("rb") as file:
        start = file.read(2)
    try:
        if start == b"PK":
            content, find = _open_zip(path)
        elif start[:1] == b"\x80":
            content, find = _open_legacy(path)
        else:
            raise ValueError(f"it is not a file of torch.save but {what_is(path)}")
        tensors = {name: _tensor(name, value, find) for name, value in _dictionary(content).items()}
        total = sum(math.prod(tensor.shape) * np.dtype(tensor.dtype).itemsize for tensor in tensors.values())
        if total > max(SHARED_FREELY, MOST_SHARED * (size := path.stat().st_size)):
            raise ValueError(f"its tensors together have {total:,} bytes, many times the {size:,} bytes of the file")
        return tensors
    except (ValueError, zipfile.BadZipFile) as problem:
        raise ValueError(f"{path} cannot be read as PyTorch weights: {problem}.") from None


def _storage(storages: dict[str, _Storage], id: Any) -> _Storage:
    """Return the storage of an id: ("storage", type, key, device, elements), and in old files a view, which is None."""
    if not isinstance(id, tuple) or len(id) not in (5, 6) or id[0] != "storage" or (len(id) == 6 and id[5] is not None):
        raise ValueError("it refers to something outside its pickle that is not a plain storage")
    _, kind, key, _, size = id[:5]
    if not isinstance(kind, Name) or kind.text not in STORAGES or not isinstance(key, str) or not _is_size(size):
        raise ValueError("the description of a storage is malformed")
    storage = storages.setdefault(key, _Storage(key, STORAGES[kind.text], size))
    if (storage.dtype, storage.size) != (STORAGES[kind.text], size):
        raise ValueError(f"storage {key!r} is described twice, differently")
    return storage


def _open_zip(path: Path) -> tuple[Any, Find]:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError):  # the second: an unused version of the format
        raise ValueError("it begins like a zip archive but is cut short: copy or download it again") from None
    with archive:
        records = {info.filename: info for info in archive.infolist()}
    pickles = [name for name in records if name == "data.pkl" or name.endswith("/data.pkl")]
    if len(pickles) != 1 or pickles[0].replace("data.pkl", "constants.pkl") in records:
        kind = "a TorchScript program" if pickles else "a zip archive of something else"
        raise ValueError(f"it is {kind}, not a file of torch.save")
    folder = pickles[0].removesuffix("data.pkl")
    file = np.memmap(path, np.uint8, "r")

    def find(name: str) -> np.ndarray:
        info = records.get(folder + name)
        if info is None:
            raise ValueError(f"it lacks the record {name}")
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise ValueError(f"its record {name} is compressed or encrypted, which torch.save never does")
        header = file[info.header_offset : info.header_offset + 30].tobytes()
        start = (
            info.header_offset + 30 + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        )
        if header[:4] != b"PK\3\4" or start + info.file_size > len(file):
            raise ValueError(f"its record {name} reaches past its end")
        return np.asarray(file[start : start + info.file_size])

    if folder + "byteorder" in records and find("byteorder").tobytes() != b"little":
        raise ValueError("its numbers are big-endian; only little-endian files are supported")
    pickle = find("data.pkl")
    if len(pickle) > LARGEST_PICKLE:
        raise ValueError(f"its pickle has {len(pickle):,} bytes, too many for a list of tensors")
    content = run_pickle(io.BytesIO(pickle.tobytes()), ALLOWED, partial(_storage, {}))
    return content, lambda key: find(f"data/{key}")


def _open_legacy(path: Path) -> tuple[Any, Find]:
    storages: dict[str, _Storage] = {}
    with path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as stream:
        read = partial(run_pickle, stream, ALLOWED, partial(_storage, storages))
        magic = read()
        if magic != LEGACY_MAGIC:
            raise ValueError("it is a pickle, but not of torch.save")
        protocol, system = read(), read()
        if protocol != LEGACY_PROTOCOL or not isinstance(system, dict) or system.get("little_endian") is not True:
            raise ValueError("it has an unknown version or big-endian numbers")
        content, keys = read(), read()
        at = stream.tell()
    file = np.memmap(path, np.uint8, "r")
    if not isinstance(keys, list) or not all(isinstance(key, str) and key in storages for key in keys):
        raise ValueError("its list of storages is damaged")
    places = {}
    for key in keys:  # each storage is its number of elements and their bytes
        storage = storages[key]
        size = storage.size * np.dtype(storage.dtype).itemsize
        if at + 8 + size > len(file):
            raise ValueError(
                f"storage {key!r} should end at byte {at + 8 + size} of {len(file)}: the file is cut short"
            )
        if int.from_bytes(file[at : at + 8].tobytes(), "little") != storage.size:
            raise ValueError(f"storage {key!r} has another length than its description says")
        places[key] = np.asarray(file[at + 8 : at + 8 + size])
        at += 8 + size

    def find(key: str) -> np.ndarray:
        if key not in places:
            raise ValueError(f"it lacks storage {key!r}")
        return places[key]

    return content, find


def _dictionary(content: Any) -> dict[str, Called]:
    """Return the dictionary of tensors, or the only one inside it (as in the checkpoint of a training script)."""
    outer = content.values() if isinstance(content, dict) else ()
    for candidates in ([content], [value for value in outer if isinstance(value, dict)]):
        dictionaries = [
            {
                str(name): value
                for name, value in each.items()
                if isinstance(value, Called) and value.name in {*REBUILD, PARAMETER}
            }
            for each in candidates
            if isinstance(each, dict)
        ]
        dictionaries = [tensors for tensors in dictionaries if tensors]
        if len(dictionaries) > 1:
            raise ValueError("it holds several dictionaries of tensors: save only one of them")
        if dictionaries:
            return dictionaries[0]
    raise ValueError("it holds no dictionary of tensors")


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST


def _tensor(name: str, called: Any, find: Find) -> StoredTensor:
    if isinstance(called, Called) and called.name == PARAMETER and called.arguments:
        called = called.arguments[0]
    if not isinstance(called, Called) or len(called.arguments) < REBUILD.get(called.name, MOST_AXES):
        raise ValueError(f"the description of the tensor {name} is malformed")
    needed = REBUILD[called.name]
    storage, offset, shape, strides = called.arguments[:4]
    shape, strides = (_sizes(value) for value in (shape, strides))
    if (
        not isinstance(storage, _Storage)
        or not _is_size(offset)
        or shape is None
        or strides is None
        or len(shape) != len(strides)
    ):
        raise ValueError(f"the tensor {name} has an invalid storage, offset, shape or strides")
    if any(called.arguments[needed:]):
        raise ValueError(f"the tensor {name} is a conjugate or negative view, which is not supported")
    dtype = storage.dtype
    if needed == 7:
        dtype = DTYPES.get(getattr(called.arguments[6], "text", ""), "")
    if not dtype:
        raise ValueError(f"the tensor {name} has an unknown type")
    content = find(storage.key)
    size = storage.size * np.dtype(storage.dtype).itemsize
    if size > len(content):
        raise ValueError(
            f"storage {storage.key!r} of {name} announces {storage.size} elements but has {len(content)} bytes"
        )
    width = np.dtype(dtype).itemsize
    elements = content[: size // width * width].view(dtype)
    count = math.prod(shape)
    reach = offset + sum((axis - 1) * stride for axis, stride in zip(shape, strides)) + 1 if count else 0
    if count > len(elements) or reach > len(elements) or math.prod(size for size in shape if size) > LARGEST:
        raise ValueError(
            f"the tensor {name} of shape {list(shape)} reaches past its storage of {len(elements)} elements"
        )
    if not count:
        return StoredTensor(shape, dtype, partial(np.empty, shape, dtype))
    view = np.lib.stride_tricks.as_strided(
        elements[offset:], shape, [stride * width for stride in strides], writeable=False
    )
    return StoredTensor(shape, dtype, lambda: view)


def _sizes(value: Any) -> tuple[int, ...] | None:
    if isinstance(value, Called) and value.name == SIZE and len(value.arguments) == 1:
        value = value.arguments[0]
    good = isinstance(value, tuple | list) and len(value) <= MOST_AXES and all(_is_size(size) for size in value)
    return tuple(value) if good else None
