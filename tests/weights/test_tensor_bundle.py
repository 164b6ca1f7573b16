"""TensorFlow checkpoints: written by TensorFlow, written here by hand, and broken in every way."""

import shutil

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from bert_elmo_jax.weights import sorted_table
from bert_elmo_jax.weights.tensor_bundle import read_tensor_bundle, slice_key

from .conftest import varint
from .test_snappy import literal

TENSORS = {
    "a/kernel": np.arange(12, dtype=np.float32).reshape(4, 3),
    "a/bias": np.arange(3, dtype=np.float64),
    "a/층": np.arange(3, dtype=np.float16),
    "b": np.arange(5, dtype=ml_dtypes.bfloat16),
    "empty": np.zeros((0, 3), np.float32),
    "global_step": np.array(7, np.int64),
    "mask": np.array([True, False]),
}


@pytest.fixture
def copy_of_golden(goldens, tmp_path):
    shutil.copytree(goldens / "tensor_bundle", tmp_path / "copy")
    return tmp_path / "copy"


def check(prefix, tensors):
    bundle = read_tensor_bundle(prefix)
    assert bundle.keys() == tensors.keys()
    for name, truth in tensors.items():
        assert (bundle[name].shape, bundle[name].dtype) == (truth.shape, str(truth.dtype)), name
        read = bundle[name].read()
        assert (read.shape, read.dtype) == (truth.shape, truth.dtype), name
        np.testing.assert_array_equal(read, truth)


def test_tensorflows_own_checkpoint_equals_the_same_weights_as_safetensors(goldens):
    bundle = read_tensor_bundle(goldens / "bert_tiny_tf" / "bert_model.ckpt")
    weights = load_file(goldens / "bert_tiny" / "model.safetensors")
    assert len(bundle) == len(weights) + 3
    name = "encoder.layer.2.intermediate.dense.weight"
    ours = bundle["bert/encoder/layer_2/intermediate/dense/kernel"].read()
    np.testing.assert_array_equal(ours, weights[f"bert.{name}"].T)


@pytest.mark.parametrize("name", ["one.ckpt", "merged.ckpt"])
def test_partitioned_checkpoints_of_tensorflow(goldens, name):
    truth = np.load(goldens / "tensor_bundle" / "truth.npz")
    bundle = read_tensor_bundle(goldens / "tensor_bundle" / name)
    np.testing.assert_array_equal(bundle["matrix"].read(), truth["matrix"])
    if name == "one.ckpt":
        assert bundle.keys() - {"text"} == {key.replace(":", "/") for key in truth}
        for key in truth:
            read = bundle[key.replace(":", "/")].read()
            assert read.shape == truth[key].shape
            np.testing.assert_array_equal(read.astype(truth[key].dtype), truth[key])
        assert bundle["text"].dtype == "string"
        with pytest.raises(ValueError, match=r"text in .*one.ckpt is of type string"):
            bundle["text"].read()
    else:
        np.testing.assert_array_equal(bundle["second"].read(), [3, 4])


def test_bundles_written_by_hand(write_bundle, tmp_path):
    check(write_bundle(tmp_path / "m.ckpt", TENSORS), TENSORS)
    check(write_bundle(tmp_path / "모델.v1.ckpt-100", TENSORS), TENSORS)
    compressed = write_bundle(tmp_path / "c", TENSORS, compress=lambda data: varint(len(data)) + literal(data))
    check(compressed, TENSORS)
    matrix = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    tensors = TENSORS | {"matrix": matrix}
    check(write_bundle(tmp_path / "parts", tensors, parts={"matrix": [100, 63, 1, 136]}, shards=3), tensors)
    # A newer producer whose files we may read.
    check(write_bundle(tmp_path / "new", TENSORS, header=b"\x08\x01\x1a\x04\x08\x05\x10\x01"), TENSORS)


def test_numbers_in_ordered_code():
    # One byte up to 63 and down to -64, two up to 8191, three beyond; order of bytes is order of numbers.
    numbers = [-(2**40), -8193, -8192, -65, -64, -1, 0, 1, 63, 64, 8191, 8192, 2**20, 2**40, 2**62]
    keys = [slice_key("", ((number, 0),)) for number in numbers]
    assert keys == sorted(keys)
    assert slice_key("w", ((63, 64),))[-3:] == b"\xbf\xc0\x40"


def test_missing_files_are_named(write_bundle, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no TensorFlow checkpoint at .*m.ckpt: there is no m.ckpt.index"):
        read_tensor_bundle(tmp_path / "m.ckpt")
    write_bundle(tmp_path / "m.ckpt", TENSORS, shards=3)
    for shard in (0, 2):
        (tmp_path / f"m.ckpt.data-{shard:05d}-of-00003").unlink()
    message = r"2 of the 3 data files of .*m.ckpt are missing: m.ckpt.data-00000-of-00003, m.ckpt.data-00002-of-00003"
    with pytest.raises(FileNotFoundError, match=message):
        read_tensor_bundle(tmp_path / "m.ckpt")
    write_bundle(tmp_path / "data" / "m.ckpt", TENSORS)
    (tmp_path / "data" / "m.ckpt.index").unlink()
    with pytest.raises(FileNotFoundError, match=r"its data m.ckpt.data-00000-of-00001 exists: put the index in"):
        read_tensor_bundle(tmp_path / "data" / "m.ckpt")


def test_data_that_is_changed_or_cut_short(write_bundle, tmp_path):
    prefix = write_bundle(tmp_path / "m.ckpt", TENSORS)
    data = tmp_path / "m.ckpt.data-00000-of-00001"
    content = data.read_bytes()
    data.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    bundle = read_tensor_bundle(prefix)
    np.testing.assert_array_equal(bundle["a/bias"].read(), TENSORS["a/bias"])
    with pytest.raises(ValueError, match=r"the checksum of a/kernel in .*m.ckpt is wrong"):
        bundle["a/kernel"].read()
    data.write_bytes(bytes(len(content)))  # numbers are read when they are needed
    assert read_tensor_bundle(prefix)["a/kernel"].shape == (4, 3)
    data.write_bytes(content[:-1])
    sizes = f"{len(content) - 1} bytes of {len(content)}"
    with pytest.raises(ValueError, match=rf"cut short \(m.ckpt.data-00000-of-00001 has {sizes}\)"):
        read_tensor_bundle(prefix)


def test_every_truncation_of_the_index_is_an_error(copy_of_golden):
    index = copy_of_golden / "one.ckpt.index"
    content = index.read_bytes()
    for size in [0, 1, 7, 8, 47, 48, 49, *range(50, len(content), 37), len(content) - 1]:
        index.write_bytes(content[:size])
        with pytest.raises(ValueError, match="not the index of a TensorFlow checkpoint, or it is cut short"):
            read_tensor_bundle(copy_of_golden / "one.ckpt")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_changed_byte_of_the_index_never_changes_a_tensor(copy_of_golden, goldens, data):
    content = (goldens / "tensor_bundle" / "one.ckpt.index").read_bytes()
    place = data.draw(st.integers(0, len(content) - 1))
    changed = bytearray(content)
    changed[place] ^= data.draw(st.integers(1, 255))
    (copy_of_golden / "one.ckpt.index").write_bytes(changed)
    try:
        bundle = read_tensor_bundle(copy_of_golden / "one.ckpt")
    except ValueError as problem:
        assert "one.ckpt.index" in str(problem)
    else:  # only the footer has no checksum; of it, the padding is not used
        assert place >= len(content) - 48
        assert len(bundle) == len(read_tensor_bundle(goldens / "tensor_bundle" / "one.ckpt"))


def test_foreign_files(goldens, tmp_path):
    for content, message in (
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "git-lfs pointer"),
        (b"<!DOCTYPE html><html>" + b" " * 100, "a web page"),
        (b"PK\x03\x04" + b"x" * 100, "a zip archive"),
        (bytes(200), "full of zero bytes"),
    ):
        (tmp_path / "m.ckpt.index").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read_tensor_bundle(tmp_path / "m.ckpt")
    with pytest.raises(ValueError, match=r"version1.ckpt is a TensorFlow checkpoint of version 1"):
        read_tensor_bundle(goldens / "tensor_bundle" / "version1.ckpt")


HEADERS = [
    (b"\x08\x01\x10\x01\x1a\x02\x08\x01", "big-endian"),
    (b"\x08\x01\x1a\x04\x08\x05\x10\x02", "its layout version 5"),
    (b"\x08\x01\x1a\x04\x08\x02\x18\x01", "its layout version 2"),
    (b"\x08\x01\x1a", "ends inside a number"),
    (b"\x0b", "field of the unknown kind 3"),
    (b"\x08\x01\x18\x01", "damaged or foreign"),
    (b"\x08\x00\x1a\x02\x08\x01", "refers to data file 0 of 0"),
]


def changed_entry(name, old, new):
    def edit(entries):
        assert old in entries[name]
        entries[name] = entries[name].replace(old, new, 1)

    return edit


def only_another_key(entries):
    entries.clear()
    entries[b"k"] = b"v"


EDITS = [  # a change of the entries, and the message
    (changed_entry(b"x", b"\x08\x04", b"\x08\x05"), r"x has shape \[5, 3\] of float32 but 48 bytes"),
    (changed_entry(b"x", b"\x08\x01\x12", b"\x08\x02\x12"), r"x has shape \[4, 3\] of float64 but 48 bytes"),
    (changed_entry(b"x", b"\x12\x08\x12\x02\x08\x04", b"\x12\x03\x18\x01\x12\x02\x08\x04"), "damaged or foreign"),
    (lambda entries: entries.update({b"x": b"\x08\x01\x12\x02\x18\x01"}), "no known shape"),
    (lambda entries: entries.update({b"x": b"\x08\x01\x12\x0d\x12\x0b\x08" + b"\xff" * 9 + b"\x01"}), "negative"),
    (lambda entries: entries.update({b"\xff\xfe": entries[b"x"]}), "damaged or foreign"),
    (changed_entry(b"x", b"\x20\x00", b"\x20" + b"\xff" * 8 + b"\x7f"), "cut short"),  # an offset far outside
    (only_another_key, "no header"),
    (lambda entries: entries.update({b"x" * 70000: entries[b"x"]}), "an entry reaches past its block"),
]


def test_broken_headers_and_entries(write_bundle, tmp_path):
    for header, message in HEADERS:
        prefix = write_bundle(tmp_path / "m.ckpt", TENSORS, header=header)
        with pytest.raises(ValueError, match=message):
            read_tensor_bundle(prefix)
    tensors = {"x": np.arange(12, dtype=np.float32).reshape(4, 3), "y": np.ones(2, np.float32)}
    for edit, message in EDITS:
        prefix = write_bundle(tmp_path / "m.ckpt", tensors, edit=edit)
        with pytest.raises(ValueError, match=message):
            read_tensor_bundle(prefix)


def test_an_index_that_grows_when_it_is_read(write_bundle, tmp_path, monkeypatch):
    """Keys that share their beginnings, and blocks that are compressed, may take a thousand times the file."""
    monkeypatch.setattr(sorted_table, "MOST_BYTES", 1 << 16)
    keys = {b"k" * 50_000 + bytes([number]): b"" for number in range(2)}
    prefix = write_bundle(tmp_path / "m.ckpt", {}, edit=lambda entries: entries.update(keys))
    with pytest.raises(ValueError, match="holds more than 65,536 bytes, which no index of tensors does"):
        read_tensor_bundle(prefix)
    with pytest.raises(ValueError, match="announces 1,000,000 bytes"):
        sorted_table.decompress(b"\xc0\x84\x3d\0a")


def test_slices_that_are_missing_do_not_fill_or_overlap(write_bundle, tmp_path):
    tensors = {"m": np.ones((4, 3), np.float32)}

    def without_the_second(entries):
        del entries[slice_key("m", ((2, 2), (0, -1)))]

    prefix = write_bundle(tmp_path / "m.ckpt", tensors, parts={"m": [2, 2]}, edit=without_the_second)
    with pytest.raises(ValueError, match="lacks a slice of a partitioned tensor"):
        read_tensor_bundle(prefix)
    prefix = write_bundle(tmp_path / "a.ckpt", tensors, parts={"m": [2, 1]})
    with pytest.raises(ValueError, match=r"the slices of m do not fill its shape \[4, 3\]"):
        read_tensor_bundle(prefix)

    def twice_the_first(entries):
        first, second = slice_key("m", ((0, 2), (0, -1))), slice_key("m", ((1, 2), (0, -1)))
        entries[second] = entries[first]
        entries[b"m"] = entries[b"m"].replace(b"\x08\x02\x10\x02", b"\x08\x01\x10\x02")

    prefix = write_bundle(tmp_path / "b.ckpt", tensors, parts={"m": [2, 2]}, edit=twice_the_first)
    bundle = read_tensor_bundle(prefix)
    with pytest.raises(ValueError, match=r"the slices of m in .* overlap"):
        bundle["m"].read()
