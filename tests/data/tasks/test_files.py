"""Examples of `bert_elmo_jax.data.tasks.files`."""

import re
from pathlib import Path

import pytest

from bert_elmo_jax.data.tasks.files import BadRow, check_characters, lines_of, parse_json, read_lines


def test_example_of_parse_json():
    assert parse_json('{"배": 1}', "a.jsonl", 7) == {"배": 1}
    with pytest.raises(
        BadRow, match=re.escape("a.jsonl:7: invalid JSON (Expecting value, column 7); fix or delete it")
    ):
        parse_json('{"배": ', "a.jsonl", 7)


def test_example_of_check_characters():
    check_characters("배", "a.jsonl", 1)


def test_example_of_lines_of():
    assert lines_of('[{"id": "a"},\n {"id": "배"}]', "id", ["a", "배"]) == [1, 2]


def test_example_of_read_lines():
    import tempfile

    file = Path(tempfile.mkdtemp()) / "train.tsv"
    _ = file.write_text("좋다\t1\r\n싫다\t0", encoding="utf-8", newline="")
    assert read_lines(file) == ["좋다\t1", "싫다\t0"]
