"""Turn examples into rows of pieces and targets, truncated as in the papers."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Int32

from bert_elmo_jax.data.tasks.examples import Answer, Question, SentenceExample, TaggedSentence
from bert_elmo_jax.data.tasks.files import BadRow
from bert_elmo_jax.data.tasks.labels import label_ids
from bert_elmo_jax.data.tasks.sentence_files import OF_SCORES
from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.text import Tokenizer
from bert_elmo_jax.text.encoding import Encoding
from bert_elmo_jax.text.piece_batch import frame_ids

Ids = Int32[np.ndarray, "_"]


@dataclass(frozen=True, eq=False)
class Window:
    """One row for the model; `question` is the index of its question in the given list.

    `spans` are the characters of each piece in the context, (-1, -1) for pieces outside the context. `best_context`
    marks the pieces that have the most context around them in this window. `start` and `end` are the first and the last
    piece of the (first) answer, or 0 (`[CLS]`) if the window does not contain all of it. `words` are the numbers of the
    words of the pieces, for windows that overlap by a fixed number of pieces.

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
    words: Int32[np.ndarray, "T"] | None = None
    framed: bool = True  # the first piece is a special one


@dataclass(frozen=True, eq=False)
class Row:
    """The model's input for an example: one sequence of pieces, one per choice, or a pair in both orders.

    `targets` are numbers or arrays over the pieces, empty for unlabelled examples. For a tagged sentence, `words` holds
    (index of the word, place of its first piece); for a question, `window` maps pieces to characters, and for a text
    whose pieces are tagged `pieces` does. `lost` counts the pieces that do not fit.
    """

    example: int
    ids: tuple[Ids, ...]
    types: tuple[Ids, ...]
    targets: Mapping[str, Any] = field(default_factory=dict)
    words: Int32[np.ndarray, "W 2"] | None = None
    window: Window | None = None
    lost: int = 0
    pieces: Encoding | None = None

    @property
    def width(self) -> int:
        """The number of pieces (of the longest choice)."""
        return max(map(len, self.ids))

    @property
    def size(self) -> int:
        """The number of pieces (of all choices)."""
        return sum(map(len, self.ids))

    def content(self) -> bytes:
        """Return the row as bytes, for fingerprints."""
        read = b"".join(ids.tobytes() + types.tobytes() + b"." for ids, types in zip(self.ids, self.types))
        return read + b"".join(name.encode() + np.asarray(value).tobytes() for name, value in self.targets.items())


def make_rows(task: Task, examples: Sequence[Any], tokenizer: Tokenizer, *, labelled: bool = True) -> list[Row]:
    """Return the rows of all examples in order: one per example, or several for long sentences and contexts."""
    if task.kind == "sentences":
        return _sentence_rows(task, examples, tokenizer, labelled)
    if task.kind == "tags":
        return _tag_rows(task, examples, tokenizer, labelled)
    rows: list[Row] = []
    if task.kind == "questions":
        limits = {"length": task.max_length, "stride": task.stride, "question_length": task.question_length}
        overlap = min(task.max_length // 2, task.stride) if task.pipeline else None
        for window in make_windows(examples, tokenizer, overlap=overlap, **limits):
            targets = {"starts": window.start, "ends": window.end, "weights": 1.0} if labelled else {}
            rows.append(Row(window.question, (window.ids,), (window.types,), targets, window=window))
        return rows
    labels: Sequence[Any] = [example.label for example in examples]
    if labelled and task.kind == "classification":
        labels = label_ids(examples, task.labels).tolist()
    elif labelled and task.kind == "regression":
        labels = list(map(float, labels))
    for number, (example, label) in enumerate(zip(examples, labels)):
        seconds = example.choices if task.kind == "choice" else (example.pair,)
        pairs = [(task.prompt + example.text, second) for second in seconds]
        if task.both_orders:
            pairs.append((example.pair, example.text))
        ids, types, lost = zip(*(pair_ids(*pair, tokenizer, task.max_length, task.pipeline) for pair in pairs))
        targets = {"labels": label, "weights": 1.0} if labelled else {}
        rows.append(Row(number, ids, types, targets, lost=sum(lost)))
    return rows


def pair_ids(
    first: str, second: str | None, tokenizer: Tokenizer, length: int, odd_to_longer: bool = False
) -> tuple[Ids, Ids, int]:
    """Return ids and types of `[CLS] first [SEP] (second [SEP])`, and how many pieces the longer text loses to fit."""
    a = tokenizer.encode(first, specials=False).ids
    b = None if second is None else tokenizer.encode(second, specials=False).ids
    ids, types = frame_ids(tokenizer, a, b, length, odd_to_longer)
    lost = len(a) + (0 if b is None else len(b)) + tokenizer.frame.count(pair=b is not None) - len(ids)
    return ids, types, lost


def check_length(task: Task, positions: int) -> None:
    """Raise if the rows of a task do not fit the model, or have no room for text."""
    if not 8 <= task.max_length <= positions:
        raise ValueError(f"max_length={task.max_length}: use 8 to {positions}, the positions of this model")


def _sentence_rows(task: Task, examples: Sequence[SentenceExample], tokenizer: Tokenizer, labelled: bool) -> list[Row]:
    """Return the rows of texts that belong together; `anchors`, … are numbers, equal for equal texts."""
    text_numbers: dict[str, int] = {}
    rows = []
    for number, example in enumerate(examples):
        texts = [task.prompt + text for text in example.texts]
        texts = [text.lower() for text in texts] if task.lowercase else texts
        ids, types, lost = zip(*(pair_ids(text, None, tokenizer, task.max_length) for text in texts))
        targets: dict[str, Any] = {}
        if labelled and task.loss in OF_SCORES:
            if example.label is None:
                problem = f"no score, and the loss {task.loss} needs one"
                raise BadRow(example.file, example.line, problem, "give examples with scores")
            targets = {"scores": example.label / task.top_score, "weights": 1.0}
        elif labelled:
            numbers = (text_numbers.setdefault(text, len(text_numbers)) for text in texts)
            targets = {**dict(zip(("anchors", "positives", "negatives"), numbers)), "weights": 1.0}
        rows.append(Row(number, ids, types, targets, lost=sum(lost)))
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
    context: bool = False,
    characters: bool = False,
) -> Iterator[tuple[int, Ids, Int32[np.ndarray, "W 2"]]]:
    """Yield (sentence, ids, (word, place) of the words to tag) for each row of at most `length` pieces.

    Long sentences are split into rows that overlap by half, and each word is tagged in the row with the most context
    around it. With `context`, rows are filled up with neighbouring pieces of the document. With `characters`, words are
    the characters of a text, and only characters that begin a piece have a place.
    """
    frame = tokenizer.frame
    capacity = length - frame.count(pair=False)
    pieces = [_pieces(sentence, tokenizer, characters) for sentence in sentences]

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
            parts = list(_parts(begin, end, len(stream), capacity))
            owners = best_windows([(max(a, begin) - begin, min(b, end) - begin) for a, b in parts], len(ids))
            for part, (a, b) in enumerate(parts):
                mine = owners[at - begin] == part
                if mine.any():
                    row, _ = frame.join(stream[a:b])
                    places = at[mine] - a + len(frame.before)
                    yield number, row, np.stack([words[mine], places], axis=1).astype(np.int32)
            begin = end


def _pieces(sentence: TaggedSentence, tokenizer: Tokenizer, characters: bool) -> tuple[Ids, Int32[np.ndarray, "W"]]:
    """Return the pieces of a sentence, and the first piece of each word (-1 for a character inside a piece)."""
    if characters:
        places = np.full(len(sentence.words), -1, np.int32)
        text = "".join(sentence.words)
        encoding = tokenizer.encode(text, specials=False)
        # A piece may include the space before a word.
        starts = np.array([end - len(text[start:end].lstrip()) for start, end in encoding.offsets.tolist()], np.int32)
        # If several pieces begin in one character, such as the marks of a letter, the first one counts.
        first = np.flatnonzero((np.diff(starts, prepend=-1) > 0) & (starts < len(places)))  # a last space has no place
        places[starts[first]] = first
        return encoding.ids, places
    encoding = tokenizer.encode_words(sentence.words, specials=False)
    # No word is empty, so each has a piece.
    return encoding.ids, np.unique(encoding.word_ids, return_index=True)[1].astype(np.int32)


def _parts(begin: int, end: int, total: int, capacity: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a stream that cover pieces `begin` to `end`: one with context, or several that overlap."""
    if end - begin <= capacity:
        spare = capacity - (end - begin)
        before = min(begin, max(spare // 2, spare - (total - end)))
        yield begin - before, min(total, end + spare - before)
        return
    at = begin
    while at + capacity < end:
        yield at, at + capacity
        at += max(1, capacity // 2)
    yield end - capacity, end


def make_windows(
    questions: Sequence[Question],
    tokenizer: Tokenizer,
    *,
    length: int = 384,
    stride: int = 128,
    question_length: int = 64,
    overlap: int | None = None,
) -> list[Window]:
    """Return the windows of all questions in order: at most `length` pieces, each `stride` further into the context.

    Questions are truncated to `question_length` pieces. Windows are not padded. With `overlap`, they overlap by so many
    pieces instead.

    >>> from bert_elmo_jax.text import train_wordpiece
    >>> question = Question("q", "where ?", "the sea, the sea", (), "dev.json", 1)
    >>> len(make_windows([question], train_wordpiece(["where ? the sea ,"] * 9, vocab_size=60), length=7, stride=1))
    4
    """
    windows: list[Window] = []
    context, pieces, words = None, None, None
    frame = tokenizer.frame
    for number, question in enumerate(questions):
        # Questions about the same context are adjacent.
        if pieces is None or question.context != context:
            context, pieces = question.context, tokenizer.encode(question.context, specials=False)
            words = None if overlap is None else tokenizer.split_words(question.context)
        question_ids = tokenizer.encode(question.text, specials=False).ids[:question_length]
        capacity = length - len(question_ids) - frame.count(pair=True)
        if capacity < 1:
            problem = f"length={length} leaves no room for the context after a question of {len(question_ids)} pieces"
            raise ValueError(f"{problem}: increase length, or reduce question_length={question_length}")
        # A longer stride would skip pieces.
        step = min(capacity, stride) if overlap is None else max(1, capacity - overlap)
        parts = split_pieces(len(pieces), capacity, step)
        owners = best_windows(parts, len(pieces))
        answer = find_parts(question.answers[0], pieces.offsets) if question.answers else None
        first, last = answer or (-1, -1)
        shift = len(question_ids) + len(frame.before) + len(frame.between)
        for place, (begin, end) in enumerate(parts):
            ids, types = frame.join(question_ids, pieces.ids[begin:end])
            spans = np.full((len(ids), 2), -1, np.int32)
            spans[shift : shift + end - begin] = pieces.offsets[begin:end]
            best = np.zeros(len(ids), bool)
            best[shift : shift + end - begin] = owners[begin:end] == place
            inside = begin <= first and last < end
            right = (first - begin + shift, last - begin + shift) if inside else (0, 0)
            of_words = None
            if words is not None:
                of_words = np.full(len(ids), -1, np.int32)
                of_words[shift : shift + end - begin] = words[begin:end]
            windows.append(Window(number, ids, types, spans, best, *right, of_words, bool(frame.before)))
    return windows


def split_pieces(pieces: int, capacity: int, step: int) -> list[tuple[int, int]]:
    """Return the parts (begin, end) of a text of so many pieces: at most `capacity` pieces, one every `step`.

    >>> split_pieces(7, capacity=4, step=2), split_pieces(3, capacity=4, step=2)
    ([(0, 4), (2, 6), (4, 7)], [(0, 3)])
    """
    parts = [(0, min(capacity, pieces))]
    while parts[-1][1] < pieces:
        begin = parts[-1][0] + step
        parts.append((begin, min(begin + capacity, pieces)))
    return parts


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


def find_parts(answer: Answer, spans: Int32[np.ndarray, "_ 2"]) -> tuple[int, int] | None:
    """Return the first and the last piece or word that share characters with an answer."""
    starts, ends = spans[:, 0], spans[:, 1]
    touched = np.flatnonzero((starts < answer.end) & (ends > answer.start) & (starts < ends))
    return (int(touched[0]), int(touched[-1])) if len(touched) else None
