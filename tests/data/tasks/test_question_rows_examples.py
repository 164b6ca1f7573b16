"""Examples of `bert_elmo_jax.data.tasks.question_rows`."""

from bert_elmo_jax.data.tasks.examples import Question
from bert_elmo_jax.data.tasks.question_rows import collate_questions, reading_rows, training_rows, words_of_questions
from bert_elmo_jax.text import Lexicon


def test_example_of_training_rows():
    from bert_elmo_jax.data.tasks import Answer

    question = Question("q", "어디 ?", "배는 강가에 있다 .", (Answer("강가", 3),), "train.json", 1)
    found = training_rows([question], Lexicon([], "unk", width=4), limit=2)
    assert (found.rows[0].words, found.rows[0].answers.tolist(), found.windowed, found.inexact) == (
        ("배는", "강가에"),
        [[1, 1]],
        1,
        1,
    )


def test_example_of_reading_rows():
    question = Question("q", "where ?", "a ship at sea", (), "dev.json", 1)
    rows = reading_rows([question] * 2, Lexicon([], "unk", width=4), limit=2)
    assert [(row.example, *row.words) for row in rows[:4]] == [
        (0, "a", "ship"),
        (0, "ship", "at"),
        (0, "at", "sea"),
        (1, "a", "ship"),
    ]


def test_example_of_collate_questions():
    question = Question("q", "어디 ?", "배는 강가에 있다", (), "dev.json", 1)
    lexicon = Lexicon(["배는"], "unk", width=4)
    batch = collate_questions(training_rows([question], lexicon).rows, 2, lexicon)
    assert {name: array.shape for name, array in batch.items()} == {
        "words": (2, 32),
        "lengths": (2,),
        "question_words": (2, 16),
        "question_lengths": (2,),
        "answers": (2, 8, 2),
        "weights": (2,),
    }


def test_example_of_words_of_questions():
    question = Question("q", "어디 ?", "배는 강가에", (), "dev.json", 1)
    assert list(words_of_questions([question] * 2)) == [("배는", "강가에"), ("어디", "?"), ("어디", "?")]
