"""The files of a tokenizer are written in an order that leaves no half of one."""

from pathlib import Path

import pytest

from bert_elmo_jax.text import load_tokenizer
from bert_elmo_jax.text.tokenizer import check_fingerprint


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


def test_example_of_check_fingerprint():
    check_fingerprint({"do_lower_case": False}, "0123", Path("vocab.txt"))
