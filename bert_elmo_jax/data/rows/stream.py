"""Word text for a bidirectional language model: contiguous streams, or sentence by sentence.

A sentence w₁ … wₙ is read as `<S>` w₁ … wₙ forwards, and as `</S>` wₙ … w₁ backwards; what is predicted at each of
these n + 1 steps is the word after it: w₁ … wₙ `</S>`, or wₙ … w₁ `<S>`. So `</S>` is never read forwards, nor `<S>`
backwards, as in the original. One array holds all of this: with X the forward input, and Y what follows it (`</S>`
where the next sentence begins), forwards reads X and predicts Y; backwards goes from the end, reads Y and predicts X.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Int64, Integer

from bert_elmo_jax.data.pipeline.windows import Text
from bert_elmo_jax.data.rows.draws import CONTENT, generator
from bert_elmo_jax.did_you_mean import did_you_mean

SHORTEST_BUCKET = 8
CHUNK = 1 << 16  # sentences copied at once, so that their places need no memory to speak of


@dataclass(frozen=True)
class LanguageModelExamples:
    """What a biLM is to be trained on.

    `reading`: `streams` (each row reads on where it stopped, its state carried) or `sentences` (each row a sentence,
    from a zero state; both directions read the same). `length`: steps of a batch; for sentences the most, shorter ones
    come in batches of half that length, a quarter, …; longer ones are cut. `input`: `characters` gives the distinct
    words of a batch as characters, at most `max_characters` each; `words` gives vocabulary ids. `widest_filter`: with
    the widest convolution of the model, words are padded only as far as changes nothing in what it computes; 0: always
    to `max_characters`. `smallest_table`: the table of distinct words has this size, or where that is too small, twice
    that, four times, …: the model is compiled once for each size met.

    >>> LanguageModelExamples(reading="sentences", length=50).buckets
    (13, 25, 50)
    """

    reading: Literal["streams", "sentences"] = "streams"
    length: int = 20
    input: Literal["characters", "words"] = "characters"
    max_characters: int = 50
    widest_filter: int = 0
    smallest_table: int = 256

    def __post_init__(self) -> None:
        if self.reading not in ("streams", "sentences"):
            hint = did_you_mean(self.reading, ("streams", "sentences"))
            raise ValueError(f"reading {self.reading!r} is not known; it is streams or sentences{hint}")
        if self.input not in ("characters", "words"):
            raise ValueError(f"input {self.input!r} is not known; it is characters or words")
        if self.length < 1:
            raise ValueError(f"length={self.length} steps: expected 1 or more, such as 20")
        if self.max_characters < 3:
            raise ValueError(f"max_characters={self.max_characters}: expected 3 or more; 50 is usual")
        if self.widest_filter < 0:
            raise ValueError(f"widest_filter={self.widest_filter}: expected 0, or the width of a convolution")
        if self.smallest_table < 1:
            raise ValueError(f"smallest_table={self.smallest_table}: expected 1 or more, such as 256")

    @property
    def buckets(self) -> tuple[int, ...]:
        """The lengths that batches come in, shortest first."""
        lengths = [self.length]
        while self.reading == "sentences" and -(-lengths[0] // 2) >= SHORTEST_BUCKET:
            lengths.insert(0, -(-lengths[0] // 2))
        return tuple(lengths)


class Marks(NamedTuple):
    """The ids that the vocabulary gives to the marks, and its size."""

    bos: int
    eos: int
    unk: int
    size: int


class Steps(NamedTuple):
    """One step's words of B rows, as the store numbers them: each direction's input and targets in its reading order.

    Beyond a row's length everything is 0.
    """

    forward: Int64[np.ndarray, "B T"]
    forward_targets: Int64[np.ndarray, "B T"]
    backward: Int64[np.ndarray, "B T"]
    backward_targets: Int64[np.ndarray, "B T"]
    lengths: Int64[np.ndarray, "B"]
    fresh: bool  # all rows start from a zero state


@dataclass(frozen=True)
class Streams:
    """A window of text as B streams: its sentences in random order of documents, cut into nearly equal stretches."""

    words: Integer[np.ndarray, "steps_plus_one"]  # X; the last is <S> again
    cuts: Int64[np.ndarray, "rows_plus_one"]  # row b reads words[cuts[b] : cuts[b + 1]]
    length: int
    marks: Marks

    def __len__(self) -> int:
        return -(-int(np.diff(self.cuts).max(initial=0)) // self.length)

    def take(self, step: int) -> Steps:
        """Step number `step` of all rows."""
        begin, end = self.cuts[:-1], self.cuts[1:]
        done = np.minimum(step * self.length, end - begin)
        size = np.minimum(self.length, end - begin - done)
        return _read(self.words, begin + done, end - done, size, self.length, self.marks, fresh=step == 0)


@dataclass(frozen=True)
class Sentences:
    """A window of text sentence by sentence, in batches of like lengths."""

    words: Integer[np.ndarray, "steps_plus_one"]
    begin: Int64[np.ndarray, "batches B"]
    size: Int64[np.ndarray, "batches B"]  # 0: nothing in this row
    lengths: Int64[np.ndarray, "batches"]
    marks: Marks

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, step: int) -> Steps:
        """Batch number `step`."""
        begin, size = self.begin[step], self.size[step]
        return _read(self.words, begin, begin + size, size, int(self.lengths[step]), self.marks, fresh=True)


def plan_streams(text: Text, length: int, rows: int, marks: Marks, key: tuple[int, ...]) -> Streams:
    """All steps of a window read as streams; every word is read once in each direction.

    >>> text = Text(np.array([5, 6, 7, 8]), np.array([0, 2, 4]), np.array([0, 1, 2]))  # two sentences of two words
    >>> streams = plan_streams(text, 2, rows=1, marks=Marks(0, 1, 2, 10), key=(0,))
    >>> streams.words.tolist()
    [0, 7, 8, 0, 5, 6, 0]
    >>> steps = streams.take(0)
    >>> steps.forward.tolist(), steps.forward_targets.tolist(), steps.backward.tolist(), steps.backward_targets.tolist()
    ([[0, 7]], [[7, 8]], [[1, 6]], [[6, 5]])
    """
    words, starts = _words(text, marks, generator(*key, CONTENT))
    even = np.arange(rows) * (len(words) - 1) // rows
    cuts = np.append(starts[np.searchsorted(starts, even)], len(words) - 1)
    return Streams(words, cuts, length, marks)


def plan_sentences(text: Text, buckets: tuple[int, ...], rows: int, marks: Marks, key: tuple[int, ...]) -> Sentences:
    """All batches of a window read sentence by sentence: every sentence once, in random order."""
    rng = generator(*key, CONTENT)
    words, starts = _words(text, marks, rng)
    longest = buckets[-1]
    pieces = -(-np.diff(starts) // longest)
    owner = np.repeat(np.arange(len(pieces)), pieces)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    begin = starts[owner] + number * longest
    size = np.minimum(starts[owner + 1] - begin, longest)
    order = rng.permutation(len(begin))
    bucket = np.searchsorted(np.array(buckets), size[order])
    waiting = order[:0]
    batches: list[np.ndarray] = []
    lengths: list[int] = []
    for number_of, length in enumerate(buckets):
        # What is left over of a bucket goes into the next; only the last batch of all may have empty rows.
        waiting = np.append(waiting, order[bucket == number_of])
        whole = len(waiting) // rows * rows
        if number_of == len(buckets) - 1 and whole < len(waiting):
            whole += rows
            waiting = np.append(waiting, np.full(whole - len(waiting), -1))
        batches += np.split(waiting[:whole], whole // rows) if whole else []
        lengths += [length] * (whole // rows)
        waiting = waiting[whole:]
    turn = rng.permutation(len(batches))
    index = np.array(batches, np.int64).reshape(-1, rows)[turn]
    sizes = np.where(index >= 0, size[index], 0)
    return Sentences(words, begin[index], sizes, np.array(lengths, np.int64)[turn], marks)


def _words(
    text: Text, marks: Marks, rng: np.random.Generator
) -> tuple[Integer[np.ndarray, "steps_plus_one"], Int64[np.ndarray, "sentences_plus_one"]]:
    """The text with its documents in random order, `<S>` before each sentence and at the end; where sentences begin."""
    order = rng.permutation(len(text.documents) - 1)
    counts = np.diff(text.documents)[order]
    closed = np.cumsum(counts)
    sentence = np.repeat(text.documents[:-1][order] - closed + counts, counts) + np.arange(closed[-1])
    sizes = np.diff(text.sentences)[sentence] + 1
    starts = np.concatenate([[0], np.cumsum(sizes)])
    words = np.empty(starts[-1] + 1, text.tokens.dtype)
    for at in range(0, len(sizes), CHUNK):
        here = slice(at, at + CHUNK)
        index = np.repeat(text.sentences[:-1][sentence[here]] - starts[:-1][here] - 1, sizes[here])
        begin = int(starts[at])
        words[begin : begin + len(index)] = text.tokens[index + np.arange(begin, begin + len(index))]
    words[starts] = marks.bos
    return words, starts


def _read(
    words: Integer[np.ndarray, "steps_plus_one"],
    begin: Int64[np.ndarray, "B"],
    end: Int64[np.ndarray, "B"],
    size: Int64[np.ndarray, "B"],
    length: int,
    marks: Marks,
    *,
    fresh: bool,
) -> Steps:
    """`size` steps forwards from `begin` and as many backwards from `end`."""
    steps = np.arange(length)
    real = steps < size[:, None]
    at = np.where(real, begin[:, None] + steps, 0)
    back = np.where(real, end[:, None] - 1 - steps, 0)
    x, y = words[at].astype(np.int64), words[at + 1].astype(np.int64)
    back_x, back_y = words[back].astype(np.int64), words[back + 1].astype(np.int64)
    y[y == marks.bos] = marks.eos
    back_y[back_y == marks.bos] = marks.eos
    x, y, back_x, back_y = (np.where(real, part, 0) for part in (x, y, back_x, back_y))
    return Steps(x, y, back_y, back_x, size, fresh)
