"""Questions as rows of words: answers are exact spans of the context, for any words and windows."""

import dataclasses
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.tasks import Answer, BadRow, Question
from bert_elmo_jax.data.tasks.batches import TaskBatches, digest
from bert_elmo_jax.data.tasks.question_rows import collate_questions, reading_rows, training_rows, words_of_questions
from bert_elmo_jax.text import Lexicon, split_words
from bert_elmo_jax.text.words import split_line

LEXICON = Lexicon(["배는", "the"], "unk", width=4)
PARTS = ["배는 ", "강가에", " ", "\r\n", "\t", "the sea", ", ", "café", "cafe\u0301 ", "😀", "👍🏽", "漢字", "$3.50"]
PARTS += ["\u3000", "'s"]


CONTEXT = st.lists(st.sampled_from(PARTS), min_size=1, max_size=25).map("".join).filter(str.strip)


def asking(context, *answers, text="어디 where ?"):
    all_answers = tuple(
        answer if isinstance(answer, Answer) else Answer(answer, context.index(answer)) for answer in answers
    )
    return Question("q", text, context, all_answers, "train.json", 7)


def spans_of(row):
    return [(int(row.spans[first, 0]), int(row.spans[last, 1])) for first, last in row.answers]


@given(context=CONTEXT, limit=st.integers(2, 12), data=st.data())
def test_answers_are_spans_of_the_context(context, limit, data):
    start = data.draw(st.integers(0, len(context) - 1))
    end = data.draw(st.integers(start + 1, min(len(context), start + 12)))
    question = asking(context, Answer(context[start:end], start))
    if not context[start:end].strip():
        with pytest.raises(BadRow, match=r"train.json:7: question 'q': the answer .* contains no word"):
            training_rows([question], LEXICON, limit)
        return
    rows, windowed, inexact, left_out = training_rows([question], LEXICON, limit)
    words = split_line(context, "punctuation")
    if left_out:
        assert rows == []
        assert len(split_words(context[start:end])) > limit - limit // 2  # the windows overlap by half
        return
    [row] = rows
    assert row.width <= limit
    assert windowed == (len(words) > limit)
    assert row.words == tuple(words[row.begin : row.begin + row.width])
    for word, (first, behind) in zip(row.words, row.spans.tolist()):
        assert unicodedata.normalize("NFC", context[first:behind]) == word
    [(begin, behind)] = spans_of(row)
    answer = context[start:end].strip()
    assert answer in context[begin:behind]
    assert inexact == (context[begin:behind] != answer)
    # The span is minimal.
    first, last = row.answers[0]
    assert row.spans[first, 1] > start
    assert row.spans[last, 0] < end


@given(context=CONTEXT, limit=st.integers(2, 9))
def test_windows_hold_every_word_and_own_it_once(context, limit):
    rows = reading_rows([asking(context)], LEXICON, limit)
    owned = np.concatenate([np.arange(row.width)[row.owned] + row.begin for row in rows])
    assert sorted(owned.tolist()) == list(range(len(split_words(context))))
    assert all(row.width <= limit and row.answers is None for row in rows)
    assert sum(row.begin == 0 for row in rows) == 1


INSIDE = [  # a context, an answer in it, and the shown one
    ("배는 강가에 있다", "강가", "강가에"),
    ("배는 강가에 있다", "강가에", "강가에"),
    ("a well-known (ship)", "known (ship", "known (ship"),
    ("a  ship\r\nat sea", " ship\r\nat ", "ship\r\nat"),
    ("café 😀 sea", "😀", "😀"),
]


def test_inside_a_word_and_exactly():
    rows, _, inexact, _ = training_rows([asking(context, answer) for context, answer, _ in INSIDE], LEXICON)
    assert inexact == 1
    for row, (context, _, shown) in zip(rows, INSIDE):
        [(begin, behind)] = spans_of(row)
        assert context[begin:behind] == shown


def test_answers_are_cut_from_a_decomposed_context():
    context = unicodedata.normalize("NFD", "나는 강가에 있다")
    answer = unicodedata.normalize("NFD", "강가에")
    lexicon = Lexicon(["나는", "강가에", "있다", "어디"], "unk", width=4)
    question = asking(context, answer, text=unicodedata.normalize("NFD", "어디 강가에"))
    [row], _, inexact, _ = training_rows([question], lexicon)
    assert (row.words, row.ids.tolist(), inexact) == (("나는", "강가에", "있다"), [1, 2, 3], 0)
    assert (row.question, row.question_ids.tolist()) == (("어디", "강가에"), [4, 2])
    [(begin, behind)] = spans_of(row)
    assert context[begin:behind] == answer
    assert list(words_of_questions([question])) == [row.words, row.question]


def test_several_answers_each_once():
    context = "the old ship and the ship"
    question = asking(context, "old ship", "ship", "old ship", Answer("ship", context.rindex("ship")))
    [row] = training_rows([question], LEXICON).rows
    assert row.answers.tolist() == [[1, 2], [2, 2], [5, 5]]
    [row] = training_rows([question], LEXICON, limit=3).rows  # a window holds some of them
    assert [context[begin:behind] for begin, behind in spans_of(row)] == ["old ship", "ship"]


def test_windows_without_an_answer_or_with_the_most_context():
    context = " ".join(f"w{n}" for n in range(20))
    rows, windowed, inexact, left_out = training_rows([asking(context)] * 4, LEXICON, limit=8)
    assert [row.answers.shape for row in rows] == [(0, 2)] * 4
    assert [row.begin for row in rows] == [0, 4, 8, 12]  # different windows
    assert (windowed, inexact, left_out) == (4, 0, 0)
    context = " ".join("abcdefgh")  # an answer that is longer than a window is left out
    questions = [asking(context, "b c d e f"), asking(context, "b c d e f", "g"), asking(context, "c d")]
    rows, windowed, _, left_out = training_rows(questions, LEXICON, limit=4)
    assert (len(rows), windowed, left_out) == (2, 2, 1)
    assert [row.words[row.answers[0, 0]] for row in rows] == ["g", "c"]
    context = " ".join(f"w{n}" for n in range(100))
    [row] = training_rows([asking(context, "w47 w48")], LEXICON, limit=20).rows
    assert (row.begin, row.width) == (40, 20)


def test_a_batch():
    random = Lexicon(["배는"], "random", width=4)
    questions = [asking("배는 강가에 있다 . " * 3, "강가에", text="강가에 배는 ?"), asking("하나")]
    rows = training_rows(questions, random).rows
    batch = collate_questions(rows, 4, random)
    assert batch["words"].shape == (4, 32)
    assert batch["question_words"].shape == (4, 16)
    assert batch["lengths"].tolist() == [12, 1, 0, 0]
    assert batch["question_lengths"].tolist() == [3, 3, 0, 0]
    assert batch["weights"].tolist() == [1, 1, 0, 0]
    assert batch["answers"].tolist() == [[[1, 1], *[[-1, -1]] * 7], *[[[-1, -1]] * 8] * 3]
    np.testing.assert_array_equal(batch["brought"][0, 1], batch["question_brought"][0, 0])  # 강가에, in both
    assert batch["brought"][0, 1].any()
    assert not {"answers", "weights"} & set(collate_questions(rows, 4, random, targets=False))
    read = Lexicon(["배는"], "characters", width=4)
    batch = collate_questions(reading_rows(questions, read), 2, read, targets=False)
    assert batch["characters"].shape == (2, 32, 32)
    assert batch["question_characters"].shape == (2, 16, 16)


def test_encoder_layers_for_context_and_question():
    def layers(rows, height, width):
        shown = np.zeros((height, 1, width, 1), np.float32)
        for n, row in enumerate(rows):
            shown[n, 0, : row.width, 0] = [len(word) for word in row.words]
        return {"layers": shown}

    rows = training_rows([asking("배는 강가에 있다", "배는")], LEXICON).rows
    batch = collate_questions(rows, 1, LEXICON, layers)
    assert batch["layers"][0, 0, :4, 0].tolist() == [2, 3, 2, 0]
    assert batch["question_layers"][0, 0, :4, 0].tolist() == [2, 5, 1, 0]


def test_different_rows_have_different_fingerprints_and_make_batches():
    questions = [asking(f"배는 강가에 있다 {n}", "강가") for n in range(5)]
    rows = training_rows(questions, LEXICON).rows
    other = dataclasses.replace(rows[0], answers=np.array([[0, 0]], np.int32))
    other_question = dataclasses.replace(rows[0], question=("누가",), question_ids=np.zeros(1, np.int32))
    unasked = dataclasses.replace(rows[0], answers=None)
    assert len({digest([row]) for row in (*rows, other, other_question, unasked)}) == 8
    batches = TaskBatches(rows, 2, 0, lambda rows, height: collate_questions(rows, height, LEXICON))
    assert batches.epoch_size == 3
    assert next(batches)["answers"].shape == (2, 8, 2)


def test_invalid_questions_are_refused():
    for question, limit, message in (
        (asking("배는", text=" "), 400, r"train.json:7: question 'q': its text has no words; fill it in"),
        (asking(" \t"), 400, "its context has no words"),
        (asking("배는 강가에", Answer(" ", 2)), 400, "the answer ' ' contains no word of the context; correct it"),
        (asking("배는"), 1, "limit=1: a reader needs at least 2 words"),
    ):
        with pytest.raises(ValueError, match=message):
            training_rows([question], LEXICON, limit)
