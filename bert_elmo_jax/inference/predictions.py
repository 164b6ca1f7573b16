"""Predictions of task models: small printable objects, made from the scores of rows."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.data.tasks.answers import AnswerPrediction, find_answers
from bert_elmo_jax.data.tasks.examples import ChoiceExample, Question, TaggedSentence
from bert_elmo_jax.data.tasks.pipeline_answers import find_pipeline_answers
from bert_elmo_jax.data.tasks.rows import Row
from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.evals.character_tags import spread_tags
from bert_elmo_jax.evals.entities import entities

# Endings of files that hold neither tables nor JSON lines.
OTHER_FORMATS = (
    ".pdf", ".doc", ".docx", ".odt", ".rtf", ".hwp", ".hwpx", ".html", ".xls", ".xlsx", ".ods", ".arrow",
    ".npy", ".npz", ".h5", ".hdf5", ".zip", ".tar", ".gz", ".xz", ".bz2", ".zst", ".7z", ".png",
)  # fmt: skip


@dataclass(frozen=True)
class Label:
    """The likeliest label of a text, and the probability of each.

    >>> print(Label("재미", 0.75, {"노잼": 0.25, "재미": 0.75}))
    재미 (0.750)
    """

    label: str
    probability: float
    probabilities: Mapping[str, float]

    def __str__(self) -> str:
        return f"{self.label} ({self.probability:.3f})"


@dataclass(frozen=True)
class Labels:
    """The labels of a text that are likelier than not, best first, and the probability of each label.

    >>> print(Labels(("joy",), {"joy": 0.9, "anger": 0.2}))
    joy (0.900)
    """

    labels: tuple[str, ...]
    probabilities: Mapping[str, float]

    def __str__(self) -> str:
        return ", ".join(f"{label} ({self.probabilities[label]:.3f})" for label in self.labels) or "no label"


@dataclass(frozen=True)
class Numbers:
    """The numbers that a regression with several outputs predicts, by name."""

    values: Mapping[str, float]

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:.3f}" for name, value in self.values.items())


@dataclass(frozen=True)
class Number:
    """The number that a regression predicts."""

    value: float

    def __str__(self) -> str:
        return f"{self.value:.3f}"


@dataclass(frozen=True)
class Tags:
    """A tag for each word, with its probability.

    >>> print(tags := Tags(("서울", "역", "앞"), ("B-LOC", "I-LOC", "O"), (0.9, 0.8, 1.0)))
    서울/B-LOC 역/I-LOC 앞/O
    >>> tags.entities
    [('LOC', '서울 역')]
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    probabilities: tuple[float, ...]

    def __str__(self) -> str:
        return " ".join(f"{word}/{tag}" for word, tag in zip(self.words, self.tags))

    @property
    def entities(self) -> list[tuple[str, str]]:
        """(type, words) of each entity, if the tags mark entities."""
        return [(kind, " ".join(self.words[first:behind])) for kind, first, behind in entities(self.tags)]


@dataclass(frozen=True)
class CharacterTags(Tags):
    """A tag for each character of a text, as in KLUE's named entities; prints the entities with their places.

    >>> text, tags = "서울역 앞", ("B-LC", "I-LC", "I-LC", "O", "O")
    >>> print(prediction := CharacterTags(tuple(text), tags, (0.9,) * 5))
    '서울역' [0:3] LC
    >>> prediction.entities
    [('LC', '서울역')]
    """

    def __str__(self) -> str:
        found = (
            f"{''.join(self.words[start:end])!r} [{start}:{end}] {kind}" for kind, start, end in entities(self.tags)
        )
        return ", ".join(found) or "no entity"

    @property
    def entities(self) -> list[tuple[str, str]]:
        """(type, text) of each entity."""
        return [(kind, "".join(self.words[first:behind])) for kind, first, behind in entities(self.tags)]


@dataclass(frozen=True)
class Tree:
    """The head of each word (0 is the root, 1 the first word) and its relation to it.

    >>> print(Tree(("배가", "온다"), (2, 0), ("nsubj", "root")))
    배가 ← 온다 nsubj, 온다 root
    """

    words: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]

    def __str__(self) -> str:
        return ", ".join(
            f"{word} ← {self.words[head - 1]} {relation}" if head else f"{word} {relation}"
            for word, head, relation in zip(self.words, self.heads, self.relations)
        )


@dataclass(frozen=True)
class Entity:
    """A part of a text, `text[start:end]`, with its label.

    >>> print(Entity("Seoul", "LOC", 10, 15, 0.98))
    'Seoul' [10:15] LOC (0.980)
    """

    text: str
    label: str
    start: int
    end: int
    probability: float

    def __str__(self) -> str:
        return f"{self.text!r} [{self.start}:{self.end}] {self.label} ({self.probability:.3f})"


@dataclass(frozen=True)
class Entities:
    """The entities of a text, in its order."""

    entities: tuple[Entity, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.entities)) or "no entity"


@dataclass(frozen=True)
class Choice:
    """The number and text of the likeliest choice, and the probability of each.

    >>> print(Choice(1, "들어온다.", (0.25, 0.75)))
    1: 들어온다. (0.750)
    """

    choice: int
    text: str
    probabilities: tuple[float, ...]

    def __str__(self) -> str:
        return f"{self.choice}: {self.text} ({self.probabilities[self.choice]:.3f})"


@dataclass(frozen=True)
class AnswerSpan:
    """An answer, `context[start:end]`, or ""; `null_score` is the score of no answer minus the best answer's."""

    answer: str
    start: int
    end: int
    probability: float
    n_best: tuple["AnswerSpan", ...]
    null_score: float

    def __str__(self) -> str:
        return f"{self.answer!r} [{self.start}:{self.end}] ({self.probability:.3f})"

    __repr__ = __str__


SEARCHED = 20  # candidates at least, so that the answer does not depend on how many are listed
_SPAN = ("answer", "start", "end", "probability")
Prediction = Label | Labels | Number | Numbers | Tags | Tree | Entities | Choice | AnswerSpan


class AnswerOptions(NamedTuple):
    """Options of a reader: `top_k` of the `n_best` candidates, with or without "no answer" among them."""

    n_best: int = 20
    top_k: int | None = None
    no_answer: bool | None = None


def make_predictions(
    task: Task,
    examples: Sequence[Any],
    rows: Sequence[Row],
    outputs: Sequence[Any],
    options: AnswerOptions | None = None,
    width: int | None = None,
) -> list[Prediction]:
    """Return the predictions for examples from the scores of their rows.

    Vectors of sentences are compared by their first `width` numbers, or by all.
    """
    if task.kind == "questions":
        return _answers(task, examples, rows, outputs, options or AnswerOptions())
    if task.kind == "tags":
        return list(_tags(task, examples, rows, outputs))
    if task.kind == "regression":
        if len(task.labels) > 1:
            return [Numbers(dict(zip(task.labels, output.tolist()))) for output in outputs]
        if task.name == "rank":
            outputs = list(sigmoid(np.array(outputs, np.float32).reshape(-1)))
        return [Number(float(output)) for output in outputs]
    if task.kind == "sentences":
        return [Number(cosine(vectors[0, :width], vectors[1, :width])) for vectors in outputs]
    if task.kind == "choice":
        return [_choice(example, output) for example, output in zip(examples, outputs)]
    make: Callable[[Task, Any], Prediction] = make_labels if task.multi_label else make_label
    return [make(task, output) for output in outputs]


def make_label(task: Task, output: Float32[np.ndarray, "N"]) -> Label:
    """Return the prediction for a text from the scores of its labels; a single label has a probability of its own."""
    shares = softmax(output) if len(output) > 1 else sigmoid(output)
    best = int(shares.argmax())
    return Label(task.labels[best], float(shares[best]), dict(zip(task.labels, shares.tolist())))


def make_labels(task: Task, output: Float32[np.ndarray, "N"]) -> Labels:
    """Return the prediction for a text that may have several labels, from the scores of the labels."""
    shares = dict(zip(task.labels, sigmoid(output).tolist()))
    likely = [label for label, share in shares.items() if share >= 0.5]
    return Labels(tuple(sorted(likely, key=lambda label: -shares[label])), shares)


def to_json(prediction: Prediction) -> dict[str, Any]:
    """Return a prediction as plain values."""
    if isinstance(prediction, AnswerSpan):
        n_best = [{name: getattr(span, name) for name in _SPAN} for span in prediction.n_best]
        null = {"null_score": prediction.null_score} if math.isfinite(prediction.null_score) else {}
        return {**{name: getattr(prediction, name) for name in _SPAN}, **null, "n_best": n_best}
    return asdict(prediction)


def cosine(first: Float32[np.ndarray, "E"], second: Float32[np.ndarray, "E"]) -> float:
    """Return the cosine of two vectors; 0 if one is zero."""
    lengths = float(np.linalg.norm(first)) * float(np.linalg.norm(second))
    return float(first @ second) / max(lengths, 1e-12)


def check_ending(output: str) -> None:
    """Raise ValueError for the name of a file that would promise another format than a table or JSON lines.

    >>> check_ending("predictions.csv")
    >>> check_ending("predictions.pdf")
    Traceback (most recent call last):
    ...
    ValueError: --output=predictions.pdf: predictions are no .pdf; end the name in .csv, .tsv, .jsonl or .parquet
    """
    ending = PurePath(output).suffix.lower()
    if ending in OTHER_FORMATS:
        raise ValueError(
            f"--output={output}: predictions are no {ending}; end the name in .csv, .tsv, .jsonl or .parquet"
        )


def softmax(scores: Float32[np.ndarray, "*B N"]) -> Float32[np.ndarray, "*B N"]:
    """Return the softmax of scores along the last axis."""
    odds = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


def sigmoid(scores: Float32[np.ndarray, "N"]) -> Float32[np.ndarray, "N"]:
    """Return the logistic function of scores.

    >>> sigmoid(np.array([0.0, -1000.0], np.float32)).tolist()
    [0.5, 0.0]
    """
    return np.exp(-np.logaddexp(np.float32(0), -scores))


def _choice(example: ChoiceExample, output: Float32[np.ndarray, "C"]) -> Choice:
    shares = softmax(output[: len(example.choices)])
    best = int(shares.argmax())
    return Choice(best, example.choices[best], tuple(shares.tolist()))


def _tags(
    task: Task, sentences: Sequence[TaggedSentence], rows: Sequence[Row], outputs: Sequence[Float32[np.ndarray, "_ _"]]
) -> list[Tags]:
    best = [np.full(len(sentence.words), -1) for sentence in sentences]
    sure = [np.zeros(len(sentence.words)) for sentence in sentences]
    for row, output in zip(rows, outputs):
        assert row.words is not None
        shares = softmax(output[row.words[:, 1]])
        best[row.example][row.words[:, 0]] = shares.argmax(axis=-1)
        sure[row.example][row.words[:, 0]] = shares.max(axis=-1)
    predictions = []
    for sentence, numbers, shares in zip(sentences, best, sure):
        tags = [task.labels[number] if number >= 0 else "" for number in numbers]
        if task.characters:
            shares = spread_shares(sentence.words, tags, shares)
            tags = spread_tags(sentence.words, tags)
        kind = CharacterTags if task.characters else Tags
        predictions.append(kind(sentence.words, tuple(tags), tuple(shares.tolist())))
    return predictions


def spread_shares(characters: Sequence[str], tags: Sequence[str], shares: np.ndarray) -> np.ndarray:
    """Extend the probabilities of pieces' first characters to all, as `spread_tags` does with their tags."""
    spread = np.array(shares, np.float64)
    for spaces in (False, True):
        for n, character in enumerate(characters):
            if character.isspace() == spaces and (spaces or not tags[n]):
                spread[n] = spread[n - 1] if n else 1.0
    return spread


def _answers(
    task: Task, questions: Sequence[Question], rows: Sequence[Row], outputs: Sequence[Any], options: AnswerOptions
) -> list[Prediction]:
    windows = [row.window for row in rows if row.window is not None]
    starts, ends = [start for start, _ in outputs], [end for _, end in outputs]
    if task.pipeline:
        answers = find_pipeline_answers(
            questions, windows, starts, ends, top_k=options.top_k or 1, longest=task.longest_answer,
            no_answer=bool(options.no_answer),
        )  # fmt: skip
    else:
        unanswerable = task.unanswerable if options.no_answer is None else options.no_answer
        answers = find_answers(
            questions, windows, starts, ends, n_best=max(SEARCHED, options.n_best, options.top_k or 1),
            longest=task.longest_answer, null_threshold=task.null_threshold if unanswerable else None,
        )  # fmt: skip
    return [make_answer(prediction, options) for prediction in answers]


def make_answer(prediction: AnswerPrediction, options: AnswerOptions) -> AnswerSpan:
    """Return an answer with its `top_k` candidates, or with `n_best` and "no answer" if that is a candidate."""
    listed = prediction.candidates[: options.top_k]
    if options.top_k is None:
        listed = tuple(c for rank, c in enumerate(listed) if rank < options.n_best or not c.text)
    candidates = tuple(AnswerSpan(c.text, c.start, c.end, c.probability, (), prediction.null_score) for c in listed)
    best = prediction.answer
    return AnswerSpan(best.text, best.start, best.end, best.probability, candidates, prediction.null_score)
