"""Plan word text for a bidirectional language model, as contiguous streams or sentence by sentence.

The forward model reads a sentence w₁ … wₙ as `<S>` w₁ … wₙ, the backward model as `</S>` wₙ … w₁; at each of these
n + 1 steps they predict the next word: w₁ … wₙ `</S>`, or wₙ … w₁ `<S>`. As in the original, the forward model never
reads `</S>`, nor the backward model `<S>`. One array holds all inputs and targets: let X be the forward input and Y the
word after each X, with `</S>` in place of the next sentence's `<S>`. The forward model reads X and predicts Y; the
backward model starts at the end, reads Y and predicts X.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Int64, Integer

from bert_elmo_jax.data.pipeline.windows import Text
from bert_elmo_jax.data.rows.draws import CONTENT, SIZES, generator
from bert_elmo_jax.data.rows.widths import Shapes, enumerate_runs
from bert_elmo_jax.did_you_mean import did_you_mean

SHORTEST_BUCKET = 8
SHORTEST = 5  # steps of a batch whose number of steps is drawn
HALVES = 0.05  # the share of batches that have half as many steps
CHUNK = 1 << 16  # sentences copied at once, so that the index arrays stay small
Words = Integer[np.ndarray, "steps_plus_one"]  # X, and a final <S>
Numbers = Int64[np.ndarray, "B"]  # one for each row


@dataclass(frozen=True)
class LanguageModelExamples:
    """Settings of a bidirectional language model's training examples.

    Args:
        reading: `streams` (each row continues where it stopped and keeps its state) or `sentences` (each row is a
            sentence and starts from a zero state; both directions read the same sentence).
        length: steps of a batch. With `sentences` it is the maximum: longer sentences are cut, shorter ones come in
            batches of half the length, a quarter, ….
        input: `characters` gives the distinct words of a batch as characters, `words` gives vocabulary ids.
        max_characters: maximum number of characters per word.
        widest_filter: the model's widest convolution; words are then padded only as far as it affects the output. 0
            always pads to `max_characters`.
        spread: of `streams`: the standard deviation of the number of steps, which is drawn for each batch: around
            `length`, or around half of it in one of twenty batches. 0: always `length`. Rows are padded to the largest
            number, `length` + 2 · `spread`.
        pieces: with `words`, the vocabulary may be a tokenizer's.
        smallest_table: smallest size of the table of distinct words; it is doubled as often as necessary, and the
            model is compiled once per size.
    """

    reading: Literal["streams", "sentences"] = "streams"
    length: int = 20
    input: Literal["characters", "words"] = "characters"
    max_characters: int = 50
    widest_filter: int = 0
    smallest_table: int = 256
    spread: int = 0
    pieces: bool = False

    def __post_init__(self) -> None:
        for name, allowed in (("reading", ("streams", "sentences")), ("input", ("characters", "words"))):
            if (value := getattr(self, name)) not in allowed:
                hint = did_you_mean(value, allowed)
                raise ValueError(f"{name} {value!r} is not known; it is {' or '.join(allowed)}{hint}")
        if self.spread and self.reading != "streams":
            raise ValueError(f"spread={self.spread} is for streams; sentences have lengths of their own: leave it out")

    @property
    def width(self) -> int:
        """Return the largest number of steps of a batch."""
        return self.length + 2 * self.spread

    @property
    def buckets(self) -> tuple[int, ...]:
        """Return the possible lengths of a batch, shortest first."""
        lengths = [self.length]
        while self.reading == "sentences" and -(-lengths[0] // 2) >= SHORTEST_BUCKET:
            lengths.insert(0, -(-lengths[0] // 2))
        return tuple(lengths)

    def table_size(self, words: int) -> int:
        """Return the size of the table of this number of distinct words."""
        size = self.smallest_table
        while size < words:
            size *= 2
        return size

    def shapes(self, rows: int, shards: int = 1) -> Shapes:
        """Return upper bounds of the shapes, and the types, of the arrays in a batch.

        The bounds are the longest bucket, and no word that is repeated within any of the `shards` parts.
        """
        if rows % shards:
            raise ValueError(f"{rows} rows cannot be split into {shards} equal parts; use a multiple of {shards}")
        shapes: Shapes = {"lengths": ((rows,), np.int32), "fresh": ((rows,), np.bool_)}
        for direction in ("forward", "backward"):
            shapes[f"words_{direction}"] = shapes[f"{direction}_targets"] = ((rows, self.width), np.int32)
            shapes[f"{direction}_weights"] = ((rows, self.width), np.float32)
        if self.input == "characters":
            size = self.table_size(2 * (rows // shards) * self.width)  # both directions
            shapes["characters"] = ((shards, size, self.max_characters), np.int32)
        return shapes


class Marks(NamedTuple):
    """The ids of the vocabulary's special words, and its size."""

    bos: int
    eos: int
    unk: int
    size: int


class Steps(NamedTuple):
    """The store's word ids for B rows: each direction's input and targets, in reading order, padded with 0."""

    forward: Int64[np.ndarray, "B T"]
    forward_targets: Int64[np.ndarray, "B T"]
    backward: Int64[np.ndarray, "B T"]
    backward_targets: Int64[np.ndarray, "B T"]
    lengths: Numbers
    fresh: bool  # all rows start from a zero state


@dataclass(frozen=True)
class Streams:
    """A window of text as B streams: its documents in random order, cut into nearly equal stretches of sentences."""

    words: Words
    cuts: Int64[np.ndarray, "rows_plus_one"]  # row b reads words[cuts[b] : cuts[b + 1]]
    starts: Int64[np.ndarray, "ends_plus_one"]  # step n reads the words from starts[n] to starts[n + 1] of each row
    width: int
    marks: Marks

    def __len__(self) -> int:
        return len(self.starts) - 1

    def take(self, step: int) -> Steps:
        """Return step number `step` of all rows."""
        begin, end = self.cuts[:-1], self.cuts[1:]
        done = np.minimum(self.starts[step], end - begin)
        size = np.minimum(self.starts[step + 1], end - begin) - done
        return _read(self.words, begin + done, end - done, size, self.width, self.marks, fresh=step == 0)


@dataclass(frozen=True)
class Sentences:
    """A window of text sentence by sentence, in batches of similar lengths."""

    words: Words
    begin: Int64[np.ndarray, "batches B"]
    size: Int64[np.ndarray, "batches B"]  # 0 in empty rows
    lengths: Int64[np.ndarray, "batches"]
    marks: Marks

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, step: int) -> Steps:
        """Return batch number `step`."""
        begin, size = self.begin[step], self.size[step]
        return _read(self.words, begin, begin + size, size, int(self.lengths[step]), self.marks, fresh=True)


def plan_steps(
    text: Text, examples: LanguageModelExamples, rows: int, marks: Marks, key: tuple[int, ...]
) -> Streams | Sentences:
    """Plan all steps of a window, as streams or sentence by sentence."""
    if examples.reading == "streams":
        return plan_streams(text, examples.length, rows, marks, key, examples.spread)
    return plan_sentences(text, examples.buckets, rows, marks, key)


def plan_streams(text: Text, length: int, rows: int, marks: Marks, key: tuple[int, ...], spread: int = 0) -> Streams:
    """Plan all steps of a window as streams; each direction reads every word once."""
    words, starts = _words(text, marks, generator(*key, CONTENT))
    even = np.arange(rows) * (len(words) - 1) // rows
    cuts = np.append(starts[np.searchsorted(starts, even)], len(words) - 1)
    longest = int(np.diff(cuts).max(initial=0))
    sizes = np.full(-(-longest // length), length)
    if spread:
        sizes = draw_sizes(-(-longest // min(SHORTEST, length)), length, spread, generator(*key, SIZES))
        sizes = sizes[: np.searchsorted(np.cumsum(sizes), longest) + 1]
    return Streams(words, cuts, np.concatenate([[0], np.cumsum(sizes)]), length + 2 * spread, marks)


def draw_sizes(count: int, length: int, spread: int, rng: np.random.Generator) -> Int64[np.ndarray, "{count}"]:
    """Draw numbers of steps, as Merity et al. 2018, https://arxiv.org/abs/1708.02182, section 5.

    They are normal around `length`, or in one of twenty batches around half of it, but at least `SHORTEST` (or
    `length`, if it is smaller) and at most two deviations above `length`.

    >>> draw_sizes(5, 70, 5, np.random.default_rng(0)).shape
    (5,)
    """
    middle = np.where(rng.random(count) < HALVES, length / 2, length)
    sizes = np.rint(rng.normal(middle, spread)).astype(np.int64)
    return np.clip(sizes, min(SHORTEST, length), length + 2 * spread)


def plan_sentences(text: Text, buckets: tuple[int, ...], rows: int, marks: Marks, key: tuple[int, ...]) -> Sentences:
    """Plan all batches of a window sentence by sentence: every sentence once, in random order."""
    rng = generator(*key, CONTENT)
    words, starts = _words(text, marks, rng)
    longest = buckets[-1]
    owner, number = enumerate_runs(-(-np.diff(starts) // longest))
    begin = starts[owner] + number * longest
    size = np.minimum(starts[owner + 1] - begin, longest)
    order = rng.permutation(len(begin))
    bucket = np.searchsorted(np.array(buckets), size[order])
    waiting = order[:0]
    batches: list[np.ndarray] = []
    lengths: list[int] = []
    for number_of, length in enumerate(buckets):
        # Sentences that do not fill a batch move to the next bucket; only the last batch may have empty rows.
        waiting = np.append(waiting, order[bucket == number_of])
        full_rows = len(waiting) // rows * rows
        if number_of == len(buckets) - 1 and full_rows < len(waiting):
            full_rows += rows
            waiting = np.append(waiting, np.full(full_rows - len(waiting), -1))
        batches += np.split(waiting[:full_rows], full_rows // rows) if full_rows else []
        lengths += [length] * (full_rows // rows)
        waiting = waiting[full_rows:]
    turn = rng.permutation(len(batches))
    index = np.array(batches, np.int64).reshape(-1, rows)[turn]
    sizes = np.where(index >= 0, size[index], 0)
    return Sentences(words, begin[index], sizes, np.array(lengths, np.int64)[turn], marks)


def _words(text: Text, marks: Marks, rng: np.random.Generator) -> tuple[Words, Int64[np.ndarray, "sentences_plus_one"]]:
    """Shuffle the documents and put `<S>` before each sentence and at the end; return the words and sentence starts."""
    order = rng.permutation(len(text.documents) - 1)
    counts = np.diff(text.documents)[order]
    closed = np.cumsum(counts)
    sentence = np.repeat(text.documents[:-1][order] - closed + counts, counts) + np.arange(closed[-1])
    sizes = np.diff(text.sentences)[sentence] + 1
    starts = np.concatenate([[0], np.cumsum(sizes)])
    words = np.empty(starts[-1] + 1, text.tokens.dtype)
    for at in range(0, len(sizes), CHUNK):
        chunk = slice(at, at + CHUNK)
        index = np.repeat(text.sentences[:-1][sentence[chunk]] - starts[:-1][chunk] - 1, sizes[chunk])
        begin = int(starts[at])
        words[begin : begin + len(index)] = text.tokens[index + np.arange(begin, begin + len(index))]
    words[starts] = marks.bos
    return words, starts


def _read(
    words: Words, begin: Numbers, end: Numbers, size: Numbers, length: int, marks: Marks, *, fresh: bool
) -> Steps:
    """Read `size` steps forwards from `begin` and as many backwards from `end`."""
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
