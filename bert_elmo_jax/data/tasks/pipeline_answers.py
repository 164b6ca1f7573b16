"""Answers of released readers, as transformers' pipeline for question answering finds them."""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float32

from bert_elmo_jax.data.tasks.answers import AnswerPrediction, Candidate
from bert_elmo_jax.data.tasks.examples import Question
from bert_elmo_jax.data.tasks.rows import Window

OUTSIDE = np.float32(-10_000.0)  # the score of pieces that cannot be an answer


def find_pipeline_answers(
    questions: Sequence[Question],
    windows: Sequence[Window],
    start_scores: Sequence[Float32[np.ndarray, "_"]],
    end_scores: Sequence[Float32[np.ndarray, "_"]],
    *,
    top_k: int = 1,
    longest: int = 15,
    no_answer: bool = False,
) -> list[AnswerPrediction]:
    """Return the `top_k` answers to each question, given the scores of its windows.

    A window has one softmax over the starts in its context and `[CLS]`, if there is one, and one over the ends; a span
    of at most `longest` pieces has the product of both. The best `2 top_k + 10` spans of each window are widened to
    words, and the probabilities of answers that are equal but for their case are added up. With `no_answer`, "" is a
    candidate with the smallest product at `[CLS]` of all windows.
    """
    answers: list[dict[str, Candidate]] = [{} for _ in questions]
    nulls = [1.0] * len(questions)
    for window, starts, ends in zip(windows, start_scores, end_scores, strict=True):
        inside = window.spans[:, 0] >= 0
        allowed = inside.copy()
        allowed[0] |= window.framed  # of a GPT-2, the first piece is the question's, and means nothing
        start, end = (_shares(np.asarray(scores, np.float32), allowed) for scores in (starts, ends))
        nulls[window.question] = min(nulls[window.question], float(start[0] * end[0]))
        start[0] = end[0] = 0.0
        context, of_texts = questions[window.question].context, answers[window.question]
        for first, last, probability in best_spans(start, end, longest, 2 * top_k + 10):
            begin, behind = _widen(window, first, last)
            text = context[begin:behind]
            earlier = of_texts.get(text.lower(), Candidate(text, begin, behind, 0.0, 0.0))
            total = earlier.probability + probability
            of_texts[text.lower()] = Candidate(earlier.text, earlier.start, earlier.end, total, total)
    return [
        _rank(question.id, list(of_texts.values()), null, top_k, no_answer)
        for question, of_texts, null in zip(questions, answers, nulls)
    ]


def best_spans(
    start: Float32[np.ndarray, "T"], end: Float32[np.ndarray, "T"], longest: int, number: int
) -> Iterator[tuple[int, int, float]]:
    """Yield the likeliest spans (first, last, probability) of at most `longest` pieces, best first.

    >>> list(best_spans(np.float32([0.0, 0.5]), np.float32([1.0, 0.5]), longest=2, number=3))
    [(1, 1, 0.25)]
    """
    products = np.tril(np.triu(np.outer(start, end)), longest - 1)
    order = np.argsort(-products, axis=None, kind="stable")[:number]
    for first, last in zip(*np.unravel_index(order, products.shape)):
        if products[first, last] > 0:
            yield int(first), int(last), float(products[first, last])


def _shares(scores: Float32[np.ndarray, "_"], allowed: Bool[np.ndarray, "T"]) -> Float32[np.ndarray, "T"]:
    """Return the probabilities of places in the context, and of a first special place, which means "no answer"."""
    odds = np.where(allowed, scores[: len(allowed)], OUTSIDE)
    odds = np.exp(odds - odds.max())
    return odds / odds.sum()


def _widen(window: Window, first: int, last: int) -> tuple[int, int]:
    """Return the characters of a span, from the begin of its first word in the window to the end of its last."""
    words = window.words
    assert words is not None
    if words[first] >= 0 and words[last] >= 0:
        first = int(np.flatnonzero(words == words[first])[0])
        last = int(np.flatnonzero(words == words[last])[-1])
    return int(window.spans[first, 0]), int(window.spans[last, 1])


def _rank(number: str, candidates: list[Candidate], null: float, top_k: int, no_answer: bool) -> AnswerPrediction:
    best_text = max((candidate.probability for candidate in candidates), default=0.0)
    none = Candidate("", 0, 0, null, null)
    if no_answer or not candidates:
        candidates.append(none)
    ranked = sorted(candidates, key=lambda candidate: -candidate.probability)[:top_k]
    return AnswerPrediction(number, ranked[0], tuple(ranked), null - best_text)
