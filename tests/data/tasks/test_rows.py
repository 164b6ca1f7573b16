"""Examples as rows: truncation as in the papers, places of words, positions of answers."""

import dataclasses
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.tasks import Answer, ChoiceExample, Question, TaggedSentence, TextExample
from bert_elmo_jax.data.tasks.rows import check_length, make_rows, pair_ids, tag_places
from bert_elmo_jax.data.tasks.task import TASKS, Task, task_from_json, task_named, task_to_json, with_labels
from bert_elmo_jax.text import WordPiece, train_wordpiece
from bert_elmo_jax.text.piece_batch import keep_of_pair

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh", "##x", "##y", "서울", "##역", "배"]
TOKENIZER = WordPiece(PIECES)


def decoded(row, part=0):
    return [PIECES[i] for i in row.ids[part]]


def popped(first, second, room):
    """Truncate with the loop of the original."""
    a, b = first, second
    while a + b > room:
        if a > b:
            a -= 1
        else:
            b -= 1
    return a, b


@given(st.integers(0, 30), st.integers(0, 30), st.integers(2, 40))
def test_pairs_lose_pieces_of_the_longer_text(first, second, room):
    assert keep_of_pair(first, second, room) == popped(first, second, room)


def test_texts_and_labels():
    task = dataclasses.replace(task_named("sst2", max_length=8), labels=("0", "1"))
    long, empty = (TextExample(text, None, "1", None, "a.tsv", 2) for text in ("a b c d e f g h", ""))
    rows = make_rows(task, [long, empty], TOKENIZER)
    assert decoded(rows[0]) == ["[CLS]", *"abcdef", "[SEP]"]
    assert decoded(rows[1]) == ["[CLS]", "[SEP]"]
    assert [row.targets for row in rows] == [{"labels": 1, "weights": 1.0}] * 2
    assert make_rows(task, [long], TOKENIZER, labelled=False)[0].targets == {}


def test_choices():
    example = ChoiceExample("a b", ("c", "d e", "f", "서울역"), 3, None, "a.csv", 2)
    [row] = make_rows(task_named("swag", max_length=8), [example], TOKENIZER)
    assert [decoded(row, n) for n in (0, 3)] == [
        ["[CLS]", "a", "b", "[SEP]", "c", "[SEP]"],
        ["[CLS]", "a", "b", "[SEP]", "서울", "##역", "[SEP]"],
    ]
    assert row.types[3].tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert row.targets["labels"] == 3


def tagged(*sentences, document=0):
    return [
        TaggedSentence(
            tuple(words.split(" ")), tuple("O" * len(words.split(" "))), "a", (1,) * len(words.split(" ")), document
        )
        for words in sentences
    ]


def test_the_first_piece_of_a_word_is_scored():
    task = Task("ud_upos", "tags", labels=("N", "O", "V"), max_length=16)
    sentence = TaggedSentence(("axy", "서울역", "배"), ("V", "N", "O"), "a", (1, 2, 3), 0)
    [row] = make_rows(task, [sentence], TOKENIZER)
    assert decoded(row) == ["[CLS]", "a", "##x", "##y", "서울", "##역", "배", "[SEP]"]
    assert row.targets["weights"].tolist() == [0, 1, 0, 0, 1, 0, 1, 0]
    assert row.targets["labels"][[1, 4, 6]].tolist() == [2, 0, 1]


def test_words_without_pieces_are_tagged():
    [(_, ids, words)] = tag_places(tagged("a \x01 b"), TOKENIZER, 16)
    assert [PIECES[i] for i in ids] == ["[CLS]", "a", "[UNK]", "b", "[SEP]"]
    assert words.tolist() == [[0, 1], [1, 2], [2, 3]]


@given(
    st.lists(st.lists(st.sampled_from(["a", "bxy", "서울역", "cx"]), min_size=1, max_size=12), min_size=1, max_size=4),
    st.integers(8, 20),
    st.booleans(),
)
def test_every_word_has_one_place_in_rows_that_fit(sentences, length, context):
    examples = tagged(*(" ".join(words) for words in sentences))
    seen = {}
    for number, ids, words in tag_places(examples, TOKENIZER, length, context=context):
        assert len(ids) <= length
        assert (ids[0], ids[-1]) == (TOKENIZER.cls_id, TOKENIZER.sep_id)
        for word, place in words.tolist():
            assert (number, word) not in seen
            seen[number, word] = PIECES[ids[place]]
    assert seen == {
        (n, w): word[:2] if word == "서울역" else word[0]
        for n, words in enumerate(sentences)
        for w, word in enumerate(words)
    }


def test_context_stays_in_its_document():
    sentences = tagged("a b", "c d") + tagged("e f", document=1)
    rows = [[PIECES[i] for i in ids] for _, ids, _ in tag_places(sentences, TOKENIZER, 16, context=True)]
    assert rows == [["[CLS]", *"abcd", "[SEP]"]] * 2 + [["[CLS]", *"ef", "[SEP]"]]


def test_characters_as_words():
    text = "서울역 배"
    sentence = TaggedSentence(tuple(text), ("B-LC", "I-LC", "I-LC", "O", "O"), "a.tsv", (1, 2, 3, 4, 5), 0)
    task = dataclasses.replace(task_named("klue_ner"), labels=("B-LC", "I-LC", "O"), max_length=16)
    [row] = make_rows(task, [sentence], TOKENIZER)
    assert decoded(row) == ["[CLS]", "서울", "##역", "배", "[SEP]"]
    assert row.words.tolist() == [[0, 1], [2, 2], [4, 3]]
    assert row.targets["labels"][:4].tolist() == [0, 0, 1, 2]


def test_answers_point_at_their_pieces():
    context = "a b c 서울역 d e f g h a b c"
    question = Question("q", "where", context, (Answer("서울", 6),), "a.json", 1)
    tokenizer = train_wordpiece([f"where {context}"] * 9, vocab_size=60)
    rows = make_rows(task_named("squad", max_length=12, stride=4), [question], tokenizer)
    assert len(rows) > 1
    for row in rows:
        start, end = row.targets["starts"], row.targets["ends"]
        if start:
            assert "".join(tokenizer.decode(row.ids[0][start : end + 1])).startswith("서울")
    assert any(row.targets["starts"] for row in rows)
    assert not all(row.targets["starts"] for row in rows)


@pytest.mark.parametrize("name", TASKS)
def test_tasks_survive_json(name):
    task = dataclasses.replace(task_named(name), labels=("가", "나"))
    assert task_from_json(json.loads(json.dumps(task_to_json(task))), "model.json") == task


def test_invalid_tasks_are_refused():
    with pytest.raises(ValueError, match="there is no task 'poetry'; there are classification"):
        task_named("poetry")
    with pytest.raises(ValueError, match=r"label='tag' for a\.conll: its columns have no names; give a number"):
        task_named("tags", label="tag", file="a.conll")
    with pytest.raises(ValueError, match="pair='b': 'entities' has one column of words; leave it out"):
        task_named("entities", pair="b")
    with pytest.raises(ValueError, match="max_length=4: use 8 to 512"):
        check_length(task_named("sst2", max_length=4), 512)
    with pytest.raises(ValueError, match="task is invalid in this version"):
        task_from_json({"name": "a", "kind": "choice", "colour": 1}, "model.json")


def test_labels_come_from_the_training_data():
    examples = [TextExample("a", None, label, None, "a.csv", 2) for label in ("10", "9", "10")]
    assert with_labels(task_named("classification"), examples).labels == ("9", "10")
    asked = [Question("q", "a", "b", (), "a.json", 1), Question("r", "a", "b", (Answer("b", 0),), "a.json", 1)]
    assert with_labels(task_named("squad"), asked).unanswerable
    assert not with_labels(task_named("squad"), asked[1:]).unanswerable
    assert np.array_equal(with_labels(task_named("swag"), []).labels, ())


def test_example_of_check_length():
    from bert_elmo_jax.data.tasks.task import task_named

    with pytest.raises(ValueError, match=re.escape("max_length=600: use 8 to 512, the positions of this model")):
        check_length(task_named("sst2", max_length=600), 512)


def test_rows_follow_the_frame_of_the_tokenizer(goldens):
    from bert_elmo_jax.data.tasks.rows import make_windows
    from bert_elmo_jax.text import load_tokenizer

    tokenizer = load_tokenizer(goldens / "tokenizers" / "roberta_tiny")
    for length in (9, 40):
        ids, types = pair_ids("the ship", "강을", tokenizer, length)
        whole = tokenizer.encode("the ship", "강을").ids.tolist()
        assert len(ids) == min(length, len(whole)) and not types.any()
        assert (ids == 2).sum() == 3 and ids[0] == 0 and ids[-1] == 2
    assert ids.tolist() == whole
    assert pair_ids("the ship", None, tokenizer, 40)[0].tolist() == tokenizer.encode("the ship").ids.tolist()
    question = Question("q", "where ?", "the river, 강을", (), "dev.json", 1)
    [window] = make_windows([question], tokenizer)
    assert window.ids.tolist() == tokenizer.encode("where ?", "the river, 강을").ids.tolist()
    inside = window.spans[:, 0] >= 0
    assert window.spans[inside].tolist() == tokenizer.encode("the river, 강을", specials=False).offsets.tolist()
    assert not window.types.any()
