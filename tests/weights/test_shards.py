"""Shards of safetensors."""

import re

import pytest

from bert_elmo_jax.weights.huggingface_files import read_shards


def test_missing_shards_are_named(tmp_path):
    index = tmp_path / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"a": "1-of-2.safetensors", "b": "2-of-2.safetensors"}}')
    message = re.escape("lists 2 files, but 2 of them are missing: 1-of-2.safetensors, 2-of-2.safetensors")
    with pytest.raises(FileNotFoundError, match=message):
        read_shards(index, dict)
