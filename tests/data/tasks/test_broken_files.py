"""Broken files: each raises an error with file, line and remedy; none is read in part."""

import gzip
import json
import pickle
import re

import pytest

from bert_elmo_jax.data.corpora import unpack
from bert_elmo_jax.data.tasks import (
    BadRow,
    Layout,
    TagLayout,
    files,
    find_labels,
    find_tags,
    label_ids,
    read_qamr,
    read_squad,
    read_swag,
    read_tagged,
    read_texts,
    tag_ids,
)

CSV = Layout(text="review", label="stars")
PAIR = Layout(text="a", pair="b", label="label")
NUMBERS = Layout(text="review", label="stars", regression=True)
CONTEXT = "배는 강가에 있다. The café is near."


def squad(**change):
    """Return a file with one question, with some fields changed."""
    qa = {"id": "q1", "question": "어디?", "answers": [{"text": "강가", "answer_start": 3}]} | change
    qa = {name: value for name, value in qa.items() if value is not ...}
    context = qa.pop("context", CONTEXT)
    return json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": context, "qas": [qa]}]}]})


def two_questions(**change):
    """Return a file with two questions on many lines, the second one with some fields changed."""
    content = json.loads(squad())
    content["data"][0]["paragraphs"][0]["qas"].append(
        json.loads(squad(**{"id": "q2"} | change))["data"][0]["paragraphs"][0]["qas"][0]
    )
    return json.dumps(content, indent=1, ensure_ascii=False)


def texts(layout):
    return lambda path: read_texts(path, layout)


def tagged(layout):
    return lambda path: read_tagged(path, layout)


def labels(path):
    return find_labels(read_texts(path, CSV))


SWAG = "sent1,sent2,ending0,ending1,ending2,ending3,label\n"
QAMR = "s1\t1\t7\t0\t1\tWhat sank?\t{}\t8:1\t9:1\n"

# name of the case: (file, content, reader, line, part of the message)
# fmt: off
BROKEN = {
    # tables
    "a column is missing": ("dev.tsv", "id\tdocument\n1\t좋다\n", texts("nsmc"), 1,
        "no column 'label' among 'id', 'document'"),
    "no header": ("dev.tsv", "so good \t1\nbad \t0\n", texts("sst2"), 1, "expected a header"),
    "the wrong names": ("my.csv", "text,stars\ngood,5\n", texts(CSV), 1, "no column 'review' among 'text', 'stars'"),
    "two columns of one name": ("my.csv", "review,review,stars\na,b,5\n", texts(CSV), 1, "two columns called 'review'"),
    "too few columns": ("dev.tsv", "sentence\tlabel\ngood\t1\nbad\n", texts("sst2"), 3, "1 column, expected 2"),
    "too many columns": ("dev.tsv", "sentence\tlabel\nso\tbad\t0\n", texts("sst2"), 2, "3 columns, expected 2"),
    "a comma that is not quoted": ("my.csv", "review,stars\ngood, really,5\n", texts(CSV), 2,
        "quote texts that contain commas"),
    "a quote that is not closed": ("my.csv", 'review,stars\ngood,5\n"bad,1\nworse,0\n', texts(CSV), 3,
        "a quote that is not"),
    "a quote that is not doubled": ("my.csv", 'review,stars\n"a "good" film",5\n', texts(CSV), 2, "is written twice"),
    "a quote closed in a later row": ("my.csv", 'review,stars\n"bad,1\nso,so\n"good",5\n', texts(CSV), 2,
        "invalid csv from here to line 4"),
    "semicolons": ("my.csv", "review;stars\ngood;5\n", texts(CSV), 1, "separated by semicolons"),
    "tabs in a .csv": ("my.csv", "review\tstars\ngood\t5\n", texts(CSV), 1, "name the file .tsv"),
    "an empty text": ("dev.tsv", "sentence\tlabel\ngood\t1\n \t0\n", texts("sst2"), 3, "the text in sentence is empty"),
    "an empty review": ("dev.tsv", "id\tdocument\tlabel\n1\t\t0\n", texts("nsmc"), 2, "the text in document is empty"),
    "an empty second text": ("my.csv", "a,b,label\nx,y,1\nx,,1\n", texts(PAIR), 3, "the text in b is empty"),
    "an empty label": ("my.csv", "review,stars\ngood,5\nbad,\n", texts(CSV), 3, "no label in stars"),
    "a blank line": ("dev.tsv", "sentence\tlabel\n\ngood\t1\n", texts("sst2"), 2, "a blank line"),
    "a header only": ("dev.tsv", "sentence\tlabel\n", texts("sst2"), 1, "a header without rows"),
    "one label only": ("my.csv", "review,stars\na,1\nb,1\n", labels, 2, "'1' is the label of all 2 examples"),
    "an id twice": ("a.tsv", "id\tdocument\tlabel\n7\t네\t1\n8\t응\t1\n7\t예\t0\n", texts("nsmc"), 4,
        "id '7' of line 2 again"),
    "a number that is none": ("my.csv", "review,stars\ngood,4.5\nbad,low\n", texts(NUMBERS), 3,
        "'low', expected a number"),
    "nan for a number": ("my.csv", "review,stars\ngood,nan\n", texts(NUMBERS), 2, "'nan', expected a number"),
    "a decimal comma": ("my.csv", 'review,stars\ngood,"4,5"\n', texts(NUMBERS), 2, "'4,5', expected a number"),
    "an infinite score": ("dev.csv", "a\tb\t2012\t1\tinf\tx\ty\n", texts("stsb"), 1, "'inf', expected a number"),
    "TREC without a colon": ("TREC.train", "DESC:def What ?\nNUM How many ?\n", texts("trec"), 2,
        "expected coarse:fine"),
    "a label and nothing else": ("stsa.fine.dev", "2 fine .\n3\n", texts("sst5"), 2,
        "only '3', expected label and text"),
    "an ending that says nothing": ("my.txt", "review,stars\n", texts(CSV), 1, "the ending '.txt'"),
    # JSON lines and lists
    "invalid JSON": ("my.jsonl", '{"review": "a", "stars": 1}\n{"review": \n', texts(CSV), 2, "invalid JSON"),
    "a list in JSON lines": ("my.jsonl", '["a", 1]\n', texts(CSV), 1, "a JSON list, expected an object"),
    "a key is missing": ("my.jsonl", '{"review": "a", "stars": 1}\n{"text": "b"}\n', texts(CSV), 2,
        "no 'review' among 'text'"),
    "a text that is a number": ("my.jsonl", '{"review": 3, "stars": 1}\n', texts(CSV), 1,
        "review is 3, expected a text"),
    "a label that is null": ("my.jsonl", '{"review": "a", "stars": null}\n', texts(CSV), 1, "stars is None"),
    "a label that is a list": ("my.jsonl", '{"review": "a", "stars": [1]}\n', texts(CSV), 1,
        "stars is [1], expected a name"),
    "NaN in JSON": ("my.jsonl", '{"review": "a", "stars": NaN}\n', texts(NUMBERS), 1, "'nan', expected a number"),
    "a lone surrogate": ("my.jsonl", '{"review": "a\\ud83d", "stars": 1}\n', texts(CSV), 1, "surrogate (\\ud83d)"),
    "an object for a list": ("train.json", '{"title": "a", "label": "b"}', texts("klue_ynat"), 1,
        "a JSON object, expected a list"),
    "a record of KLUE": ("dev.json",
        '[{"guid": "1", "sentence1": "a",\n "sentence2": "b", "labels": {"label": 3.0}},\n '
        '{"guid": "2", "sentence1": "a", "sentence2": "b", "labels": 3.0}]',
        texts("klue_sts"), 3, "no 'labels.label'"),
    # files of any kind
    "an empty file": ("dev.tsv", "", texts("sst2"), 1, "an empty file"),
    "white space only": ("dev.conll", "\n \n", tagged("conll"), 1, "an empty file"),
    "binary garbage": ("dev.tsv", bytes(range(256)) * 4, texts("sst2"), 2, "binary data"),
    "cp949": ("dev.tsv", "id\tdocument\tlabel\n1\t좋다\t1\n".encode("cp949"), texts("nsmc"), 2, "it reads as cp949"),
    "UTF-16": ("my.csv", "review,stars\ngood,5\n".encode("utf-16"), texts(CSV), 1, "it looks like UTF-16"),
    "UTF-16 without a mark": ("my.csv", "review,stars\ngood,5\n".encode("utf-16-le"), texts(CSV), 1, "like UTF-16"),
    "a NUL": ("dev.tsv", "sentence\tlabel\ngood\t1\nba\0d\t0\n", texts("sst2"), 3, "a NUL byte"),
    "an Excel file": ("my.csv", b"PK\x03\x04\x14\0\x06\0", texts(CSV), 1, "Excel"),
    "a compressed file": ("my.csv", b"\x1f\x8b\x08\0\0", texts(CSV), 1, "gunzip"),
    "half of a UTF-8 character": ("dev.conll", "서울 B-LOC\n".encode()[1:], tagged("conll"), 1, "not UTF-8"),
    # columns
    "3 columns, then 4": ("a.conll", "a NN O\nb NN O\nc NN I-NP O\n", tagged("conll"), 3,
        "4 columns, expected 3 as on line 1"),
    "a word without a tag": ("a.conll", "a\tO\nb\n", tagged("conll"), 2, "1 column, expected 2"),
    "a tag that is empty": ("a.conll", "a\tO\nb\t\n", tagged("conll"), 2, "no tag for 'b'"),
    "words alone": ("a.conll", "a\nb\n", tagged("conll"), 1, "1 column, expected words and tags"),
    "no such column": ("a.conll", "a O\n", tagged(TagLayout(word=0, tag=2)), 1, "expected a tag in column 2"),
    "comments alone": ("a.iob2", "# id = 1\n# text = 2\n", tagged("uner"), 1, "only comments"),
    "I- without its B-": ("a.conll", "a B-PER\nb O\nc I-LOC\n", tagged("conll"), 3, "I-LOC without a B-LOC before it"),
    "B- without its E-": ("a.conll", "a S-PER\nb B-LOC\nc O\n", tagged("conll"), 2,
        "an unfinished entity of type 'LOC', but O follows"),
    "BILOU": ("a.conll", "a O\nb U-LOC\n", tagged("conll"), 2, "U- of BILOU"),
    "a tag of another kind": ("a.conll", "a B-PER\nb NOUN\n", tagged("conll"), 2, "the tag 'NOUN', expected O"),
    "two characters for one": ("klue.tsv", "경\tB-OG\n찰은\tO\n", tagged("klue_ner"), 2, "'찰은', expected a single"),
    "9 columns of CoNLL-U": ("a.conllu", "1\ta" + "\t_" * 7 + "\n", tagged("ud_upos"), 1, "9 columns between tabs"),
    "a word is missing": ("a.conllu", "1\ta\ta\tX" + "\t_" * 6 + "\n3\tb\tb\tX" + "\t_" * 6, tagged("ud_upos"), 2,
        "expected word 2"),
    "no part of speech": ("a.conllu", "1\ta" + "\t_" * 8 + "\n", tagged("ud_upos"), 1, "no tag (_) in column 3"),
    "more words than tags": ("a.jsonl", '{"words": ["a", "b"], "tags": ["O"]}\n', tagged("jsonl"), 1,
        "2 words and 1 tags"),
    "words as one text": ("a.jsonl", '{"words": "a b", "tags": ["O", "O"]}\n', tagged("jsonl"), 1,
        "expected a list of texts"),
    "tags are missing": ("a.jsonl", '{"words": ["a"]}\n', tagged("jsonl"), 1, "expected an object with words and tags"),
    "no words in a list": ("a.jsonl", '{"words": [], "tags": []}\n', tagged("jsonl"), 1, "no words"),
    # questions
    "answer_start beyond": ("a.json", squad(answers=[{"text": "강가", "answer_start": 900}]), read_squad, 1,
        "answer_start 900"),
    "answer_start below 0": ("a.json", squad(answers=[{"text": "강가", "answer_start": -2}]), read_squad, 1,
        "answer_start -2"),
    "another text there": ("a.json", squad(answers=[{"text": "강가", "answer_start": 4}]), read_squad, 1,
        "'강가' is not at character 4 of the context ('가에'), but at 3"),
    "bytes for characters": ("a.json", squad(answers=[{"text": "café", "answer_start": 28}]), read_squad, 1,
        "count characters"),
    "an answer of another spelling": ("a.json", squad(answers=[{"text": "cafe\u0301", "answer_start": 15}]), read_squad,
        1, "nor anywhere else in it"),
    "no answers": ("a.json", squad(answers=[]), read_squad, 1, "'q1' has no answer"),
    "answers left out": ("a.json", squad(answers=...), read_squad, 1, "answers are missing"),
    "an answer without its start": ("a.json", squad(answers=[{"text": "강가"}]), read_squad, 1,
        '"answer_start": a number'),
    "impossible, with an answer": ("a.json", squad(is_impossible=True), read_squad, 1,
        "is impossible, but has 1 answers"),
    "is_impossible as a text": ("a.json", squad(is_impossible="no"), read_squad, 1, "is_impossible is 'no'"),
    "an empty context": ("a.json", squad(context=" "), read_squad, 1, "data[0].paragraphs[0]: context is ' '"),
    "an empty question": ("a.json", squad(question=""), read_squad, 1, "question is ''"),
    "an id that is a number": ("a.json", squad(id=3), read_squad, 1, "id is 3, expected a text"),
    "an id twice, by line": ("a.json", two_questions(id="q1"), read_squad, 21, "duplicate id 'q1'"),
    "a wrong answer, by line": ("a.json", two_questions(answers=[]), read_squad, 21, "'q2' has no answer"),
    "a list for an object": ("a.json", "[]", read_squad, 1, "the file has no list 'data' (a list)"),
    "no paragraphs": ("a.json", '{"data": [{"title": "t"}]}', read_squad, 1, "data[0] has no list 'paragraphs'"),
    "questions on lines": ("a.jsonl", '{"id": "1", "question": "?"}\n', read_squad, 1, "questions are read from JSON"),
    "questions in a table": ("a.csv", "question,context\n?,a\n", read_squad, 1, "questions are read from JSON"),
    "cut in the middle": ("a.json", two_questions().partition('"q2"')[0], read_squad, 21, "invalid JSON"),
    "no question at all": ("a.json", '{"data": []}', read_squad, 1, "no question in the file"),
    "JSON without an end": ("a.json", "[" * 100_000, read_squad, 1, "nested too deeply"),
    "words that are not there": ("qamr.tsv", QAMR.format("1 9"), read_qamr, 1, "numbers of words from 0 to 3"),
    "an answer that is no number": ("qamr.tsv", QAMR.format("one").replace("8:1\t9:1", "8:Invalid\t9:Invalid"),
        read_qamr, 1, "'one'"),
    "a sentence that is not there": ("qamr.tsv", QAMR.format("1").replace("s1", "s2"), read_qamr, 1,
        "the sentence 's2' is not in"),
    # multiple choice
    "a fifth ending": ("val.csv", SWAG + "문이 열린다.,그녀는,a,b,c,d,4\n", read_swag, 2,
        "the label '4', expected 0, 1, 2 or 3"),
    "an ending is empty": ("val.csv", SWAG + "문이 열린다.,그녀는,a,,c,d,1\n", read_swag, 2,
        "the text in ending1 is empty"),
}
# fmt: on


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file(tmp_path, case):
    name, content, read, line, message = BROKEN[case]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "wiki-sentences.tsv").write_text("s1\tThe old ship sank\n")
    with pytest.raises(BadRow) as problem:
        read(path)
    error_text = str(problem.value)
    assert error_text.startswith(f"{path}:{line}: "), error_text
    assert message in error_text
    # The message has the form "problem; remedy".
    assert re.search(r"; \S", error_text)
    assert "\n" not in error_text


def test_folders_and_missing_files(tmp_path):
    with pytest.raises(BadRow, match=r":1: a folder, expected a file; name the file in it"):
        read_texts(tmp_path, Layout("text", table="csv"))
    with pytest.raises(FileNotFoundError, match=r"none\.tsv: there is no such file"):
        read_texts(tmp_path / "none.tsv", "sst2")


@pytest.mark.parametrize(
    ("content", "classes"), [("review,stars\n좋다,5\n별로,3\n", ["1", "5"]), ("review,stars\n별로,5.0\n", ["5"])]
)
def test_a_label_that_only_occurs_in_the_dev_data(tmp_path, content, classes):
    (tmp_path / "dev.csv").write_text(content, encoding="utf-8")
    dev = read_texts(tmp_path / "dev.csv", CSV)
    message = rf"dev\.csv:{dev[-1].line}: the label {dev[-1].label!r} is not in the training data.*{str(classes)[1:-1]}"
    with pytest.raises(BadRow, match=message):
        label_ids(dev, classes)


def test_an_entity_type_that_only_occurs_in_the_dev_data(tmp_path):
    (tmp_path / "train.conll").write_text("a B-PER\nb O\n")
    (tmp_path / "dev.conll").write_text("a B-PER\nb I-PER\n\nc B-LOC\n")
    tags = find_tags(read_tagged(tmp_path / "train.conll", "conll"), entities=True)
    first, second = read_tagged(tmp_path / "dev.conll", "conll")
    assert tag_ids(first, tags).tolist() == [tags.index("B-PER"), tags.index("I-PER")]
    with pytest.raises(BadRow, match=r"dev\.conll:4: the tag 'B-LOC' is not in the training data"):
        tag_ids(second, tags)


def test_errors_can_be_pickled(tmp_path):
    problem = BadRow(tmp_path / "a.tsv", 3, "what", "remedy")
    assert str(pickle.loads(pickle.dumps(problem))) == str(problem)


def test_tables_that_would_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(unpack, "SMALL_UNPACKED", 1 << 20)
    with gzip.open(tmp_path / "train.csv.gz", "wb") as file:
        file.write(b"review,stars\n" + b"good,1\n" * (1 << 19))
    with pytest.raises(BadRow, match="more than 200 times as large when unpacked, which no text is"):
        read_texts(tmp_path / "train.csv.gz", CSV)
    (tmp_path / "train.csv").symlink_to("/dev/zero")
    with pytest.raises(BadRow, match="a device without an end, expected a file"):
        read_texts(tmp_path / "train.csv", CSV)


def test_an_encoding_with_a_nul_is_named(tmp_path):
    (tmp_path / "train.txt").write_text("good")
    with pytest.raises(ValueError, match=r"encoding='a\\x00b' is not known; use one of Python's"):
        files.read_text(tmp_path / "train.txt", "a\0b")


def test_a_message_about_columns_names_a_few_of_thousands(tmp_path):
    (tmp_path / "train.csv").write_text(",".join(f"c{n}" for n in range(5000)) + "\n")
    with pytest.raises(BadRow, match="'c29' and 4,970 more, expected a header"):
        read_texts(tmp_path / "train.csv", CSV)
