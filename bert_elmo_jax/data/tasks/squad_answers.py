"""Scores of windows -> answers: the best spans of each question, as characters of its context."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bert_elmo_jax.data.tasks.examples import Question
from bert_elmo_jax.data.tasks.squad_windows import Window


@dataclass(frozen=True)
class Candidate:
    """An answer, `context[start:end]`, or "" for none; its score and its probability among the candidates.

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
    """The answer to a question, the best candidates first, and by how much "no answer" scores above the best of them.

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
        """The probability of "no answer" against the best answer: what `evals.squad.score` finds a threshold for."""
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
    """The answer to each question, from the scores (logits) of each of its windows; padding behind a window is ignored.

    Of each window the `n_best` starts and ends are paired; a start counts only in the window that shows it best, and an
    answer has at most `longest` pieces. With a `null_threshold` (SQuAD 2.0) the `[CLS]` may win: the answer is "" where
    its score, the smallest over the windows, exceeds the best answer's by more than that.

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
        raise ValueError(
            f"{len(windows)} windows, scores of {len(start_scores)} starts and {len(end_scores)} ends: give a row each"
        )
    of_question: list[list[int]] = [[] for _ in questions]
    for place, window in enumerate(windows):
        if window.question >= len(questions):
            raise ValueError(
                f"window {place} is of question {window.question}, but there are {len(questions)} questions"
            )
        of_question[window.question].append(place)
    predictions = []
    for question, places in zip(questions, of_question):
        if not places:
            raise ValueError(f"question {question.id!r} has no window: make the windows from the same questions")
        spans: list[Candidate] = []
        null = math.inf
        for place in places:
            window = windows[place]
            start, end = (
                _scores(side[place], window, question, name)
                for side, name in ((start_scores, "start"), (end_scores, "end"))
            )
            null = min(null, float(start[0] + end[0]))
            spans += _spans(question.context, window, start, end, n_best, longest)
        predictions.append(choose(question.id, spans, null, n_best, null_threshold))
    return predictions


def _spans(
    context: str,
    window: Window,
    start: Float[np.ndarray, "T"],
    end: Float[np.ndarray, "T"],
    n_best: int,
    longest: int,
) -> Iterator[Candidate]:
    # The best of all pieces, those of the question included, as in the original; what is no answer falls out after.
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
    """The prediction for question `number` from spans and their scores, each text once, and that of "no answer".

    With a `threshold`, "no answer" may win: where its score exceeds the best answer's by more than that.

    >>> choose("q", [Candidate("sea", 4, 7, 3.0, 0.0)], 4.0, n_best=20, threshold=0.5).answer.text
    ''
    >>> choose("q", [Candidate("sea", 4, 7, 3.0, 0.0)], 4.0, n_best=20, threshold=None).answer.probability
    1.0
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
        raise ValueError(f"the {name} scores of question {question.id!r} hold a nan: did the training diverge?")
    return scores
