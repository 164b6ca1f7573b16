"""From scores to answers: exact search for the best spans over all windows, as characters of the text."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.tasks import Question, answers
from bert_elmo_jax.data.tasks.answers import REPEATS, answers_of_words, best_spans
from bert_elmo_jax.data.tasks.question_rows import reading_rows
from bert_elmo_jax.text import Lexicon

LEXICON = Lexicon([], "unk", width=4)


def about(context, number="q"):
    return Question(number, "어디 ?", context, (), "dev.json", 1)


@given(size=st.integers(1, 8), longest=st.integers(1, 10), seed=st.integers(0, 99))
def test_all_spans_the_best_first(size, longest, seed):
    draw = np.random.default_rng(seed)
    start, end = draw.integers(-3, 4, (2, size)).astype(float)
    spans = list(best_spans(start, end, longest))
    pairs = [(a, b) for a, b in itertools.product(range(size), repeat=2) if a <= b < a + longest]
    expected = sorted(((a, b, start[a] + end[b]) for a, b in pairs), key=lambda span: -span[2])
    assert spans == expected


def test_answers_are_copied_from_the_context():
    context = "배는\r\n강가에\t있다 😀!"
    rows = reading_rows([about(context)], LEXICON)
    start, end = (np.array(side, np.float32) for side in ([0, 10, 0, 0, 0, 99], [9, 0, 0, 8, 0, 99]))  # one is padding
    [guess] = answers_of_words([about(context)], rows, [(start, end, -math.inf)])
    assert (guess.answer.text, guess.answer.start, guess.answer.end) == ("강가에\t있다 😀", 4, 12)
    assert guess.answer.probability == max(candidate.probability for candidate in guess.candidates)
    assert sum(candidate.probability for candidate in guess.candidates) == pytest.approx(1)
    assert len(guess.candidates) == 15  # 5 words
    [guess] = answers_of_words([about(context)], rows, [(start, end, -math.inf)], longest=2, n_best=3)
    assert guess.answer.text == "강가에"
    assert len(guess.candidates) == 3
    assert guess.null_score == -math.inf


def test_any_scores_have_an_answer_and_a_repeated_text_is_one_candidate():
    context = " ".join(f"w{n}" for n in range(60))
    # The best starts are far behind the best ends, so that they form no valid span.
    start, end = np.linspace(0, 50, 60), np.linspace(50, 0, 60)
    [guess] = answers_of_words([about(context)], reading_rows([about(context)], LEXICON), [(start, end, 0.0)], n_best=1)
    assert guess.answer.text
    questions, side = [about("sea sea ship")], np.array([5.0, 6, 0])
    [guess] = answers_of_words(questions, reading_rows(questions, LEXICON), [(side, side, 0.0)], longest=1)
    assert [(c.text, c.start) for c in guess.candidates] == [("sea", 4), ("ship", 8)]
    [guess] = answers_of_words([about("배")], reading_rows([about("배")], LEXICON), [(np.zeros(8), np.zeros(8), 0.0)])
    assert (guess.answer.text, guess.answer.start, guess.answer.end, guess.answer.probability) == ("배", 0, 1, 1.0)


def test_one_word_over_and_over_takes_little_memory_and_time(monkeypatch):
    questions, kept, searched = [about("a " * 300)], [], []
    choose = answers.choose
    monkeypatch.setattr(answers, "choose", lambda *given: kept.extend(given[1]) or choose(*given))
    monkeypatch.setattr(answers, "best_spans", lambda *given: (searched.append(1) or s for s in best_spans(*given)))
    side = np.linspace(0, 5, 300)
    [guess] = answers_of_words(questions, reading_rows(questions, LEXICON), [(side, side, 0.0)], n_best=100)
    assert guess.answer.text == "a" and guess.answer.start == 2 * 299
    assert len(kept) == len({candidate.text for candidate in kept}) <= 30
    assert len(searched) <= 100 * REPEATS


def test_windows():
    """The best span over all windows wins; words count in their owning window; "no answer" needs every window."""
    context = " ".join(f"w{n}" for n in range(10))
    rows = reading_rows([about(context, "a"), about(context, "b")], LEXICON, limit=4)
    assert [(row.example, row.begin) for row in rows] == [(n, begin) for n in (0, 1) for begin in (0, 2, 4, 6)]
    low = np.zeros(4)

    def at(place, value):
        return (np.arange(4) == place) * float(value)

    scores = [(low, low, 3.0), (low, low, 1.0), (at(1, 5), at(2, 5), 2.0), (low, low, 4.0)]
    scores += [(low, low, 3.0), (at(0, 9), at(0, 9), 3.0), (at(1, 5), at(2, 5), 3.0), (low, low, 4.0)]
    first, second = answers_of_words([about(context, "a"), about(context, "b")], rows, scores, null_threshold=0.0)
    assert first.answer.text == "w5 w6"
    assert first.null_score == 1.0 - 10.0
    assert context[first.answer.start : first.answer.end] == "w5 w6"
    assert not rows[5].owned[0]
    assert second.answer.text == "w5 w6"  # w2 is at the edge of that window, which does not own it
    none, _ = answers_of_words([about(context, "a"), about(context, "b")], rows, scores, null_threshold=-9.5)
    assert none.answer.text == ""
    assert none.candidates[0].text == "w5 w6"
    assert "" in {candidate.text for candidate in none.candidates}


def test_scores_that_are_nan_are_refused():
    question, fine = about("배는 강가에"), np.zeros(2)
    rows = reading_rows([question], LEXICON)
    for scores, message in [
        ([(np.array([np.nan, 0]), fine, 0.0)], "question 'q' contain NaN: did the training diverge"),
        ([(fine, fine, math.nan)], "contain NaN"),
    ]:
        with pytest.raises(ValueError, match=message):
            answers_of_words([question], rows, scores)


@pytest.mark.parametrize(("threshold", "text", "score"), [(5.0, "sea", 1.0), (0.5, "", 1.0), (None, "sea", 1.0)])
def test_one_candidate_does_not_decide_whether_there_is_an_answer(threshold, text, score):
    spans = [answers.Candidate("sea", 0, 3, 2.0, 0.0), answers.Candidate("ship", 4, 8, 1.0, 0.0)]
    for n_best in (1, 2, 20):
        guess = answers.choose("q", spans, 3.0, n_best, threshold)
        assert (guess.answer.text, guess.null_score) == (text, score)
        assert guess.answer in guess.candidates
