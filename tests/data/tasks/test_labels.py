"""Labels and tags are compared in NFC, and unknown ones are refused."""

import re
import unicodedata

import pytest

from bert_elmo_jax.data.tasks.examples import TaggedSentence, TextExample
from bert_elmo_jax.data.tasks.files import BadRow
from bert_elmo_jax.data.tasks.labels import check_tags, find_labels, label_ids, tag_ids
from bert_elmo_jax.data.tasks.task import check_labels, task_named, with_labels, with_spelling

NFC, NFD = "감동", unicodedata.normalize("NFD", "감동")


@pytest.mark.parametrize(("first", "other"), [(NFC, NFD), (NFD, NFC)])
def test_labels_and_tags_are_compared_in_nfc(first, other):
    train = [TextExample("a", None, label, None, "train.csv", 2) for label in (first, "노잼", other)]
    task = with_labels(task_named("classification"), train)
    assert set(task.labels) == {first, "노잼"}, "the first spelling"
    assert [example.label for example in with_spelling(task, train)] == [first, "노잼", first]
    assert label_ids(train, task.labels).tolist() == [task.labels.index(name) for name in (first, "노잼", first)]
    check_labels(task, train)
    tagged = [TaggedSentence(("a", "b"), (f"B-{first}", f"B-{other}"), "train.conll", (1, 2), 0)]
    tags = with_labels(task_named("entities", file="train.conll"), tagged)
    assert f"B-{first}" in tags.labels and f"B-{other}" not in tags.labels
    assert with_spelling(tags, tagged)[0].tags == (f"B-{first}",) * 2
    assert len(set(tag_ids(tagged[0], tags.labels).tolist())) == 1
    # A model of an earlier version, with both spellings, keeps them.
    assert label_ids([train[0], train[2]], (first, other)).tolist() == [0, 1]


def test_unknown_labels_and_tags_are_refused():
    with pytest.raises(BadRow, match="is not in the training data"):
        label_ids([TextExample("a", None, NFC, None, "train.csv", 2)], ("a", "b"))
    message = (
        "train.conll:3: the tag 'LOC', expected O, or B-, I-, E- or S- and a type; "
        "correct it, give the column of the tags, or read other tags with --task=tags (entities=False)"
    )
    with pytest.raises(BadRow, match=re.escape(message)):
        check_tags(TaggedSentence(("서울",), ("LOC",), "train.conll", (3,), 0))


@pytest.mark.parametrize("label", ["NaN", "nan", " NAN "])
def test_a_cell_without_a_value_is_no_label(label):
    examples = [TextExample("a", None, name, None, "train.csv", n) for n, name in enumerate(["1", "2", label], start=2)]
    with pytest.raises(BadRow, match=r"train\.csv:4: .*which programs write for a cell without a value"):
        find_labels(examples)
