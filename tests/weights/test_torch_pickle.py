"""PyTorch files: written by torch, hostile, and broken."""

import os
import pickle
import re
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bert_elmo_jax.weights.torch_pickle import read_torch_pickle

from .conftest import tensor_opcodes as tensor

STORAGE = {"0": np.arange(6, dtype=np.float32).tobytes()}
FIRST = b"\x80\x02"


@pytest.mark.parametrize("name", ["zip.bin", "legacy.bin", "nested.bin"])
def test_files_that_torch_wrote(goldens, name):
    folder = goldens / "torch_pickle"
    truth = np.load(folder / "truth.npz")
    tensors = read_torch_pickle(folder / name)
    assert tensors.keys() == set(truth)
    for key in truth:
        tensor, read = tensors[key], tensors[key].read()
        assert (read.shape, str(read.dtype)) == (tensor.shape, tensor.dtype) and read.shape == truth[key].shape
        np.testing.assert_array_equal(read.astype(truth[key].dtype), truth[key])
    assert tensors["torch.bfloat16"].dtype == "bfloat16"
    assert np.shares_memory(tensors["tied"].read(), tensors["plain"].read())
    with pytest.raises(ValueError, match="read-only"):
        tensors["plain"].read()[0] = 1


def test_types_without_a_storage_and_modules(goldens):
    (small,) = read_torch_pickle(goldens / "torch_pickle" / "untyped.bin").values()
    assert small.dtype == "uint16" and small.read().tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match=r"module.bin .* asks for torch.nn.modules.linear.Linear, which is refused"):
        read_torch_pickle(goldens / "torch_pickle" / "module.bin")


def test_korean_names_strides_and_views_of_one_storage(write_torch, tmp_path):
    matrix = np.arange(12, dtype=np.float32).reshape(3, 4)
    path = write_torch(tmp_path / "m.bin", {"층.무게": matrix, "cut": np.ones(3, np.float16)})
    np.testing.assert_array_equal(read_torch_pickle(path)["층.무게"].read(), matrix)
    views = {  # opcodes and expected values
        "all": (tensor(), [[0, 1, 2], [3, 4, 5]]),
        "transposed": (tensor(shape=(3, 2), strides=(1, 3)), [[0, 3], [1, 4], [2, 5]]),
        "last": (tensor(offset=5, shape=(1,), strides=(1,)), [5]),
        "column": (tensor(offset=1, shape=(2,), strides=(3,)), [1, 4]),
        "scalar": (tensor(offset=4, shape=(), strides=()), 4),
        "repeated": (tensor(shape=(6,), strides=(0,)), [0] * 6),
        "nothing": (tensor(shape=(0, 100), strides=(1, 1)), []),
    }
    path = write_torch(path, {name: opcodes for name, (opcodes, _) in views.items()}, STORAGE)
    read = {name: stored.read().tolist() for name, stored in read_torch_pickle(path).items()}
    assert read == {name: values for name, (_, values) in views.items()}


def test_tensors_that_share_a_storage_may_not_be_many_times_the_file(write_torch, tmp_path):
    side = 1 << 10
    views = {str(number): tensor("0", size=side**2, shape=(side, side), strides=(side, 1)) for number in range(300)}
    path = write_torch(tmp_path / "m.bin", views, {"0": bytes(4 * side**2)})
    with pytest.raises(ValueError, match=r"m\.bin .*its tensors together have 1,258,291,200 bytes, many times the 4,"):
        read_torch_pickle(path)
    path = write_torch(tmp_path / "m.bin", {name: views[name] for name in "123456"}, {"0": bytes(4 * side**2)})
    assert len(read_torch_pickle(path)) == 6


class Evil:
    def __init__(self, function, *arguments):
        self.how = (function, arguments)

    def __reduce__(self):
        return self.how


def evil_state(value) -> bytes:
    return pickle.dumps({"embeddings.weight": value}, 2)


HOSTILE = [  # a pickle, and the name or operation that it asks for



    (evil_state(Evil(os.system, "touch pwned")), f"{os.system.__module__}.system"),
    (evil_state(Evil(eval, "open('pwned', 'w')")), "__builtin__.eval"),
    (pickle.dumps({"a": Evil(exec, "open('pwned', 'w')")}, 4), "builtins.exec"),
    (evil_state(Evil(getattr, {}, "clear")), "__builtin__.getattr"),
    (evil_state(open), f"{open.__module__}.open"),
    (b"\x80\x02}X\x01\0\0\0acos\nsystem\n(X\x0b\0\0\0touch pwned" + b"tRs.", "os.system"),
    (b"\x80\x02(X\x0b\0\0\0touch pwnedios\nsystem\n.", "os.system"),
    (b"\x80\x02(cos\nsystem\nX\x0b\0\0\0touch pwnedo.", "os.system"),
    (b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x0btouch pwned\x85R.", "posix.system"),
    (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2.__globals__\n.", "torch._utils._rebuild_tensor_v2.__globals__"),
    (b"\x80\x02ctorch\nload\n.", "torch.load"),
    (b"\x80\x02ctorch.storage\n_load_from_bytes\n.", "torch.storage._load_from_bytes"),
    (b"\x80\x02ccollections\nnamedtuple\n.", "collections.namedtuple"),
    (b"\x80\x02ccollections\nOrderedDict\n)\x81.", "the pickle operation NEWOBJ"),
    (b"\x80\x04ccollections\nOrderedDict\n)}\x92.", "the pickle operation NEWOBJ_EX"),
    (b"\x80\x02(ccollections\nOrderedDict\no.", "the pickle operation OBJ"),
    (b"\x80\x02\x82\x01.", "the pickle operation EXT1"),
    (b"\x80\x02\x84\x01\x00\x00\x00.", "the pickle operation EXT4"),
    (b"\x80\x02ccollections\nOrderedDict\n}X\x08\0\0\0__code__Nsb.", "a change of a Name"),
    (b"\x80\x02]}b.", "a change of a list"),
    (b"\x80\x02]}\x85R.", "a call of a list"),
    (b"\x80\x02ccollections\nOrderedDict\n]R.", "a call of a Name"),
    (b"\x80\x02}]Ns.", "a dictionary key of type list"),
    (b"\x80\x02Pevil\n.", "the pickle operation PERSID"),
    (b"\x80\x022.", "the pickle operation DUP"),
    (b"\x80\x05\x96\x01\0\0\0\0\0\0\0a.", "the pickle operation BYTEARRAY8"),
    (b"\x80\x04\x8f.", "the pickle operation EMPTY_SET"),
]  # fmt: skip


def legacy(
    pickled: bytes, keys=(), data: bytes = b"", magic=0x1950A86A20F9469CFC6C, protocol=1001, little=True
) -> bytes:
    system = {"protocol_version": 1001, "little_endian": little, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    front = b"".join(pickle.dumps(value, 2) for value in (magic, protocol, system))
    return front + pickled + pickle.dumps(list(keys), 2) + data


@pytest.mark.parametrize("layout", ["zip", "legacy"])
def test_everything_else_is_refused_by_name(write_torch, tmp_path, monkeypatch, layout):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "pytorch_model.bin"
    for pickled, asks in HOSTILE:
        write_torch(path, {}, pickled=pickled) if layout == "zip" else path.write_bytes(legacy(pickled))
        with pytest.raises(ValueError, match=re.escape(f"asks for {asks}, which is refused")) as problem:
            read_torch_pickle(path)
        assert str(path) in str(problem.value)
        assert not (tmp_path / "pwned").exists()


COPIES = b"]X" + struct.pack("<I", 100_000) + b"x" * 100_000 + b"q\x00a(" + b"h\x00" * 100 + b"e"


def multiples(number: int, count: int) -> bytes:
    """Return a dictionary with the multiples of a number as keys."""
    keys = (number * (n + 1) for n in range(count))
    return b"}(" + b"".join(b"\x8a\x0a" + key.to_bytes(10, "little") + b"N" for key in keys) + b"u"


def test_small_pickles_do_not_take_much_memory_or_time(write_torch, tmp_path):
    """One string as 100 pairs would take 80 MB, and keys with the same hash quadratic time."""
    for value, message in (
        (b"ccollections\nOrderedDict\n" + COPIES + b"\x85R", "an OrderedDict of something else than pairs"),
        (multiples(2**61 - 1, 2000), "the dictionary key 2,305,843,009,213,693,951, larger than any"),
    ):
        path = write_torch(tmp_path / "m.bin", {}, pickled=FIRST + value + b".")
        tracemalloc.start()
        with pytest.raises(ValueError, match=rf"m\.bin .*{message}"):
            read_torch_pickle(path)
        assert tracemalloc.get_traced_memory()[1] < 20e6
        tracemalloc.stop()


def test_old_dictionaries_are_lists_of_pairs_and_old_optimisers_number_parameters_by_addresses(write_torch, tmp_path):
    state = b"X\x05\0\0\0state" + multiples(140_185_329_231_440, 2)
    pairs = b"ccollections\nOrderedDict\n](](X\x01\0\0\0a" + tensor() + b"e](" + state + b"ee\x85R."
    assert list(read_torch_pickle(write_torch(tmp_path / "m.bin", {}, STORAGE, pickled=FIRST + pairs))) == ["a"]


BROKEN = [
    *(b"", b".", b"\x80\x02.", b"\x80\x02}", b"\x80\x02s.", b"\x80\x02}X\x01\0\0\0a.", b"\x80\x02(}."),
    *(b"\x80\x02}(Nu.", b"\x80\x02h\x05.", b"\x80\x02q\x05.", b"\x80\x02t.", b"\x80\x02\x86.", b"\x80\x02N\x86."),
    *(b"\x80\x02Na.", b"\x80\x02NNa.", b"\x80\x02X\xff\xff\xff\xffabc.", b"\x80\x04\x8d" + b"\xff" * 7 + b"\x7fabc."),
    *(b"\x80\x02\x8b\xff\xff\xff\x7f.", b"\x80\x02\x8a\xff" + b"\xff" * 255 + b"."),
    *(b"\x80\x02\x8a\x64" + b"\x01" * 100 + b".", b"\x80\x02X\x02\0\0\0\xff\xfe.", b"\x80\x02\xff."),
    *(b"\x80\x02" + b"(" * 10000 + b".", b"\x80\x02" + b"]" * 10000 + b".", b"\x80\x02N" + b"\x85" * 10000 + b"."),
    *(b"\x80\x02ccollections\nOrderedDict\n]N\x85a\x85R.", b"\x80\x02K\x01Q.", b"\x80\x02(X\x07\0\0\0storagetQ."),
    *(b"\x80\x02(X\x06\0\0\0moduleNNNNtQ.", b"\x80\x04\x95" + b"\xff" * 8 + b".", b"\x80\x02c\xff\n\xfe\n."),
]  # fmt: skip


@pytest.mark.parametrize("layout", ["zip", "legacy"])
def test_broken_pickles(write_torch, tmp_path, layout):
    path = tmp_path / "m.bin"
    for pickled in BROKEN:
        write_torch(path, {}, pickled=pickled) if layout == "zip" else path.write_bytes(legacy(pickled))
        with pytest.raises(ValueError, match=r"m.bin cannot be read as PyTorch weights"):
            read_torch_pickle(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60))
def test_any_bytes_as_a_pickle_are_an_error_or_nothing(write_torch, tmp_path, noise):
    path = write_torch(tmp_path / "m.bin", {}, pickled=FIRST + noise)
    with pytest.raises(ValueError, match="cannot be read as PyTorch weights"):
        read_torch_pickle(path)


def test_a_backslash_in_a_name_is_no_warning(goldens, tmp_path):
    content = bytearray((goldens / "torch_pickle" / "legacy.bin").read_bytes())
    content[147] ^= 53  # found by the test below
    (tmp_path / "legacy.bin").write_bytes(content)
    with pytest.raises(ValueError, match=r"legacy\.bin"):
        read_torch_pickle(tmp_path / "legacy.bin")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.sampled_from(["zip.bin", "legacy.bin"]))
def test_a_changed_byte_never_reads_outside(goldens, tmp_path, data, name):
    content = bytearray((goldens / "torch_pickle" / name).read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    path = tmp_path / name
    path.write_bytes(content)
    try:
        tensors = read_torch_pickle(path)
    except ValueError as problem:
        assert name in str(problem)
    else:
        for tensor in tensors.values():
            assert tensor.read().shape == tensor.shape


@pytest.mark.parametrize("name", ["zip.bin", "legacy.bin"])
def test_every_truncation_is_an_error(goldens, tmp_path, name):
    content = (goldens / "torch_pickle" / name).read_bytes()
    for size in [*range(0, len(content), 97), len(content) - 1]:
        (tmp_path / name).write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"cannot be read as PyTorch weights"):
            read_torch_pickle(tmp_path / name)


INVALID = "invalid storage, offset, shape or strides"
IMPOSSIBLE = [  # a change of a tensor's description, and the message
    ({"shape": (3, 3)}, "reaches past its storage of 6 elements"),
    ({"shape": (7,), "strides": (0,)}, "reaches past"),
    ({"shape": (1 << 40,), "strides": (0,)}, "reaches past"),
    ({"shape": (1 << 47,) * 30, "strides": (0,) * 30}, "reaches past"),
    ({"shape": (0, 1 << 47, 1 << 47), "strides": (1, 1, 1)}, "reaches past"),
    ({"offset": 1}, "reaches past"),
    ({"offset": 6, "shape": (), "strides": ()}, "reaches past"),
    ({"strides": (4, 1)}, "reaches past"),
    ({"strides": (1 << 47, 1)}, "reaches past"),
    ({"strides": (-3, 1)}, INVALID),
    ({"offset": -1}, INVALID),
    ({"shape": (-2, -3)}, INVALID),
    ({"shape": (2, 3, 1)}, INVALID),
    ({"shape": (1 << 64,), "strides": (1,)}, INVALID),
    ({"shape": (1,) * 33, "strides": (1,) * 33}, INVALID),
    ({"shape": ("2", 3)}, INVALID),
    ({"shape": (True, 3)}, INVALID),
    ({"shape": 6, "strides": 1}, INVALID),
    ({"size": 7}, "announces 7 elements but has 24 bytes"),
    ({"size": 1 << 40, "shape": (1 << 40,), "strides": (1,)}, "announces 1099511627776 elements"),
    ({"size": -1}, "the description of a storage is malformed"),
    ({"kind": "DoubleStorage"}, "announces 6 elements but has 24 bytes"),
    ({"kind": "Size"}, "the description of a storage is malformed"),
    ({"key": "1"}, "it lacks the record data/1"),
    ({"key": "../data.pkl"}, "it lacks the record data/../data.pkl"),
    ({"key": "/etc/passwd"}, "it lacks the record data//etc/passwd"),
    ({"key": 0}, "the description of a storage is malformed"),
]
# Each list holds the one before ten times: written out it would have 10**99 elements.
LAUGHS = b"]q\x00" + b"".join(b"](" + (b"h" + bytes([i])) * 10 + b"eq" + bytes([i + 1]) for i in range(99))
INNER = b"}X\x01\0\0\0w" + tensor() + b"s"
REFUSED = [  # tensors of an archive, or a pickle, and the message
    ({"a": tensor(), "b": tensor(size=5)}, "storage '0' is described twice, differently"),
    (FIRST + b"}X\x01\0\0\0a(" + LAUGHS + b"ts.", "holds no dictionary of tensors"),
    (FIRST + b"}q\x00X\x01\0\0\0ah\x00s.", "holds no dictionary of tensors"),  # it holds itself
    ({"a": b"ctorch._utils\n_rebuild_tensor_v2\n)R"}, "the description of the tensor a is malformed"),
    ({"a": tensor()[:-2] + b"}X\x04\0\0\0conj\x88stR"}, "the tensor a is a conjugate or negative view"),
    ({"ema": INNER, "model": INNER}, "several dictionaries of tensors"),
]


def test_impossible_tensors(write_torch, tmp_path):
    path = tmp_path / "m.bin"
    for change, message in IMPOSSIBLE:
        tensors = {"good": tensor(), "bad": tensor(**change)}
        if change.get("size") or change.get("kind") == "DoubleStorage":
            del tensors["good"]  # two descriptions of one storage are another error
        write_torch(path, tensors, STORAGE)
        with pytest.raises(ValueError, match=re.escape(message)):
            read_torch_pickle(path)
    for content, message in REFUSED:
        if isinstance(content, bytes):
            write_torch(path, {}, pickled=content)
        else:
            write_torch(path, content, STORAGE)
        with pytest.raises(ValueError, match=message):
            read_torch_pickle(path)
    # A training checkpoint.
    write_torch(path, {"epoch": b"K\x03", "model": INNER}, STORAGE)
    assert list(read_torch_pickle(path)) == ["w"]


def test_a_zip_bomb_is_not_unpacked(write_torch, tmp_path):
    size = 1 << 22
    tensors = {"a": tensor(size=size, shape=(size,), strides=(1,))}
    path = write_torch(tmp_path / "m.bin", tensors, {"0": bytes(4 * size)}, compression=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 100_000
    with pytest.raises(ValueError, match=r"is compressed or encrypted, which torch.save never does"):
        read_torch_pickle(path)


def test_changed_archives(write_torch, tmp_path, monkeypatch):
    path = write_torch(tmp_path / "m.bin", {"a": tensor()}, STORAGE)
    sound = path.read_bytes()
    content = bytearray(sound)
    name = content.rindex(b"archive/data/0")  # in the central directory, whose sizes stand 26 and 22 bytes before
    content[name - 26 : name - 18] = (1 << 28).to_bytes(4, "little") * 2
    path.write_bytes(content)
    with pytest.raises(ValueError, match="its record data/0 reaches past its end"):
        read_torch_pickle(path)
    path.write_bytes(sound.replace(b"little", b"bigbig"))
    with pytest.raises(ValueError, match="big-endian"):
        read_torch_pickle(path)
    write_torch(path, {}, extra={"archive/constants.pkl": b""})
    with pytest.raises(ValueError, match="a TorchScript program"):
        read_torch_pickle(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello.txt", "안녕")
    with pytest.raises(ValueError, match="a zip archive of something else"):
        read_torch_pickle(path)
    monkeypatch.setattr("bert_elmo_jax.weights.pickle_machine.MOST_OPCODES", 1000)
    write_torch(path, {}, pickled=FIRST + b"(" + b"N" * 1000 + b"t.")
    with pytest.raises(ValueError, match=r"more than 1,000 steps"):
        read_torch_pickle(path)


SIX = (6).to_bytes(8, "little")
BODY = b"\x80\x02}X\x01\0\0\0a" + tensor() + b"s."
FOREIGN = [  # content and message
    (b"", "is not a file of torch.save but empty"),
    (b"version https://git-lfs.github.com/spec/v1\n", "a git-lfs pointer"),
    (b"<!DOCTYPE html>", "a web page"),
    (bytes(100), "full of zero bytes"),
    (pickle.dumps({"a": 1}), "a pickle, but not of torch.save"),
    (legacy(b"\x80\x02}.", magic=5), "a pickle, but not of torch.save"),
    (legacy(b"\x80\x02}.", protocol=1000), "unknown version or big-endian"),
    (legacy(b"\x80\x02}.", little=False), "unknown version or big-endian"),
    (legacy(b"\x80\x02}.", keys=["0"]), "its list of storages is damaged"),
    (legacy(b"\x80\x02}."), "holds no dictionary of tensors"),
    (legacy(BODY, ["0"], (5).to_bytes(8, "little") + STORAGE["0"]), "storage '0' has another length than its descript"),
    (legacy(BODY, ["0"], SIX + STORAGE["0"][:-1]), "the file is cut short"),
    (legacy(BODY, [], b""), "it lacks storage '0'"),
]


def test_foreign_and_old_files(tmp_path):
    path = tmp_path / "pytorch_model.bin"
    for content, message in FOREIGN:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read_torch_pickle(path)
    path.write_bytes(legacy(BODY, ["0"], SIX + STORAGE["0"]))
    np.testing.assert_array_equal(read_torch_pickle(path)["a"].read(), np.arange(6).reshape(2, 3))
