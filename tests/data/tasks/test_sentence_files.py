"""Files of pairs, triplets and scores: columns by name, losses by columns, and wrong files."""

import re

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
