"""Examples of `bert_elmo_jax.weights.huggingface_files`."""

import re
from pathlib import Path

import pytest

from bert_elmo_jax.weights.huggingface_files import read_shards


def test_example_of_read_shards():
    import tempfile

    with (
        pytest.raises(
            FileNotFoundError,
            match=re.escape("lists 2 files, but 2 of them are missing: 1-of-2.safetensors, 2-of-2.safetensors"),
        ),
        tempfile.TemporaryDirectory() as folder,
    ):
        index = Path(folder, "model.safetensors.index.json")
        _ = index.write_text('{"weight_map": {"a": "1-of-2.safetensors", "b": "2-of-2.safetensors"}}')
        read_shards(index, dict)
