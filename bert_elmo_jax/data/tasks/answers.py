"""Find the best answer spans of questions, as characters of the context, from the scores of its pieces or words."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from bert_elmo_jax.data.tasks.examples import Question
from bert_elmo_jax.data.tasks.question_rows import QuestionRow
from bert_elmo_jax.data.tasks.rows import Window

REPEATS = 20  # spans that are searched for each candidate: those with the text of a better one are left out


@dataclass(frozen=True)
class Candidate:
    """An answer, `context[start:end]` or "" for no answer, with its score and its probability among the candidates.

    >>> Candidate("sea", 4, 7, score=9.5, probability=0.8).text
    'sea'
    """

    text: str
    start: int
    end: int
    score: float
    probability: float


@dataclass(frozen=True)
class AnswerPrediction:
    """The answer to a question, its candidates (best first), and the score of "no answer" minus the best one's."""

    id: str
    answer: Candidate
    candidates: tuple[Candidate, ...]
    null_score: float


def find_answers(
    questions: Sequence[Question],
    windows: Sequence[Window],
    start_scores: Sequence[Float[np.ndarray, "_"]] | Float[np.ndarray, "W T"],
    end_scores: Sequence[Float[np.ndarray, "_"]] | Float[np.ndarray, "W T"],
    *,
    n_best: int = 20,
    longest: int = 30,
    null_threshold: float | None = None,
) -> list[AnswerPrediction]:
    """Return the answer to each question, given the scores (logits) of its windows; scores of padding are ignored.

    The `n_best` starts and ends of each window are paired. A start counts only in the window with the most context
    around it, and an answer has at most `longest` pieces. With a `null_threshold` (SQuAD 2.0), the answer is "" if the
    score of `[CLS]`, the minimum over the windows, exceeds the best answer's by more than the threshold.

    >>> from bert_elmo_jax.data.tasks import make_windows
    >>> from bert_elmo_jax.text import train_wordpiece
    >>> question = Question("q", "where ?", "The sea, far away", (), "dev.json", 1)
    >>> windows = make_windows([question], train_wordpiece(["where ? The sea , far away"] * 9, vocab_size=60))
    >>> at = np.arange(len(windows[0].ids))
    >>> find_answers([question], windows, [(at == 4) * 5.0], [(at == 5) * 5.0])[0].answer.text
    'The sea'
    """
    spans: list[list[Candidate]] = [[] for _ in questions]
    nulls = [math.inf] * len(questions)
    for window, starts, ends in zip(windows, start_scores, end_scores, strict=True):
        question = questions[window.question]
        start, end = (_scores(side, window, question, name) for side, name in ((starts, "start"), (ends, "end")))
        nulls[window.question] = min(nulls[window.question], float(start[0] + end[0]))
        spans[window.question] += _spans(question.context, window, start, end, n_best, longest)
    scored = zip(questions, spans, nulls)
    return [choose(question.id, candidates, null, n_best, null_threshold) for question, candidates, null in scored]


def _spans(
    context: str, window: Window, start: Float[np.ndarray, "T"], end: Float[np.ndarray, "T"], n_best: int, longest: int
) -> Iterator[Candidate]:
    # As in the original, rank all pieces including the question's, and remove invalid spans afterwards.
    starts, ends = (np.argsort(-side, kind="stable")[:n_best].tolist() for side in (start, end))
    for first in starts:
        if not window.best_context[first]:
            continue
        for last in ends:
            if not first <= last < first + longest or window.spans[last, 0] < 0:
                continue
            covered = window.spans[first : last + 1]
            covered = covered[covered[:, 0] < covered[:, 1]]
            if not len(covered):
                continue
            begin, behind = int(covered[:, 0].min()), int(covered[:, 1].max())
            text = context[begin:behind]
            if text.strip():
                begin += len(text) - len(text.lstrip())
                behind = begin + len(text.strip())
                yield Candidate(context[begin:behind], begin, behind, float(start[first] + end[last]), 0.0)


def _scores(row: Float[np.ndarray, "_"], window: Window, question: Question, name: str) -> Float[np.ndarray, "T"]:
    scores = np.asarray(row[: len(window.ids)], np.float64)
    if np.isnan(scores).any():
        raise ValueError(f"the {name} scores of question {question.id!r} contain NaN: did the training diverge?")
    return scores


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

    The search for the `n_best` spans of at most `longest` words is exact, and each text counts once; of a window that
    repeats the same words, only the `n_best * REPEATS` best spans are searched. A span counts only in the window that
    owns its first word. Scores behind the end of a row are ignored. With a `null_threshold`, the answer is "" if the
    score of "no answer", the minimum over the windows, exceeds the best answer's by more than that.
    """
    spans: list[list[Candidate]] = [[] for _ in questions]
    nulls = [math.inf] * len(questions)
    for row, (starts, ends, none) in zip(rows, scores, strict=True):
        question = questions[row.example]
        start, end, null = (np.asarray(values, np.float64) for values in (starts[: row.width], ends[: row.width], none))
        if np.isnan(start).any() or np.isnan(end).any() or np.isnan(null):
            raise ValueError(f"the scores of question {question.id!r} contain NaN: did the training diverge?")
        nulls[row.example] = min(nulls[row.example], float(null))
        texts: set[str] = set()
        best = best_spans(np.where(row.owned, start, -np.inf), end, min(longest, row.width))
        for first, last, score in itertools.islice(best, n_best * REPEATS):
            begin, behind = int(row.spans[first, 0]), int(row.spans[last, 1])
            text = question.context[begin:behind]
            if text not in texts:
                spans[row.example].append(Candidate(text, begin, behind, score, 0.0))
                texts.add(text)
            if len(texts) == n_best:
                break
    scored = zip(questions, spans, nulls)
    return [choose(question.id, candidates, null, n_best, null_threshold) for question, candidates, null in scored]


def best_spans(
    start: Float[np.ndarray, "T"], end: Float[np.ndarray, "T"], longest: int
) -> Iterator[tuple[int, int, float]]:
    """Yield all spans of at most `longest` words as (first, last, score), best first, then earlier, then shorter.

    >>> list(best_spans(np.array([1.0, 2.0]), np.array([5.0, 0.0]), longest=2))
    [(0, 0, 6.0), (1, 1, 2.0), (0, 1, 1.0)]
    """
    behind = np.concatenate([end, np.full(longest - 1, -np.inf)])
    sums = start[:, None] + np.lib.stride_tricks.sliding_window_view(behind, longest)
    for place in np.argsort(-sums, axis=None, kind="stable"):
        first, more = divmod(int(place), longest)
        if sums[first, more] > -np.inf:
            yield first, first + more, float(sums[first, more])


def choose(
    number: str, spans: Sequence[Candidate], null: float, n_best: int, threshold: float | None
) -> AnswerPrediction:
    """Return the prediction for question `number`, given its spans and the score of "no answer"; each text counts once.

    With a `threshold`, "no answer" wins if its score exceeds the best answer's by more than that.
    """
    none = Candidate("", 0, 0, null, 0.0)
    ranked = sorted([*spans, *([none] if threshold is not None else [])], key=lambda span: -span.score)
    distinct: dict[str, Candidate] = {}
    for span in ranked:
        if len(distinct) < n_best:
            distinct.setdefault(span.text, span)
    if threshold is not None or not distinct:
        distinct.setdefault("", none)
    answer = next((span for span in ranked if span.text), None)
    null_score = math.inf if answer is None else null - answer.score
    if answer is None or (threshold is not None and null_score > threshold):
        answer = none
    distinct.setdefault(answer.text, answer)  # also behind `n_best` candidates
    scores = np.array([span.score for span in distinct.values()])
    odds = np.exp(scores - scores.max())
    shares = (odds / odds.sum()).tolist()
    candidates = tuple(replace(span, probability=share) for span, share in zip(distinct.values(), shares))
    best = next(span for span in candidates if span.text == answer.text)
    return AnswerPrediction(number, best, candidates, null_score)
