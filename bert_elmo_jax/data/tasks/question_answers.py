"""Find the best answer spans of questions, as characters of the context, from the scores of the context's words."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from bert_elmo_jax.data.tasks.examples import Question
from bert_elmo_jax.data.tasks.question_rows import QuestionRow
from bert_elmo_jax.data.tasks.squad_answers import AnswerPrediction, Candidate, choose


def answers_of_words(
    questions: Sequence[Question],
    rows: Sequence[QuestionRow],
    scores: Sequence[tuple[Any, Any, Any]],
    *,
    n_best: int = 20,
    longest: int = 30,
    null_threshold: float | None = None,
) -> list[AnswerPrediction]:
    """Return the answer to each question, given the scores (starts, ends, "no answer") of its rows.

    The search for the `n_best` spans of at most `longest` words is exact, and each text counts once. A span counts only
    in the window that owns its first word. Scores behind the end of a row are ignored. With a `null_threshold`, the
    answer is "" if the score of "no answer", the minimum over the windows, exceeds the best answer's by more than that.
    """
    if n_best < 1 or longest < 1:
        raise ValueError(f"n_best={n_best}, longest={longest}: use 1 or more")
    if len(rows) != len(scores):
        raise ValueError(f"{len(rows)} rows and scores of {len(scores)}: give one triple of scores per row")
    spans: list[list[Candidate]] = [[] for _ in questions]
    nulls = [math.inf] * len(questions)
    for row, (starts, ends, none) in zip(rows, scores):
        if row.example >= len(questions):
            raise ValueError(f"a row has question {row.example}, but there are {len(questions)} questions")
        question = questions[row.example]
        for side in (starts, ends):
            if len(side) < row.width:
                raise ValueError(f"{len(side)} scores for a context of {row.width} words (question {question.id!r})")
        start, end, null = (np.asarray(some, np.float64) for some in (starts[: row.width], ends[: row.width], none))
        if np.isnan(start).any() or np.isnan(end).any() or np.isnan(null):
            raise ValueError(f"the scores of question {question.id!r} contain NaN: did the training diverge?")
        nulls[row.example] = min(nulls[row.example], float(null))
        texts: set[str] = set()
        for first, last, score in best_spans(np.where(row.owned, start, -np.inf), end, min(longest, row.width)):
            begin, behind = int(row.spans[first, 0]), int(row.spans[last, 1])
            spans[row.example].append(Candidate(question.context[begin:behind], begin, behind, score, 0.0))
            texts.add(question.context[begin:behind])
            if len(texts) == n_best:
                break
    if not all(spans):
        name = questions[spans.index([])].id
        raise ValueError(f"question {name!r} has no row: make the rows from the same questions")
    return [
        choose(question.id, found, null, n_best, null_threshold)
        for question, found, null in zip(questions, spans, nulls)
    ]


def best_spans(
    start: Float[np.ndarray, "T"], end: Float[np.ndarray, "T"], longest: int
) -> Iterator[tuple[int, int, float]]:
    """Yield all spans of at most `longest` words as (first, last, score), best first, then earlier, then shorter."""
    behind = np.concatenate([end, np.full(longest - 1, -np.inf)])
    sums = start[:, None] + np.lib.stride_tricks.sliding_window_view(behind, longest)
    for place in np.argsort(-sums, axis=None, kind="stable"):
        first, more = divmod(int(place), longest)
        if sums[first, more] > -np.inf:
            yield first, first + more, float(sums[first, more])
