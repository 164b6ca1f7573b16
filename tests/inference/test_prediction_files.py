"""Predictions for the examples of files: `predict_file`, and the lines of `prediction_lines`."""

import csv
import gzip
import io
import json
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.tasks.examples import TextExample
from bert_elmo_jax.data.tasks.tables import read_records
from bert_elmo_jax.data.tasks.task import task_named
from bert_elmo_jax.heads.sentence_head import SentenceHead
from bert_elmo_jax.inference.predict_file import _read_examples, predict_file
from bert_elmo_jax.inference.prediction_lines import InputRows, choose_writer, table_rows
from bert_elmo_jax.inference.predictions import Label, Number
from bert_elmo_jax.inference.run_directory import write_run_directory
from bert_elmo_jax.inference.task_model import make_head

from .test_task_model import CONFIG, TOKENIZER, draw_params


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


@pytest.mark.parametrize("from_file", [True, False])
def test_a_table_has_the_pair_of_a_later_line_whose_first_one_is_a_single_text(tmp_path, from_file, monkeypatch):
    text = "The river rose.\nThe river rose.\tIt was high.\n"
    (tmp_path / "in.txt").write_text(text)
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    predict_file(SENTIMENT, str(tmp_path / "in.txt") if from_file else "-", str(tmp_path / "out.csv"))
    with open(tmp_path / "out.csv", encoding="utf-8-sig", newline="") as opened:
        assert [row["pair"] for row in csv.DictReader(opened)] == ["", "It was high."]
    (tmp_path / "in.txt").write_text("The river rose.\n")
    predict_file(SENTIMENT, str(tmp_path / "in.txt"), str(tmp_path / "out.csv"), overwrite=True)
    assert "pair" not in (tmp_path / "out.csv").read_text("utf-8")


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


@pytest.fixture(scope="module")
def sentence_model(tmp_path_factory):
    task, head = task_named("sentences", max_length=32), SentenceHead()
    params = draw_params(make_head(task, None, CONFIG, head))
    folder = tmp_path_factory.mktemp("sentences") / "run"
    write_run_directory(folder, CONFIG, params, TOKENIZER, run={}, task=task, sentences=head)
    return str(folder)


STS_ROWS = "news\tMSRpar\t2012\t1\t4.2\tthe ship\tthe old ship\n"
PAIRS = "id,sentence1,sentence2\n7,the ship,the old ship\n"


@pytest.mark.parametrize(
    ("name", "text", "names", "cells"),
    [
        ("sts-dev.csv", STS_ROWS, "genre,filename,year,id,score,sentence1,sentence2", "news,MSRpar,2012,1,4.2,"),
        ("pairs.csv", PAIRS, "id,sentence1,sentence2", "7,"),
    ],
)
def test_pairs_of_sentences_keep_their_texts_and_columns(sentence_model, tmp_path, name, text, names, cells):
    source = tmp_path / name
    source.write_text(text)
    assert predict_file(sentence_model, str(source), str(tmp_path / "out.jsonl")) == 1
    row = json.loads((tmp_path / "out.jsonl").read_text())
    assert list(row) == ["text", "pair", "value"] and (row["text"], row["pair"]) == ("the ship", "the old ship")
    assert predict_file(sentence_model, str(source), str(tmp_path / "out.csv")) == 1
    header, line = (tmp_path / "out.csv").read_text("utf-8-sig").splitlines()
    assert header == f"{names},predicted" and line.startswith(f"{cells}the ship,the old ship,")


def test_columns_without_a_name_are_kept(tmp_path):
    (tmp_path / "in.csv").write_text("text,,\nthe river,one,two\n")
    predict_file(SENTIMENT, str(tmp_path / "in.csv"), str(tmp_path / "out.csv"))
    header, line = (tmp_path / "out.csv").read_text("utf-8-sig").splitlines()
    assert header == "text,,_3,predicted,probability" and line.startswith("the river,one,two,")


@pytest.mark.parametrize("encoding", ["utf-8", "cp949"])
def test_standard_input_is_read_as_a_file_is(tmp_path, monkeypatch, encoding):
    data = ("\ufeff강\nthe bank\n" if encoding == "utf-8" else "강\nthe bank\n").encode(encoding)
    (tmp_path / "in.txt").write_bytes(data)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), "utf-8"))
    option = {} if encoding == "utf-8" else {"encoding": encoding}
    for source in (str(tmp_path / "in.txt"), "-"):
        predict_file(SENTIMENT, source, str(tmp_path / "out.jsonl"), overwrite=True, **option)
        lines = [json.loads(line)["text"] for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
        assert lines == ["강", "the bank"]
    with pytest.raises(ValueError, match="encoding='cp9499' is not known"):
        predict_file(SENTIMENT, "-", encoding="cp9499")


READER, TAGGER = (f"tests/goldens/released_heads/{name}" for name in ("distilbert_qa", "bert_ner"))


@pytest.mark.parametrize(
    ("model", "name", "options", "message"),
    [
        (SENTIMENT, "in.csv", {"n_best": 7}, "--n_best=7 is for questions, and --model=.* predicts classification"),
        (SENTIMENT, "in.txt", {"text": "review"}, "--text=review names a column of a table, and .*in.txt has lines"),
        (SENTIMENT, "-", {"pair": "b"}, "--pair=b names a column of a table, and standard input has lines"),
        (READER, "in.csv", {"text": "review"}, "in.csv:1: no column 'context'"),
        (TAGGER, "in.csv", {"text": "review"}, "name columns of texts, and the model predicts tags: leave them"),
    ],
)
def test_options_without_a_meaning_are_refused(tmp_path, model, name, options, message):
    for file in ("in.txt", "in.csv"):
        (tmp_path / file).write_text("review\ngood\n")
    with pytest.raises(ValueError, match=message):
        predict_file(model, "-" if name == "-" else str(tmp_path / name), str(tmp_path / "out.jsonl"), **options)
    assert not (tmp_path / "out.jsonl").exists()


def test_a_tagger_reads_the_words_of_the_named_column(tmp_path):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"tokens": ["old", "강가"]}\n{"tokens": ["bank"]}\n', encoding="utf-8")
    assert predict_file(TAGGER, str(source), str(target), text="tokens") == 2
    lines = [json.loads(line)["words"] for line in target.read_text("utf-8").splitlines()]
    assert lines == [["old", "강가"], ["bank"]]


def test_documents_are_not_cut(tmp_path):
    file = tmp_path / "a.conll"
    file.write_text(
        "".join(f"-DOCSTART- O\n\n{'sea O' + chr(10) * 2}" + "ship O\n\n" * 4 for _ in range(3)), encoding="utf-8"
    )
    task = task_named("conll", context=True)
    total, parts = _read_examples(task, str(file), "utf-8", 6)
    assert (total, [len(part) for part in parts]) == (15, [10, 5])
    _, parts = _read_examples(task_named("conll"), str(file), "utf-8", 6)
    assert [len(part) for part in parts] == [6, 6, 3]
