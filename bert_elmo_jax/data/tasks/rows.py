"""Turn examples into rows of pieces and targets, truncated as in the papers."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Int32

from bert_elmo_jax.data.tasks.examples import Question, TaggedSentence
from bert_elmo_jax.data.tasks.labels import label_ids
from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.data.tasks.windows import Window, best_windows, make_windows
from bert_elmo_jax.text import Tokenizer

Ids = Int32[np.ndarray, "_"]


@dataclass(frozen=True, eq=False)
class Row:
    """The model's input for an example: one sequence of pieces, or one per choice.

    `targets` are numbers or arrays over the pieces, empty for unlabelled examples. For a tagged sentence, `words` holds
    (index of the word, place of its first piece); for a question, `window` maps pieces to characters.
    """

    example: int
    ids: tuple[Ids, ...]
    types: tuple[Ids, ...]
    targets: Mapping[str, Any] = field(default_factory=dict)
    words: Int32[np.ndarray, "W 2"] | None = None
    window: Window | None = None

    @property
    def width(self) -> int:
        """The number of pieces (of the longest choice)."""
        return max(map(len, self.ids))

    def content(self) -> bytes:
        """Return the row as bytes, for fingerprints."""
        read = b"".join(ids.tobytes() + types.tobytes() + b"." for ids, types in zip(self.ids, self.types))
        return read + b"".join(name.encode() + np.asarray(value).tobytes() for name, value in self.targets.items())


def make_rows(task: Task, examples: Sequence[Any], tokenizer: Tokenizer, *, labelled: bool = True) -> list[Row]:
    """Return the rows of all examples in order: one per example, or several for long sentences and contexts."""
    if task.kind == "tags":
        return _tag_rows(task, examples, tokenizer, labelled)
    if task.kind == "questions":
        return _question_rows(task, examples, tokenizer, labelled)
    labels: Sequence[Any] = [example.label for example in examples]
    if labelled and task.kind == "classification":
        labels = label_ids(examples, task.labels).tolist()
    elif labelled and task.kind == "regression":
        labels = list(map(float, labels))
    rows = []
    for number, (example, label) in enumerate(zip(examples, labels)):
        seconds = example.choices if task.kind == "choice" else (example.pair,)
        ids, types = zip(*(pair_ids(example.text, second, tokenizer, task.max_length) for second in seconds))
        rows.append(Row(number, ids, types, {"labels": label, "weights": 1.0} if labelled else {}))
    return rows


def pair_ids(first: str, second: str | None, tokenizer: Tokenizer, length: int) -> tuple[Ids, Ids]:
    """Return ids and types of `[CLS] first [SEP] (second [SEP])`; the longer text loses pieces until both fit."""
    a = tokenizer.encode(first, specials=False).ids
    cls, sep = np.array([tokenizer.cls_id], np.int32), np.array([tokenizer.sep_id], np.int32)
    if second is None:
        ids = np.concatenate([cls, a[: length - 2], sep])
        return ids, np.zeros(len(ids), np.int32)
    b = tokenizer.encode(second, specials=False).ids
    keep_a, keep_b = keep_of_pair(len(a), len(b), length - 3)
    ids = np.concatenate([cls, a[:keep_a], sep, b[:keep_b], sep])
    return ids, (np.arange(len(ids)) >= keep_a + 2).astype(np.int32)


def keep_of_pair(first: int, second: int, room: int) -> tuple[int, int]:
    """Return how many pieces of each text remain if the longer one (or else the second) loses pieces until both fit."""
    second_left = min(second, max(room // 2, room - first))
    return min(first, room - second_left), second_left


def check_length(task: Task, positions: int) -> None:
    """Raise if the rows of a task do not fit the model, or have no room for text."""
    if not 8 <= task.max_length <= positions:
        raise ValueError(f"max_length={task.max_length}: use 8 to {positions}, the positions of this model")


def _question_rows(task: Task, questions: Sequence[Question], tokenizer: Tokenizer, labelled: bool) -> list[Row]:
    limits = {"length": task.max_length, "stride": task.stride, "question_length": task.question_length}
    rows = []
    for window in make_windows(questions, tokenizer, **limits):
        targets = {"starts": window.start, "ends": window.end, "weights": 1.0} if labelled else {}
        rows.append(Row(window.question, (window.ids,), (window.types,), targets, window=window))
    return rows


def _tag_rows(task: Task, sentences: Sequence[TaggedSentence], tokenizer: Tokenizer, labelled: bool) -> list[Row]:
    index = {tag: number for number, tag in enumerate(task.labels)}
    rows = []
    how = {"context": task.context, "characters": task.characters}
    for number, ids, words in tag_places(sentences, tokenizer, task.max_length, **how):
        targets = {}
        if labelled:
            labels, weights = np.zeros(len(ids), np.int32), np.zeros(len(ids), np.float32)
            tags = sentences[number].tags or ()
            labels[words[:, 1]] = [index[tags[word]] for word in words[:, 0]]
            weights[words[:, 1]] = 1.0
            targets = {"labels": labels, "weights": weights}
        rows.append(Row(number, (ids,), (np.zeros(len(ids), np.int32),), targets, words))
    return rows


def tag_places(
    sentences: Sequence[TaggedSentence],
    tokenizer: Tokenizer,
    length: int,
    *,
    context: bool = False,
    characters: bool = False,
) -> Iterator[tuple[int, Ids, Int32[np.ndarray, "W 2"]]]:
    """Yield (sentence, ids, (word, place) of the words to tag) for each row of at most `length` pieces.

    Long sentences are split into rows that overlap by half, and each word is tagged in the row with the most context
    around it. With `context`, rows are filled up with neighbouring pieces of the document. With `characters`, words are
    the characters of a text, and only characters that begin a piece have a place.
    """
    room = length - 2
    pieces = [_pieces(sentence, tokenizer, characters) for sentence in sentences]
    cls, sep = np.array([tokenizer.cls_id], np.int32), np.array([tokenizer.sep_id], np.int32)

    def document(number: int) -> tuple[str, int]:
        return (sentences[number].file, sentences[number].document if context else number)

    for _, group in itertools.groupby(range(len(sentences)), document):
        numbers = list(group)
        stream = np.concatenate([pieces[number][0] for number in numbers])
        begin = 0
        for number in numbers:
            ids, places = pieces[number]
            end = begin + len(ids)
            words = np.flatnonzero(places >= 0)
            at = begin + places[words]
            parts = list(_parts(begin, end, len(stream), room))
            owners = best_windows([(max(a, begin) - begin, min(b, end) - begin) for a, b in parts], len(ids))
            for part, (a, b) in enumerate(parts):
                mine = owners[at - begin] == part
                if mine.any():
                    row = np.concatenate([cls, stream[a:b], sep])
                    yield number, row, np.stack([words[mine], at[mine] - a + 1], axis=1).astype(np.int32)
            begin = end


def _pieces(sentence: TaggedSentence, tokenizer: Tokenizer, characters: bool) -> tuple[Ids, Int32[np.ndarray, "W"]]:
    """Return the pieces of a sentence, and the first piece of each word (-1 for a character inside a piece)."""
    places = np.full(len(sentence.words), -1, np.int32)
    if characters:
        encoding = tokenizer.encode("".join(sentence.words), specials=False)
        starts = encoding.offsets[:, 0]
        # If several pieces begin in one character, such as the marks of a letter, the first one counts.
        first = np.flatnonzero(np.diff(starts, prepend=-1) > 0)
        places[starts[first]] = first
        return encoding.ids, places
    encoding = tokenizer.encode_words(sentence.words, specials=False)
    known, first = np.unique(encoding.word_ids, return_index=True)
    if len(known) == len(places) and not (known < 0).any():
        places[:] = first
        return encoding.ids, places
    # A word without pieces, such as a control character, becomes [UNK] so that it can be tagged.
    ids: list[int] = []
    for word in range(len(places)):
        places[word] = len(ids)
        ids += encoding.ids[encoding.word_ids == word].tolist() or [tokenizer.unk_id]
    return np.array(ids, np.int32), places


def _parts(begin: int, end: int, total: int, room: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a stream that cover pieces `begin` to `end`: one with context, or several that overlap."""
    if end - begin <= room:
        spare = room - (end - begin)
        before = min(begin, max(spare // 2, spare - (total - end)))
        yield begin - before, min(total, end + spare - before)
        return
    at = begin
    while at + room < end:
        yield at, at + room
        at += max(1, room // 2)
    yield end - room, end
