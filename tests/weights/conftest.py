"""Writers of weight files, independent of the readers: TensorFlow bundle, torch zip, Hugging Face and ELMo folders."""

import io
import json
import pickle
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

NUMBERS = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int64": 9, "bool": 10, "bfloat16": 14, "float16": 19}


def slow_crc32c(data: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = (register >> 1) ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def masked(crc: int) -> bytes:
    return (((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, "little")


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def shape_proto(shape) -> bytes:
    return b"".join(field(2, field(1, size)) for size in shape)


def table(entries: dict[bytes, bytes], per_block: int = 4, compress=None) -> bytes:
    """Return a sorted string table; blocks restart their keys every other entry."""
    file = io.BytesIO()

    def block(pairs) -> bytes:
        content, restarts, last = b"", [], b""
        for number, (key, value) in enumerate(pairs):
            shared = 0
            if number % 2:
                while shared < min(len(key), len(last)) and key[shared] == last[shared]:
                    shared += 1
            else:
                restarts.append(len(content))
            content += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
            last = key
        content += b"".join(start.to_bytes(4, "little") for start in restarts or [0])
        content += max(len(restarts), 1).to_bytes(4, "little")
        stored = (compress(content) + b"\1") if compress else content + b"\0"
        handle = varint(file.tell()) + varint(len(stored) - 1)
        file.write(stored + masked(slow_crc32c(stored)))
        return handle

    keys = sorted(entries)
    index = []
    for start in range(0, len(keys), per_block):
        part = keys[start : start + per_block]
        index.append((part[-1], block([(key, entries[key]) for key in part])))
    footer = block([]) + block(index)
    file.write(footer.ljust(40, b"\0") + (0xDB4775248B80FB57).to_bytes(8, "little"))
    return file.getvalue()


def entry(array: np.ndarray, shard: int, offset: int, data: bytes) -> bytes:
    crc = varint(6 << 3 | 5) + masked(slow_crc32c(data))
    number = NUMBERS[str(array.dtype)]
    return (
        field(1, number) + field(2, shape_proto(array.shape)) + field(3, shard) + field(4, offset)
        + field(5, len(data)) + crc
    )  # fmt: skip


def extent_proto(first: int, size: int) -> bytes:
    return field(1, (field(1, first) if first else b"") + (field(2, size) if size >= 0 else b""))


def ordered_signed(number: int) -> bytes:
    if -64 <= number < 64:
        return bytes([0x80 ^ number & 0xFF])
    assert -8192 <= number < 8192
    return ((number & 0xFFFF) ^ 0xC000).to_bytes(2, "big")


@pytest.fixture(scope="session")
def write_bundle():
    """write(prefix, tensors, parts={name: rows}, shards=1, ...): tensors in `parts` are cut along their first axis."""

    def write(prefix: Path, tensors: dict, *, parts=None, shards=1, header=None, compress=None, edit=None) -> Path:
        files = [b""] * shards
        if header is None:
            header = field(1, shards) + field(3, field(1, 1))
        entries = {b"": header}
        count = 0

        def add(array: np.ndarray) -> bytes:
            nonlocal count
            shard = count % shards
            count += 1
            data = array.tobytes()
            written = entry(array, shard, len(files[shard]), data)
            files[shard] += data
            return written

        for name, array in tensors.items():
            rows = (parts or {}).get(name)
            if rows is None:
                entries[name.encode()] = add(array)
                continue
            slices, start = b"", 0
            for size in rows:
                extents = [(start, size)] + [(0, -1)] * (array.ndim - 1)
                slices += field(7, b"".join(extent_proto(*extent) for extent in extents))
                key = b"\0" + name.encode() + b"\0\1" + b"\1" + bytes([array.ndim])
                key += b"".join(ordered_signed(number) for extent in extents for number in extent)
                entries[key] = add(array[start : start + size])
                start += size
            entries[name.encode()] = field(1, NUMBERS[str(array.dtype)]) + field(2, shape_proto(array.shape)) + slices
        if edit:
            edit(entries)
        prefix.parent.mkdir(parents=True, exist_ok=True)
        prefix.with_name(prefix.name + ".index").write_bytes(table(entries, compress=compress))
        for shard, data in enumerate(files):
            Path(f"{prefix}.data-{shard:05d}-of-{shards:05d}").write_bytes(data)
        return prefix

    return write


def opcode_global(name: str) -> bytes:
    module, _, attribute = name.rpartition(".")
    return b"c" + module.encode() + b"\n" + attribute.encode() + b"\n"


def opcode_value(value) -> bytes:
    """Return a plain value as opcodes: a pickle without its first two bytes (protocol) and its last (stop)."""
    return pickle.dumps(value, 2)[2:-1]


def tensor_opcodes(key="0", kind="FloatStorage", size=6, offset=0, shape=(2, 3), strides=(3, 1)) -> bytes:
    storage = b"(" + opcode_value("storage") + opcode_global(f"torch.{kind}")
    storage += opcode_value(key) + opcode_value("cpu") + opcode_value(size) + b"tQ"
    layout = opcode_value(offset) + opcode_value(shape) + opcode_value(strides) + b"\x89"
    hooks = opcode_global("collections.OrderedDict") + b")R"
    return opcode_global("torch._utils._rebuild_tensor_v2") + b"(" + storage + layout + hooks + b"tR"


STORAGES = {"float32": "FloatStorage", "float16": "HalfStorage", "int64": "LongStorage", "float64": "DoubleStorage"}


@pytest.fixture(scope="session")
def write_torch():
    """write(path, {name: opcodes or array}, storages={key: bytes}, ...): a zip archive as torch.save writes it."""

    def write(path: Path, tensors, storages=None, *, pickled=None, compression=zipfile.ZIP_STORED, extra=None) -> Path:
        storages = dict(storages or {})
        body = b"}("
        for name, value in tensors.items():
            if isinstance(value, np.ndarray):
                key = f"t{len(storages)}"
                strides = tuple(stride // value.itemsize for stride in value.strides)
                storages[key] = value.tobytes()
                value = tensor_opcodes(key, STORAGES[str(value.dtype)], value.size, 0, value.shape, strides)
            body += opcode_value(name) + value
        with zipfile.ZipFile(path, "w", compression) as archive:
            archive.writestr("archive/data.pkl", pickled if pickled is not None else b"\x80\x02" + body + b"u.")
            archive.writestr("archive/byteorder", "little")
            for key, data in storages.items():
                archive.writestr(f"archive/data/{key}", data)
            for name, data in (extra or {}).items():
                archive.writestr(name, data)
        return path

    return write


@pytest.fixture(scope="session")
def theirs(goldens) -> dict[str, np.ndarray]:
    """Return the tensors of a small model for pretraining, with Hugging Face's names."""
    return load_file(goldens / "bert_tiny" / "model.safetensors")


@pytest.fixture(scope="session")
def theirs_config(goldens) -> dict:
    return json.loads((goldens / "bert_tiny" / "config.json").read_text())


@pytest.fixture
def hugging_face(tmp_path, theirs_config):
    """write(tensors, **config): a Hugging Face folder with those tensors, its config.json changed."""

    def write(tensors, name="model", **config) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        save_file({key: np.ascontiguousarray(value) for key, value in tensors.items()}, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(theirs_config | config), encoding="utf-8")
        return folder

    return write


def elmo_datasets(
    *, layers=2, dim=6, width=4, filters=((1, 2), (2, 3), (3, 4)), highways=1, embedding=3,
    characters=True, words=None, softmax=None, token_projection=True, projection=True,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Return the datasets of a released file in bilm-tf's shapes; `words` and `softmax` are numbers of rows."""
    rng = np.random.default_rng(0)
    total = sum(number for _, number in filters)
    shapes = {}
    if characters:
        shapes["char_embed"] = (261, embedding)
        for n, (window, number) in enumerate(filters):
            shapes |= {f"CNN/W_cnn_{n}": (1, window, embedding, number), f"CNN/b_cnn_{n}": (number,)}
        for n in range(highways):
            for gate in ("carry", "transform"):
                shapes |= {f"CNN_high_{n}/W_{gate}": (total, total), f"CNN_high_{n}/b_{gate}": (total,)}
        if token_projection:
            shapes |= {"CNN_proj/W_proj": (total, width), "CNN_proj/b_proj": (width,)}
    if words:
        shapes["embedding"] = (words, width)
    for direction in (0, 1):
        for layer in range(layers):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            shapes |= {f"{cell}/W_0": (2 * width, 4 * dim), f"{cell}/B": (4 * dim,)}
            if projection:
                shapes[f"{cell}/W_P_0"] = (dim, width)
    if softmax:
        shapes |= {"softmax/W": (softmax, width), "softmax/b": (softmax,)}
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def elmo_options(
    *, layers=2, dim=6, width=4, filters=((1, 2), (2, 3), (3, 4)), highways=1, embedding=3, characters=True, **extras
) -> dict:
    """Return the content of the `options.json` for these weights."""
    lstm = {"use_skip_connections": True, "projection_dim": width, "cell_clip": 3, "proj_clip": 3, "dim": dim}
    options = {"lstm": lstm | {"n_layers": layers}}
    if characters:
        options["char_cnn"] = {
            "activation": "relu",
            "filters": [list(pair) for pair in filters],
            "n_highway": highways,
            "embedding": {"dim": embedding},
            "n_characters": 262,
            "max_characters_per_token": 50,
        }
    return options | extras


@pytest.fixture(scope="session")
def elmo_made():
    """(datasets(…), options(…)) of an ELMo of some size, named and shaped as in released files."""
    return elmo_datasets, elmo_options


@pytest.fixture
def elmo_folder(tmp_path):
    """write(datasets, options, …): a folder with those; either may be None, or raw bytes."""

    def write(datasets, options, folder="elmo", weights="weights.hdf5", **how) -> Path:
        place = tmp_path / folder
        place.mkdir(parents=True, exist_ok=True)
        if isinstance(datasets, bytes):
            (place / weights).write_bytes(datasets)
        elif datasets is not None:
            with h5py.File(place / weights, "w") as file:
                for name, value in datasets.items():
                    file.create_dataset(name, data=value, **how)
        if isinstance(options, bytes):
            (place / "options.json").write_bytes(options)
        elif options is not None:
            (place / "options.json").write_text(json.dumps(options), encoding="utf-8")
        return place

    return write
