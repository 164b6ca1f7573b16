"""Predictions for the examples of files: `predict_file`, and the lines of `prediction_lines`."""

import csv
import gzip
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.tasks.examples import TextExample
from bert_elmo_jax.data.tasks.tables import read_records
from bert_elmo_jax.inference.predict_file import predict_file
from bert_elmo_jax.inference.prediction_lines import InputRows, choose_writer, table_rows
from bert_elmo_jax.inference.predictions import Label, Number


def test_the_input_is_never_replaced(tmp_path):
    (tmp_path / "new.csv").write_text("text\n")
    with pytest.raises(ValueError, match="would replace the input: give another name"):
        predict_file("a model", str(tmp_path / "new.csv"), str(tmp_path / "." / "new.csv"))
    (tmp_path / "b.csv").write_text("text\n")
    for source in (f"{tmp_path}/*.csv", f"{tmp_path}/b.csv,{tmp_path}/new.csv"):
        with pytest.raises(ValueError, match="would replace the input: give another name"):
            predict_file("a model", source, str(tmp_path / "new.csv"), overwrite=True)


CHARACTERS = st.characters(exclude_categories=("Cs",), exclude_characters="\0")
TEXTS = st.text(st.sampled_from(" ,\"\t\r\n;'=a가\u2028\x85\ufeff") | CHARACTERS, min_size=1, max_size=12)


@given(st.lists(TEXTS.filter(str.strip), min_size=1, max_size=4), st.sampled_from(["csv", "tsv", "jsonl"]))
def test_written_texts_are_read_back(tmp_path_factory, texts, ending):
    file = tmp_path_factory.getbasetemp() / f"predictions.{ending}"
    examples = [TextExample(text, None, None, None, "-", n) for n, text in enumerate(texts)]
    lines = choose_writer(f".{ending}", None, [])(examples, [Label("a", 0.75, {"a": 0.75})] * len(texts))
    file.write_bytes((b"\xef\xbb\xbf" if ending == "csv" else b"") + "".join(f"{line}\n" for line in lines).encode())
    loaded_texts = [record.cells["text"] for record in read_records(file, ["text"])]
    # A tsv of this kind has no quotes: what separates cells and rows becomes a space.
    assert loaded_texts == ([re.sub(r"[\t\r\n]+", " ", text) for text in texts] if ending == "tsv" else texts)


@given(st.lists(TEXTS.filter(str.strip), min_size=1, max_size=3))
def test_other_programs_read_our_csv(tmp_path_factory, texts):
    file = tmp_path_factory.getbasetemp() / "others.csv"
    examples = [TextExample(text, None, None, None, "-", n) for n, text in enumerate(texts)]
    lines = choose_writer(".csv", None, [])(examples, [Number(0.5)] * len(texts))
    file.write_bytes("".join(f"{line}\n" for line in lines).encode())
    with open(file, encoding="utf-8", newline="") as opened:
        assert [row["text"] for row in csv.DictReader(opened)] == texts


def test_formulas_are_guarded_on_request():
    label = Label("=a", 0.5, {})
    for first in ("=", "+", "-", "@", "\t", "\r"):
        example = TextExample(f"{first}1+1", None, None, None, "-", 1)
        for ending in (".csv", ".tsv"):
            plain, guarded = (list(choose_writer(ending, None, [], on)([example], [label]))[1] for on in (False, True))
            assert guarded.strip('"').startswith("'") and not plain.strip('"').startswith("'")
            assert "'=a" in guarded and "'=a" not in plain and "'0" not in guarded
        rows = table_rows(None, [], True)
        assert list(rows([example], [Number(-0.5)]))[1][-1] == "-0.5", "a number is no formula"


def test_columns_of_numbers_keep_all_digits_and_probabilities_have_four():
    cells = {"text": "강", "price": 0.00001234, "latitude": 126.9779692, "change": -2, "new": True}
    example = TextExample("강", None, None, None, "a.parquet", 1)
    for prediction, shown in ((Label("a", 0.98765432, {}), ["a", "0.9877"]), (Number(0.0000123), ["1.23e-05"])):
        rows = table_rows(InputRows(list(cells), iter([("a.parquet", 1, cells)])), [], True)
        row = list(rows([example], [prediction]))[1]
        assert row == ["강", "1.234e-05", "126.9779692", "-2", "true", *shown]


SENTIMENT = "tests/goldens/released_heads/modernbert_sentiment2"


@pytest.mark.parametrize("name", ["new.TXT", "new.txt.gz"])
@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_text_files_are_known_in_capitals_and_compressed(tmp_path, name, ending):
    text = "the river\n강\n".encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    assert predict_file(SENTIMENT, str(tmp_path / name), str(tmp_path / f"out.{ending}")) == 2


def test_the_list_of_skipped_rows_is_the_one_of_this_output(tmp_path):
    source, target = tmp_path / "new.csv", tmp_path / "out.csv"
    skipped = tmp_path / "out.csv.skipped.jsonl"
    for text, has_skipped in (("text\nriver\n,\n", True), ("text\nriver\n", False)):
        source.write_text(text, encoding="utf-8")
        assert predict_file(SENTIMENT, str(source), str(target), on_bad="skip", overwrite=True) == 1
        assert skipped.is_file() == has_skipped


def test_taken_names_get_a_mark_and_odd_characters_are_replaced():
    cells = [("-", 2, {"text": "a", "predicted": "x"}), ("-", 3, {"text": "b", "predicted_": "y"})]
    header = []
    rows = table_rows(InputRows(["text", "predicted", "predicted_"], iter(cells)), header)
    examples = [TextExample("a", None, None, None, "-", line) for line in (2, 3)]
    assert list(rows(examples, [Number(1.0), Number(2.0)]))[1:] == [["a", "x", "", "1.0"], ["b", "", "y", "2.0"]]
    assert header == ["text", "predicted", "predicted_", "predicted__"]
    rows = table_rows(InputRows(["text", "note"], iter([("-", 2, {"text": "a", "note": "\ud800\0"})])), [])
    assert list(rows([TextExample("a", None, None, None, "-", 2)], [Number(1.0)]))[1] == ["a", "?\ufffd", "1.0"]
