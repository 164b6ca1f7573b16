"""JSON of unknown origin: what cannot be read is refused with the file's name, and wrong values with the field's."""

import json
import os

import pytest

from bert_elmo_jax.files import read_bytes, read_json, read_json_value
from bert_elmo_jax.json_values import (
    NUMBER,
    TEXT,
    TRUTH,
    any_of,
    check_fields,
    list_of,
    object_of,
    one_of,
    whole_number,
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": ' + "[" * 70 + "]" * 70 + "}", "nested too deeply"),
        ("[" * 100_000, "nested too deeply|is not JSON"),
        ('{"size": ' + "9" * 5000 + "}", "size is a number of more than 100 digits"),
        ('{"size": ' + "9" * 300 + "}", "size is a number of more than 100 digits"),
        ("[1, " + "9" * 300 + "]", "holds a number of more than 100 digits"),
        (r'{"name": "\ud83d"}', "half of a character, U[+]D83D"),
        ("{", "is not JSON"),
    ],
)
def test_texts_that_are_refused(tmp_path, text, message):
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as refused:
        read_json_value(tmp_path / "a.json")
    assert "a.json" in str(refused.value)


def test_texts_of_released_files_are_read(tmp_path):
    content = {"model_max_length": 10**30, "hash": "9" * 300, "emoji": "😀", "nested": [[[[1]]]], "eps": 1e-12}
    for plain in (True, False):
        (tmp_path / "a.json").write_text(json.dumps(content, ensure_ascii=plain), encoding="utf-8")
        assert read_json(tmp_path / "a.json") == content


@pytest.mark.parametrize(
    ("kind", "fitting", "wrong_values"),
    [
        (whole_number(1, 9), [1, 9], [0, 10, True, 1.0, "1", [1]]),
        (TRUTH, [True, False], ["false", 0, 1]),
        (NUMBER, [1, 0.5], [float("nan"), float("-inf"), True, "1"]),
        (one_of("cosine", "dot"), ["dot"], ["evil", 1, ["dot"]]),
        (list_of(TEXT, most=2), [[], ["a", "b"]], [["a", "b", "c"], [1], "ab"]),
        (any_of(TEXT, whole_number()), ["a", 0], [-1, None, []]),
        (object_of(TEXT), [{}, {"a": None}], [{"a": 1}, []]),
    ],
    ids=lambda value: getattr(value, "called", None),
)
def test_kinds(kind, fitting, wrong_values):
    assert all(map(kind.accepts, fitting)) and not any(map(kind.accepts, wrong_values))


def test_fields_that_are_null_or_missing_have_their_defaults():
    check_fields({"a": None, "other": object()}, {"a": TEXT, "b": TEXT}, "x.json")
    with pytest.raises(ValueError, match=r"^x\.json: a is 1; expected a text$"):
        check_fields({"a": 1}, {"a": TEXT}, "x.json")


def test_pipes_and_huge_files_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(ValueError, match=r"pipe\.json is not a regular file"):
        read_json(tmp_path / "pipe.json", default={})
    with open(tmp_path / "huge.json", "wb") as file:
        file.truncate(1 << 40)  # a hole: it takes no room
    with pytest.raises(ValueError, match=r"huge\.json has 1,099,511,627,776 bytes; at most"):
        read_json(tmp_path / "huge.json")
    with pytest.raises(ValueError, match="has 1,099,511,627,776 bytes"):
        read_bytes(tmp_path / "huge.json", largest=10)
