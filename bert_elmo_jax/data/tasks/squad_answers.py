"""Find the best answer spans of questions, as characters of the context, from the scores of windows."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bert_elmo_jax.data.tasks.examples import Question
from bert_elmo_jax.data.tasks.squad_windows import Window


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
    """The answer to a question, its candidates (best first), and the score of "no answer" minus the best one's.

    >>> none = Candidate("", 0, 0, score=2.0, probability=1.0)
    >>> AnswerPrediction("q", none, (none,), null_score=0.0).na_probability
    0.5
    """

    id: str
    answer: Candidate
    candidates: tuple[Candidate, ...]
    null_score: float

    @property
    def na_probability(self) -> float:
        """The probability of "no answer" against the best answer; `evals.squad.score` finds a threshold for it."""
        return 0.5 + 0.5 * math.tanh(self.null_score / 2)


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
    >>> [found] = find_answers([question], windows, [(at == 4) * 5.0], [(at == 5) * 5.0])
    >>> found.answer.text, found.answer.start, found.answer.end
    ('The sea', 0, 7)
    >>> [found] = find_answers([question], windows, [(at == 0) * 9.0], [(at == 0) * 9.0], null_threshold=0.0)
    >>> found.answer.text
    ''
    """
    if not len(windows) == len(start_scores) == len(end_scores):
        given = f"{len(windows)} windows, scores of {len(start_scores)} starts and {len(end_scores)} ends"
        raise ValueError(f"{given}: give one row of scores per window")
    if missing := set(range(len(questions))) - {window.question for window in windows}:
        name = questions[min(missing)].id
        raise ValueError(f"question {name!r} has no window: make the windows from the same questions")
    spans: list[list[Candidate]] = [[] for _ in questions]
    nulls = [math.inf] * len(questions)
    for place, (window, starts, ends) in enumerate(zip(windows, start_scores, end_scores)):
        if window.question >= len(questions):
            raise ValueError(f"window {place} has question {window.question}, but there are {len(questions)} questions")
        question = questions[window.question]
        start, end = (_scores(side, window, question, name) for side, name in ((starts, "start"), (ends, "end")))
        nulls[window.question] = min(nulls[window.question], float(start[0] + end[0]))
        spans[window.question] += _spans(question.context, window, start, end, n_best, longest)
    return [
        choose(question.id, found, null, n_best, null_threshold)
        for question, found, null in zip(questions, spans, nulls)
    ]


def _spans(
    context: str,
    window: Window,
    start: Float[np.ndarray, "T"],
    end: Float[np.ndarray, "T"],
    n_best: int,
    longest: int,
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


def choose(
    number: str, spans: Sequence[Candidate], null: float, n_best: int, threshold: float | None
) -> AnswerPrediction:
    """Return the prediction for question `number`, given its spans and the score of "no answer"; each text counts once.

    With a `threshold`, "no answer" wins if its score exceeds the best answer's by more than that.
    """
    none = Candidate("", 0, 0, null, 0.0)
    ranked = sorted([*spans, *([none] if threshold is not None else [])], key=lambda span: -span.score)
    kept: dict[str, Candidate] = {}
    for span in ranked:
        if len(kept) < n_best:
            kept.setdefault(span.text, span)
    if threshold is not None or not kept:
        kept.setdefault("", none)
    scores = np.array([span.score for span in kept.values()])
    odds = np.exp(scores - scores.max())
    candidates = tuple(
        Candidate(span.text, span.start, span.end, span.score, share)
        for span, share in zip(kept.values(), (odds / odds.sum()).tolist())
    )
    best = next((span for span in candidates if span.text), None)
    if best is None:
        return AnswerPrediction(number, candidates[0], candidates, math.inf)
    null_score = null - best.score
    if threshold is not None and null_score > threshold:
        best = next(span for span in candidates if not span.text)
    return AnswerPrediction(number, best, candidates, null_score)


def _scores(row: Float[np.ndarray, "_"], window: Window, question: Question, name: str) -> Float[np.ndarray, "T"]:
    count = len(window.ids)
    if len(row) < count:
        raise ValueError(f"{len(row)} {name} scores for a window of {count} pieces (question {question.id!r})")
    scores = np.asarray(row[:count], np.float64)
    if np.isnan(scores).any():
        raise ValueError(f"the {name} scores of question {question.id!r} contain NaN: did the training diverge?")
    return scores
