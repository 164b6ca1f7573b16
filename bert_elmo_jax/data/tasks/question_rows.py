"""Questions as rows of words for a task-specific reader, and rows as batches of few shapes.

Contexts are read whole up to a number of words, longer ones in windows that overlap by half. For training, each
question has one row: the window with the most context around the answer.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int32

from bert_elmo_jax.data.tasks.examples import Question
from bert_elmo_jax.data.tasks.files import BadRow
from bert_elmo_jax.data.tasks.rows import best_windows, find_parts
from bert_elmo_jax.data.tasks.word_rows import Batch, Layers, WordRow, collate_words
from bert_elmo_jax.text import Lexicon, word_spans
from bert_elmo_jax.text.composition import compose, find_original
from bert_elmo_jax.text.words import WordSpans, split_line

TRAINED_ON = 400  # words of a context in training, as in Seo et al. 2017
READ_AT_ONCE = 1024  # words of a context in prediction; self-attention is quadratic in this
# Widths are multiples of these steps, and a batch has room for PLACES answers per question. The steps are large because
# every pair of widths of context and question is compiled, which takes as long as ten training steps.
CONTEXT_STEP, QUESTION_STEP, PLACES = 32, 16, 8
CONTEXT_CUTS, QUESTION_CUTS = (32,), (16, 32)  # widths in characters besides CHARACTERS
QUESTION = "question_"  # prefix of the question's entries in a batch


@dataclass(frozen=True, eq=False)
class QuestionRow:
    """A question and its context, or a window of it, as words.

    The window starts at word `begin` of the context, and `spans` are the characters of its words in the context. A word
    is `owned` by the window with the most context around it; answers start only at owned words. `answers` are the first
    and last word of each distinct right answer in the window: empty without an answer, None if unlabelled.
    """

    example: int
    words: tuple[str, ...]
    ids: Int32[np.ndarray, "T"]
    question: tuple[str, ...]
    question_ids: Int32[np.ndarray, "Q"]
    begin: int
    spans: Int32[np.ndarray, "T 2"]
    owned: Bool[np.ndarray, "T"]
    answers: Int32[np.ndarray, "G 2"] | None = None

    @property
    def width(self) -> int:
        """The number of context words."""
        return len(self.words)

    @property
    def texts(self) -> tuple[WordRow, WordRow]:
        """The context and the question as one row each."""
        return WordRow(self.example, self.words, self.ids), WordRow(self.example, self.question, self.question_ids)

    def content(self) -> bytes:
        """Return the row as bytes, for fingerprints."""
        right = b"" if self.answers is None else self.answers.tobytes()
        return b"\0?".join(text.content() for text in self.texts) + self.spans.tobytes() + b"." + right


class TrainingRows(NamedTuple):
    """The training rows, and the number of questions that were changed.

    `windowed` questions are trained on one window of the context; `inexact` ones have an answer that does not consist
    of whole words and was extended; those `left_out` have an answer that fits no window.
    """

    rows: list[QuestionRow]
    windowed: int
    inexact: int
    left_out: int


def training_rows(questions: Sequence[Question], lexicon: Lexicon, limit: int = TRAINED_ON) -> TrainingRows:
    """Return one row per question, with the answers inside its window of `limit` words.

    An answer that begins or ends inside a word is extended to the whole word. For unanswerable questions, the window is
    chosen by the index of the question.
    """
    rows: list[QuestionRow] = []
    windowed = inexact = left_out = 0
    for question, (windows, spans) in zip(questions, _windows(questions, lexicon, limit)):
        right = [find_parts(answer, spans) for answer in question.answers]
        spans_in_words = list(dict.fromkeys(words for words in right if words is not None))
        if question.answers and not spans_in_words:
            problem = (
                f"question {question.id!r}: the answer {question.answers[0].text!r} contains no word of the context"
            )
            raise BadRow(question.file, question.line, problem, "correct it, or remove the question")
        window = windows[windows[0].example % len(windows)]
        if spans_in_words:
            shown = [(words, best) for words in spans_in_words if (best := _best_window(words, windows)) is not None]
            if not shown:
                left_out += 1
                continue
            (first, last), window = shown[0]
            text = question.answers[right.index((first, last))].text
            inexact += question.context[spans[first, 0] : spans[last, 1]] != text.strip()
        inside = [(a - window.begin, b - window.begin) for a, b in spans_in_words]
        inside = [(a, b) for a, b in inside if a >= 0 and b < window.width]
        rows.append(replace(window, answers=np.array(inside, np.int32).reshape(-1, 2)))
        windowed += len(windows) > 1
    return TrainingRows(rows, windowed, inexact, left_out)


def reading_rows(questions: Sequence[Question], lexicon: Lexicon, limit: int = READ_AT_ONCE) -> list[QuestionRow]:
    """Return the rows for prediction: all windows of each context, with at most `limit` words each."""
    return [row for windows, _ in _windows(questions, lexicon, limit) for row in windows]


def collate_questions(
    rows: Sequence[QuestionRow], height: int, lexicon: Lexicon, layers: Layers | None = None, *, targets: bool = True
) -> Batch:
    """Return rows as arrays, padded to one of a few widths and to `height` with empty rows of weight 0.

    The context has the entries of `collate_words`, the question the same with the prefix `question_`.
    """
    contexts, questions = zip(*(row.texts for row in rows))
    batch = collate_words(contexts, height, lexicon, layers, tags=False, step=CONTEXT_STEP, cuts=CONTEXT_CUTS)
    question_batch = collate_words(
        questions, height, lexicon, layers, tags=False, step=QUESTION_STEP, cuts=QUESTION_CUTS
    )
    batch |= {QUESTION + name: array for name, array in question_batch.items()}
    if targets:
        right = [row.answers if row.answers is not None else np.zeros((0, 2), np.int32) for row in rows]
        most = max(PLACES, *map(len, right))
        batch["answers"] = np.full((height, 1 << (most - 1).bit_length(), 2), -1, np.int32)
        for n, spans in enumerate(right):
            batch["answers"][n, : len(spans)] = spans
        batch["weights"] = (np.arange(height) < len(rows)).astype(np.float32)
    return batch


def words_of_questions(questions: Sequence[Question]) -> Iterator[tuple[str, ...]]:
    """Yield the words of all distinct contexts, then the words of all questions.

    >>> list(words_of_questions([Question("q", "어디 ?", "배는 강가에", (), "dev.json", 1)] * 2))
    [('배는', '강가에'), ('어디', '?'), ('어디', '?')]
    """
    for context in dict.fromkeys(question.context for question in questions):
        yield composed_words(context).words
    for question in questions:
        yield tuple(split_line(question.text, "punctuation"))


def composed_words(text: str) -> WordSpans:
    r"""Return the words of a text, composed (NFC), and their offsets in the text as it was given.

    >>> words, spans = composed_words("\u1112\u1161\u11ab 글")
    >>> words, spans.tolist()
    (('한', '글'), [[0, 3], [4, 5]])
    """
    if unicodedata.is_normalized("NFC", text):
        return word_spans(text)
    composed, places = compose(text)
    words, spans = word_spans(composed)
    originals = [find_original(places, start, end) for start, end in spans.tolist()]
    return WordSpans(words, np.array(originals, np.int32).reshape(-1, 2))


def _windows(
    questions: Sequence[Question], lexicon: Lexicon, limit: int
) -> Iterator[tuple[list[QuestionRow], Int32[np.ndarray, "_ 2"]]]:
    """Yield the windows of each question, and the characters of the words of its context."""
    if limit < 2:
        raise ValueError(f"limit={limit}: a reader needs at least 2 words of the context at a time")
    context, context_words, ids = None, composed_words(""), lexicon.ids([])
    for number, question in enumerate(questions):
        if question.context != context:  # questions about the same context are adjacent
            context, context_words = question.context, composed_words(question.context)
            ids = lexicon.ids(context_words.words)
        question_words = tuple(split_line(question.text, "punctuation"))
        for name, words in (("context", context_words.words), ("text", question_words)):
            if not words:
                problem = f"question {question.id!r}: its {name} has no words"
                raise BadRow(question.file, question.line, problem, "fill it in, or remove the question")
        count, stride = len(context_words.words), limit // 2
        parts = [(begin, min(begin + limit, count)) for begin in range(0, max(count - limit, 0) + stride, stride)]
        owners, question_ids = best_windows(parts, count), lexicon.ids(question_words)
        windows = []
        for place, (begin, end) in enumerate(parts):
            part = slice(begin, end)
            row = (
                context_words.words[part],
                ids[part],
                question_words,
                question_ids,
                begin,
                context_words.spans[part],
                owners[part] == place,
            )
            windows.append(QuestionRow(number, *row))
        yield windows, context_words.spans


def _best_window(words: tuple[int, int], windows: Sequence[QuestionRow]) -> QuestionRow | None:
    """Return the window with the most context around an answer (first and last word), or None if it fits no window."""
    around = [min(words[0] - row.begin, row.begin + row.width - 1 - words[1]) for row in windows]
    return windows[int(np.argmax(around))] if max(around) >= 0 else None
