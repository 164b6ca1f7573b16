"""Files of pairs, triplets and scores: columns by name, losses by columns, and wrong files."""

import json
import re
import unicodedata

import pytest

from bert_elmo_jax.data.tasks.rows import make_rows
from bert_elmo_jax.data.tasks.task import check_labels, read_examples, task_named, with_labels, with_top_score
from bert_elmo_jax.text import train_wordpiece

STS = "main\tnews\t2012\t7\t{}\tA plane leaves.\tAn air plane leaves.{}\n"
FILES = {  # content, texts and label of the first example, and the loss
    "pairs.tsv": ("anchor\tpositive\n비가 온다.\t비가 내린다.\n", ("비가 온다.", "비가 내린다."), None, "in_batch"),
    "triplets.jsonl": ('{"anchor": "a", "positive": "b", "negative": "c"}\n', ("a", "b", "c"), None, "triplets"),
    "scores.csv": ('id,sentence1,sentence2,score\n1,"a, b",c,0.5\n', ("a, b", "c"), 0.5, "scores"),
    "sts.csv": (
        STS.format("5.000", "") + STS.format(2.5, "\tlicence\tsource"),
        ("A plane leaves.", "An air plane leaves."),
        5.0,
        "scores",
    ),
    "named.tsv": ("left\tright\tgold\na\tb\t3\n", ("a", "b"), 3.0, "scores"),
    "list.json": ('[{"text": "a", "pair": "b", "score": 4}]', ("a", "b"), 4.0, "scores"),
}


def read(tmp_path, name, content, labelled=True, **fields):
    (tmp_path / name).write_text(content, encoding="utf-8")
    task = task_named("sentences", **fields)
    return task, read_examples(tmp_path / name, task, labelled=labelled)


@pytest.mark.parametrize("name", FILES)
def test_columns_and_the_loss_that_they_call_for(tmp_path, name):
    fields = {"text": "left", "pair": "right", "label": "gold"} if name == "named.tsv" else {}
    content, texts, label, loss = FILES[name]
    task, examples = read(tmp_path, name, content, **fields)
    assert (examples[0].texts, examples[0].label, with_labels(task, examples).loss) == (texts, label, loss)
    task, examples = read(tmp_path, name, content, labelled=False, **fields)
    assert (examples[0].texts, examples[0].label) == (texts[:2], None)


def test_a_column_called_label_is_read_if_it_is_named(tmp_path):
    content = "sentence1,sentence2,label,score\na,b,3,5\n"
    assert read(tmp_path, "a.csv", content, label="label")[1][0].label == 3.0
    assert read(tmp_path, "a.csv", content)[1][0].label == 5.0
    content = "sentence1,sentence2\na,b\n"
    assert read(tmp_path, "a.csv", content, labelled=False, label="label")[1][0].texts == ("a", "b")
    with pytest.raises(ValueError, match=r"a\.csv:1: no 'label' among"):
        read(tmp_path, "a.csv", content, label="label")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "sentence1,sentence2,label\na,b,0\nc,d,1\n"),
        ("a.tsv", "anchor\tpositive\tnegative\tSimilarity\na\tb\tc\t0.3\n"),
        ("a.jsonl", '{"sentence1": "a", "sentence2": "b", "label": false}\n'),
        ("a.json", '[{"sentence1": "a", "sentence2": "b", "labels": {"label": 3.7}}]'),  # as in KLUE
    ],
)
def test_a_column_of_numbers_called_label_is_not_left_out_silently(tmp_path, name, content):
    with pytest.raises(ValueError, match=r"1: the column '(labels\.label|label|Similarity)' has .*; give --label=\1 "):
        read(tmp_path, name, content)
    assert read(tmp_path, name, content, labelled=False)[1][0].texts == ("a", "b")
    named = "sentence1,sentence2,label\na,b,c\nc,d,1\n"
    assert read(tmp_path, "b.csv", named)[1][1].texts == ("c", "d")  # names of topics, perhaps


def test_scores_of_a_parquet_file_are_not_left_out_silently(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"sentence1": ["a"], "sentence2": ["b"], "label": [1]})
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="the column 'label' has a number in every row"):
        read_examples(tmp_path / "a.parquet", task_named("sentences"))


KOREAN = {"text": "문장1", "pair": "문장2", "label": "점수"}
NESTED = {"text": "쌍.앞", "pair": "쌍.뒤", "label": "값.점수"}


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize(
    ("name", "content", "fields"),
    [
        ("a.csv", "문장1,문장2,점수\na,b,4\n", KOREAN),
        ("a.jsonl", '{"문장1": "a", "문장2": "b", "점수": 4}', KOREAN),
        ("a.jsonl", '{"쌍": {"앞": "a", "뒤": "b"}, "값": {"점수": 4}}', NESTED),
    ],
)
def test_named_columns_and_nested_keys_are_compared_in_nfc(tmp_path, name, content, fields, form):
    [example] = read(tmp_path, name, unicodedata.normalize(form, content), **fields)[1]
    assert (example.texts, example.label) == (("a", "b"), 4.0)


PAIRS, SCORED = "sentence1,sentence2\na,b\n", "sentence1,sentence2,score\nc,d,4\n"
TRIPLETS = "anchor,positive,negative\na,b,c\n"


@pytest.mark.parametrize(
    ("first", "second", "loss", "message"),
    [
        (SCORED, PAIRS, "", "two columns of texts and none of scores, while {} has two columns of texts and one of"),
        (PAIRS, SCORED, "", "two columns of texts and one of scores, while {} has two columns of texts and none of"),
        (TRIPLETS, PAIRS, "", "two columns of texts and none of scores, while {} has three columns of texts and none"),
        (PAIRS, TRIPLETS, "in_batch", "three columns of texts and none of scores, while {} has two columns of texts"),
    ],
)
def test_training_files_with_different_columns_are_refused(tmp_path, first, second, loss, message):
    files = [tmp_path / "first.csv", tmp_path / "second.csv"]
    for file, content in zip(files, (first, second)):
        file.write_text(content, encoding="utf-8")
    task = task_named("sentences", loss=loss)
    with pytest.raises(ValueError, match=re.escape(f"second.csv:1: {message.format(files[0])}")):
        with_labels(task, read_examples(",".join(map(str, files)), task))


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({}, {"score": 0.0}, "a score, and the first row has none"),
        ({"score": 1}, {}, "no 'score' among 'anchor', 'positive'"),
        ({}, {"negative": "c"}, "a negative, and the first row has none"),
        ({"negative": "c"}, {}, "no 'negative' among 'anchor', 'positive'"),
    ],
)
def test_json_rows_with_different_keys_are_refused(tmp_path, first, second, message):
    rows = [{"anchor": "a", "positive": "b"} | keys for keys in (first, second)]
    with pytest.raises(ValueError, match=rf"\.jsonl:2: {message}"):
        read(tmp_path, "pairs.jsonl", "\n".join(map(json.dumps, rows)))
    with pytest.raises(ValueError, match=f"row 2: {message}"):
        read(tmp_path, "pairs.json", json.dumps(rows))
    assert len(read(tmp_path, "pairs.jsonl", "\n".join(map(json.dumps, rows)), labelled=False)[1]) == 2


def test_a_score_that_no_row_needs_is_left_out(tmp_path):
    rows = [{"anchor": "a", "positive": "b"}, {"anchor": "c", "positive": "d", "score": None}]
    examples = read(tmp_path, "pairs.jsonl", "\n".join(map(json.dumps, rows)))[1]
    assert [example.label for example in examples] == [None, None]
    rows = [row | {"gold": 4, "score": 1} for row in rows]
    assert [row.label for row in read(tmp_path, "a.json", json.dumps(rows), label="gold")[1]] == [4.0, 4.0]


def test_development_files_may_have_scores_that_the_training_data_lack(tmp_path):
    task, train = read(tmp_path, "train.csv", PAIRS)
    dev = read(tmp_path, "dev.csv", SCORED)[1]
    task = with_top_score(with_labels(task, train), dev)
    check_labels(task, dev)
    rows = make_rows(task, dev, train_wordpiece(["a b c d"] * 9, vocab_size=60))
    assert task.loss == "in_batch" and rows[0].targets.keys() == {"anchors", "positives", "weights"}


def test_a_pair_without_a_score_is_no_target_of_scores(tmp_path):
    task, examples = read(tmp_path, "pairs.csv", PAIRS, loss="scores", top_score=5.0)
    with pytest.raises(ValueError, match=r"pairs\.csv:2: no score, and the loss scores needs one"):
        make_rows(task, examples, train_wordpiece(["a b"] * 9, vocab_size=60))


def test_rows_have_a_sequence_for_each_text(tmp_path):
    task, examples = read(tmp_path, "sts.csv", FILES["sts.csv"][0])
    task = with_top_score(with_labels(task, examples), examples)
    tokenizer = train_wordpiece([example.text for example in examples] * 9, vocab_size=60)
    rows = make_rows(task, examples, tokenizer)
    assert [row.targets for row in rows] == [{"scores": 1.0, "weights": 1.0}, {"scores": 0.5, "weights": 1.0}]
    assert len(rows[0].ids) == 2 and not any(types.any() for types in rows[0].types)
    assert [ids.tolist() for ids in rows[0].ids] == [tokenizer.encode(text).ids.tolist() for text in examples[0].texts]
    assert not make_rows(task, examples, tokenizer, labelled=False)[0].targets


def test_equal_texts_have_equal_numbers(tmp_path):
    task, examples = read(tmp_path, "pairs.csv", "anchor,positive\na,b\nb,c\na,d\n")
    rows = make_rows(with_labels(task, examples), examples, train_wordpiece(["a b c d"] * 9, vocab_size=60))
    assert [(row.targets["anchors"], row.targets["positives"]) for row in rows] == [(0, 1), (1, 2), (0, 3)]


WRONG = [  # content, fields of the task, and the message
    ("anchor,positive,score\na,b,much\n", {}, "wrong.csv:2: score is 'much', expected a number such as 4.5"),
    ("anchor,positive,score\na,b,nan\n", {}, "wrong.csv:2: score is 'nan', expected a number"),
    ("anchor,positive\na,\n", {}, "wrong.csv:2: the text in positive is empty"),
    ("anchor,other\na,b\n", {}, "wrong.csv:1: no two texts (anchor and positive, or sentence1 and sentence2, or "),
    ("one,two\na,b\n", {"text": "one", "pair": "three"}, "wrong.csv:1: no 'one' and 'three' among 'one', 'two'"),
    ("one,two\na,b\n", {"text": "one"}, "text='one', pair='': name both columns, or neither"),
    ("text,pair\na,b\n", {"label": "gold"}, "wrong.csv:1: no 'gold' among"),
    ("anchor,positive\na,b\n", {"loss": "triplets"}, "two columns of texts; the loss triplets needs a third one"),
    ("anchor,positive\na,b\n", {"loss": "scores"}, "no column of scores; the loss scores needs one, named score"),
    ("text,pair,score\na,b,1\n", {"loss": "in_batch"}, "so some pairs are not similar; the loss in_batch needs"),
    ("anchor,positive,negative,score\na,b,c,1\n", {}, "a column of scores, which no triplet needs; the loss triplets"),
    ("text,pair\na,b\n", {"loss": "cosent"}, "no column of scores; the loss cosent needs one, named score"),
    ("text,pair\na,b\n", {"loss": "cosin"}, "config.sentences.loss='cosin' is not known; use in_batch, tri"),
    ("text,pair,score\na,b,100\n", {}, "wrong.csv:2: the score 100, expected 0 to 5"),
    (
        FILES["pairs.tsv"][0].replace("\t", ","),
        {},
        "no column of scores, and sentences are evaluated by the rank correlation",
    ),
]


@pytest.mark.parametrize(("content", "fields", "message"), WRONG)
def test_wrong_files(tmp_path, content, fields, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        task, examples = read(tmp_path, "wrong.csv", content, **fields)
        with_top_score(with_labels(task, examples), examples)
        check_labels(task, examples)  # evaluation needs scores
