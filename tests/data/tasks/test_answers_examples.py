"""Examples of `bert_elmo_jax.data.tasks.answers`."""

import numpy as np

from bert_elmo_jax.data.tasks.answers import answers_of_words
from bert_elmo_jax.data.tasks.examples import Question


def test_example_of_answers_of_words():
    from bert_elmo_jax.data.tasks.question_rows import reading_rows
    from bert_elmo_jax.text import Lexicon

    question = Question("q", "어디 ?", "배는 강가에\t있다.", (), "dev.json", 1)
    rows = reading_rows([question], Lexicon([], "unk", width=4))
    start, end = np.array([0.0, 5.0, 0.0, 0.0]), np.array([6.0, 0.0, 5.0, 0.0])
    [found] = answers_of_words([question], rows, [(start, end, -np.inf)])
    assert (found.answer.text, question.context[found.answer.start : found.answer.end] == found.answer.text) == (
        "강가에\t있다",
        True,
    )
    assert answers_of_words([question], rows, [(start, end, 11.0)], null_threshold=0.0)[0].answer.text == ""
