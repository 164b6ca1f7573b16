"""Windows of pieces for questions about long contexts: `[CLS] question [SEP] part of the context [SEP]`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int32

from bert_elmo_jax.data.tasks.examples import Question
from bert_elmo_jax.text import Encoding, Tokenizer


@dataclass(frozen=True, eq=False)
class Window:
    """One row for the model; `question` is the index of its question in the given list.

    `spans` are the characters of each piece in the context, (-1, -1) for pieces outside the context. `best_context`
    marks the pieces that have the most context around them in this window. `start` and `end` are the first and the last
    piece of the (first) answer, or 0 (`[CLS]`) if the window does not contain all of it.

    >>> from bert_elmo_jax.text import train_wordpiece
    >>> question = Question("q", "where ?", "the sea", (), "dev.json", 1)
    >>> make_windows([question], train_wordpiece(["where ? the sea"] * 9, vocab_size=60))[0].spans.tolist()[-3:]
    [[0, 3], [4, 7], [-1, -1]]
    """

    question: int
    ids: Int32[np.ndarray, "T"]
    types: Int32[np.ndarray, "T"]
    spans: Int32[np.ndarray, "T 2"]
    best_context: Bool[np.ndarray, "T"]
    start: int
    end: int


def make_windows(
    questions: Sequence[Question],
    tokenizer: Tokenizer,
    *,
    length: int = 384,
    stride: int = 128,
    question_length: int = 64,
) -> list[Window]:
    """Return the windows of all questions in order: at most `length` pieces, each `stride` further into the context.

    Questions are truncated to `question_length` pieces. Windows are not padded.

    >>> from bert_elmo_jax.text import train_wordpiece
    >>> question = Question("q", "where ?", "the sea, the sea", (), "dev.json", 1)
    >>> len(make_windows([question], train_wordpiece(["where ? the sea ,"] * 9, vocab_size=60), length=7, stride=1))
    4
    """
    if stride < 1 or question_length < 1 or length < 5:
        raise ValueError(f"{length=}, {stride=}, {question_length=}: expected at least 5, 1, 1")
    windows: list[Window] = []
    context, pieces = None, None
    cls, sep = np.array([tokenizer.cls_id], np.int32), np.array([tokenizer.sep_id], np.int32)
    for number, question in enumerate(questions):
        # Questions about the same context are adjacent.
        if pieces is None or question.context != context:
            context, pieces = question.context, tokenizer.encode(question.context, specials=False)
        asked = tokenizer.encode(question.text, specials=False).ids[:question_length]
        room = length - len(asked) - 3
        if room < 1:
            raise ValueError(
                f"length={length} leaves no room for the context after a question of {len(asked)} pieces: increase "
                f"length, or reduce question_length={question_length}"
            )
        parts = [(0, min(room, len(pieces)))]
        while parts[-1][1] < len(pieces):
            begin = parts[-1][0] + min(room, stride)  # a longer stride would skip pieces
            parts.append((begin, min(begin + room, len(pieces))))
        owners = best_windows(parts, len(pieces))
        first, last = _find_answer_pieces(question, pieces)
        shift = len(asked) + 2
        for place, (begin, end) in enumerate(parts):
            ids = np.concatenate([cls, asked, sep, pieces.ids[begin:end], sep])
            spans = np.full((len(ids), 2), -1, np.int32)
            spans[shift:-1] = pieces.offsets[begin:end]
            best = np.zeros(len(ids), bool)
            best[shift:-1] = owners[begin:end] == place
            inside = begin <= first and last < end
            answer = (first - begin + shift, last - begin + shift) if inside else (0, 0)
            windows.append(Window(number, ids, (np.arange(len(ids)) >= shift).astype(np.int32), spans, best, *answer))
    return windows


def best_windows(parts: Sequence[tuple[int, int]], pieces: int) -> Int32[np.ndarray, "P"]:
    """Return for each piece of a text the part (begin, end) that shows it with the most context.

    Context is the minimum of both sides; ties go to the longer part, then to the earlier one.
    """
    best = np.full(pieces, -np.inf)
    owners = np.zeros(pieces, np.int32)
    for place, (begin, end) in enumerate(parts):
        at = np.arange(begin, end)
        score = np.minimum(at - begin, end - 1 - at) + 0.01 * (end - begin)
        better = at[score > best[at]]
        best[better] = score[better - begin]
        owners[better] = place
    return owners


def _find_answer_pieces(question: Question, pieces: Encoding) -> tuple[int, int]:
    """Return the first and the last piece with a character of the answer, or (-1, -1) without an answer."""
    if not question.answers:
        return -1, -1
    answer = question.answers[0]
    starts, ends = pieces.offsets[:, 0], pieces.offsets[:, 1]
    touched = np.flatnonzero((starts < answer.end) & (ends > answer.start) & (starts < ends))
    return (int(touched[0]), int(touched[-1])) if len(touched) else (-1, -1)
