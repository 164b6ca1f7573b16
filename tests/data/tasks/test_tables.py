"""Tables: examples, cells of any length and with any line break, column names in NFD, files that are not tables."""

import json
import unicodedata

import pytest

from bert_elmo_jax.data.tasks import files
from bert_elmo_jax.data.tasks.files import BadRow
from bert_elmo_jax.data.tasks.tables import read_records

NFC, NFD = "감상", unicodedata.normalize("NFD", "감상")


def test_long_cells_and_line_breaks_in_quotes(tmp_path):
    file = tmp_path / "a.csv"
    for size in (131_072, 131_073, 300_000):
        file.write_text(f'text,label\n"{"가" * size}",1\nb,2\n', encoding="utf-8")
        assert [len(record.cells["text"]) for record in read_records(file, ["text"])] == [size, 1]
    file.write_bytes(b'text,label\r\n"a\r\nb",1\r\n"c\nd\re",2\r\n\r\n')
    cells = [tuple(record.cells.items()) for record in read_records(file, ["text"])]
    assert cells == [(("text", "a\r\nb"), ("label", "1")), (("text", "c\nd\re"), ("label", "2"))]
    file.write_bytes(b"text,label\ra,1\rb,2\r")  # as on old Macs
    assert [record.cells["text"] for record in read_records(file, ["text"])] == ["a", "b"]


def test_rows_of_a_json_list_have_distinct_numbers(tmp_path):
    rows = [{"guid": name, "text": "a"} for name in "xyz"]
    for indent, json_rows, places in (
        (None, rows, [", row 1", ", row 2", ", row 3"]),
        (None, rows[:1], [":1"]),
        (1, rows, [":3", ":7", ":11"]),
        (1, [{"text": "a"}, {"text": "b"}], [", row 1", ", row 2"]),
    ):
        file = tmp_path / "a.json"
        file.write_text(json.dumps(json_rows, indent=indent) + "\n")
        errors = [str(BadRow(file, record.line, "bad", "fix it")) for record in read_records(file, ["text"])]
        assert errors == [f"{file}{place}: bad; fix it" for place in places]


@pytest.mark.parametrize(("written", "column"), [(NFD, NFC), (NFC, NFD)])
@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "json"])
def test_columns_are_compared_in_nfc(tmp_path, ending, written, column):
    sign = {"csv": ",", "tsv": "\t"}.get(ending)
    text = f'{{"{written}": "a", "b": {{"{written}": "c"}}}}'
    text = f"[{text}]" if ending == "json" else text
    text = f"{written}{sign}b\na{sign}c\n" if sign else text
    (tmp_path / f"a.{ending}").write_text(text, encoding="utf-8")
    [record] = read_records(tmp_path / f"a.{ending}", [column])
    assert record.cells[column] == "a"
    if not sign:
        [record] = read_records(tmp_path / f"a.{ending}", [f"b.{column}"])
        assert record.cells[f"b.{column}"] == "c"


def test_commas_in_a_table_for_a_task_of_tabs(tmp_path):
    """Tasks as SST-2 have tabs in their own files; a csv of one's own is read as one. STS-B's own files end in .csv."""
    for name, text in (("a.csv", 'sentence,label\n"so, so",1\n'), ("b.csv", "sentence\tlabel\nso, so\t1\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        [record] = read_records(tmp_path / name, ["sentence", "label"], layout="tsv")
        assert record.cells == {"sentence": "so, so", "label": "1"}


NO_TABLES = [  # name, content, and the message
    ("plain", b"text\na\n", "a file without an ending, expected .tsv, .csv, .jsonl"),
    ("a.doc", b"text\na\n", "a file with the ending '.doc', expected .tsv, .csv, .jsonl"),
    ("a.xlsx", b"PK\x03\x04", "a zip or Excel file, expected text; save the sheet as CSV in UTF-8"),
    ("a.xls", b"\xd0\xcf\x11\xe0", "an old Excel or Word file, expected text; save the sheet as CSV"),
    ("a.csv", f"{NFC},{NFD}\na,b\n".encode(), "two columns called"),
    ("b.csv", f"{NFC},n\na\rb,1\n".encode(), "a carriage return inside a cell.*; quote the cell, or save"),
]


def test_files_that_are_no_table(tmp_path):
    for name, content, message in NO_TABLES:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BadRow, match=message):
            read_records(tmp_path / name, ["text" if not name.endswith(".csv") else NFC])
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        read_records(tmp_path / "none", ["text"])
    with pytest.raises(BadRow, match="a folder, expected a file; name the file in it"):
        read_records(tmp_path, ["text"])


def test_a_list_without_keys_is_read_in_linear_time(monkeypatch):
    searches = []
    monkeypatch.setattr(files.re, "compile", lambda pattern: searches.append(pattern))
    assert files.lines_of('[{"a": 1},\n {"a": 2}]', "guid", [None, None]) == [1, 1]
    assert not searches
