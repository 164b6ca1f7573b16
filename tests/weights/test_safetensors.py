"""Invalid safetensors files."""

import json

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from bert_elmo_jax.weights.huggingface_files import read_safetensors


def test_types(tmp_path):
    path = tmp_path / "m.safetensors"
    for dtype in ("float16", "bfloat16", "float32", "float64", "int64", "uint8", "bool"):
        array = np.arange(6).reshape(2, 3).astype(dtype)
        save_file({"층": array}, path)
        (tensor,) = read_safetensors(path).values()
        assert (tensor.shape, tensor.dtype) == ((2, 3), dtype)
        np.testing.assert_array_equal(tensor.read(), array)
    # A type that numpy does not have.
    header = json.dumps({"a": {"dtype": "F8_E8M0", "shape": [2], "data_offsets": [0, 2]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\1\2")
    assert read_safetensors(path)["a"].dtype == "F8_E8M0"


def test_foreign_truncated_and_missing_files(tmp_path):
    path = tmp_path / "m.safetensors"
    for content, message in (
        (b"", "is not a safetensors file but empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a git-lfs pointer"),
        (b"<!DOCTYPE html><html></html>", "a web page"),
        (b"PK\x03\x04" + bytes(60), "a zip archive"),
        (bytes(500), "full of zero bytes"),
        (b"\x89HDF\r\n\x1a\n" + bytes(60), "an HDF5 file"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read_safetensors(path)
    save_file({"a": np.ones(20, np.float32), "b": np.ones(3, ml_dtypes.bfloat16)}, path)
    content = path.read_bytes()
    for size in range(9, len(content), 5):
        path.write_bytes(content[:size])
        with pytest.raises(ValueError, match=rf"of {size} bytes is cut short or damaged"):
            read_safetensors(path)
    with pytest.raises(FileNotFoundError):
        read_safetensors(tmp_path / "absent.safetensors")
