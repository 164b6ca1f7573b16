"""Tests of atomic writing."""

from pathlib import Path

import pytest

from bert_elmo_jax.text import load_tokenizer
from bert_elmo_jax.text.files import write_atomically


def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "vocab.txt"
    write_atomically(file, b"old")

    def fail(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(file, b"new")
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["vocab.txt"]


def test_configuration_is_written_first(wordpiece, tmp_path, monkeypatch):
    # If the process dies between the two files, the folder has no vocabulary and cannot be loaded.
    real = Path.replace

    def fail(self, target):
        if Path(target).name == "vocab.txt":
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        wordpiece.save(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"there is tokenizer_config.json"):
        load_tokenizer(tmp_path)
