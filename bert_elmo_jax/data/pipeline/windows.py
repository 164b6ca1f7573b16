"""Read a corpus in windows: random parts that are read into memory and shuffled there, one after the other.

A corpus is cut into blocks of neighbouring documents. Every epoch shuffles the blocks and takes sixteen or more of
them at a time as a window, and the rows within a window are shuffled. A small corpus is one window and is shuffled
completely. A large one needs only the memory of a window, and each batch still mixes sixteen parts of the corpus. The
manifest alone determines the documents of a window.
"""

import contextlib
import itertools
from collections.abc import Callable, Sized
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Int64, Integer

from bert_elmo_jax.data.corpora.store import DamagedStore, Store
from bert_elmo_jax.data.rows.draws import ORDER, generator

WINDOW = 1 << 24  # tokens: 32 or 64 MB
BLOCKS = 16  # blocks in a window
Rows = TypeVar("Rows", bound=Sized)  # a window's rows or steps; only their number is used here
Key = tuple[int, ...]
NO_ROW = "fills a row: prepare more text, or lower config.length or config.batch_size"


class Block(NamedTuple):
    """Neighbouring documents of a shard."""

    shard: int
    first: int
    end: int


class Text(NamedTuple):
    """Documents in memory: tokens, the start of each sentence in tokens, and of each document in sentences.

    Both arrays of starts end with the end of the last.
    """

    tokens: Integer[np.ndarray, "tokens"]
    sentences: Int64[np.ndarray, "sentences_plus_one"]
    documents: Int64[np.ndarray, "documents_plus_one"]


def plan_windows(store: Store, key: Key, tokens: int = WINDOW) -> list[list[Block]]:
    """Return all windows of one epoch, each of about `tokens` tokens and at least two documents if there are two.

    `key` identifies the epoch; the result depends on nothing else.
    """
    counts = [shard[store.part]["counts"] for shard in store.manifest["shards"]]
    blocks = []
    for number, count in enumerate(counts):
        pieces = min(count["documents"], -(-count["tokens"] * BLOCKS // tokens))
        cuts = [count["documents"] * k // pieces for k in range(pieces + 1)] if pieces else []
        blocks += [Block(number, first, end) for first, end in itertools.pairwise(cuts)]
    window_count = max(1, round(sum(count["tokens"] for count in counts) / tokens))
    order = generator(*key, ORDER).permutation(len(blocks))
    windows: list[list[Block]] = []
    for part in np.array_split(order, min(window_count, len(blocks)) or 1):
        window = [blocks[n] for n in part.tolist()]
        # A random next sentence needs a second document.
        if windows and (_documents(window) < 2 or _documents(windows[-1]) < 2):
            windows[-1] += window
        else:
            windows.append(window)
    return windows


def _documents(window: list[Block]) -> int:
    return sum(block.end - block.first for block in window)


def read_window(store: Store, window: list[Block]) -> Text:
    """Read the documents of a window; raise an error that names the file if one was truncated or removed meanwhile."""
    tokens, sentences, documents = [], [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    for block in window:
        in_sentences = _read(store, block.shard, "documents.npy", block.first, block.end + 1)
        in_tokens = _read(store, block.shard, "sentences.npy", int(in_sentences[0]), int(in_sentences[-1]) + 1)
        tokens.append(_read(store, block.shard, "tokens.npy", int(in_tokens[0]), int(in_tokens[-1])))
        documents.append(in_sentences[1:] - in_sentences[0] + documents[-1][-1])
        sentences.append(in_tokens[1:] - in_tokens[0] + sentences[-1][-1])
    return Text(*(np.concatenate(part) for part in (tokens, sentences, documents)))


def _read(store: Store, shard: int, name: str, first: int, end: int) -> Integer[np.ndarray, "N"]:
    """Return elements `first` to `end` of an array of a shard."""
    path = store.shards[shard].folder / name
    expected = store.manifest["shards"][shard][store.part]["files"][name]["bytes"]
    trouble = "missing"
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        if size == expected:
            np.lib.format.read_magic(file)
            _, _, dtype = np.lib.format.read_array_header_1_0(file)
            file.seek(first * dtype.itemsize, 1)
            values = np.fromfile(file, dtype, end - first)
            if len(values) == end - first:
                return values
        trouble = f"{size} bytes where {expected} were written"
    raise DamagedStore(
        f"{path}: {trouble}; it was intact when the corpus was opened. Copy the shard again, or prepare the corpus "
        "again, and resume from the last checkpoint"
    )


class Place(NamedTuple):
    """The position of the next row, which is all that a run needs to resume."""

    epoch: int = 0
    window: int = 0
    row: int = 0


def check_documents(store: Store) -> None:
    """Raise ValueError if a part of a corpus has no document."""
    if not len(store):
        remedy = "a higher" if store.part == "heldout" else "a lower"
        raise ValueError(
            f"{store.folder} has no document in its part {store.part!r}; prepare it with {remedy} --heldout"
        )


class Track(Generic[Rows]):
    """Read any stretch of the rows of one corpus, across windows and epochs; only the current window is kept.

    `plan(text, key=…)` returns a window's rows; its key consists of `key`, the epoch and the window. With `copies`,
    epochs repeat after this number. `no_row` ends the error of an epoch without rows.
    """

    def __init__(
        self, store: Store, plan: Callable[..., Rows], key: Key, window: int, copies: int = 0, no_row: str = NO_ROW
    ):
        check_documents(store)
        self._no_row = no_row
        self.store, self._plan, self._key, self._size, self._copies = store, plan, key, window, copies
        self._windows: tuple[int, list[list[Block]]] | None = None
        self._rows: tuple[tuple[int, int], Rows] | None = None

    def windows(self, epoch: int) -> list[list[Block]]:
        """Return the windows of an epoch."""
        epoch = epoch % self._copies if self._copies else epoch
        if self._windows is None or self._windows[0] != epoch:
            self._windows = epoch, plan_windows(self.store, (*self._key, epoch), self._size)
        return self._windows[1]

    def rows(self, epoch: int, window: int) -> Rows:
        """Return the rows of a window."""
        epoch = epoch % self._copies if self._copies else epoch
        if self._rows is None or self._rows[0] != (epoch, window):
            self._rows = None  # free the window before the next is read
            text = read_window(self.store, self.windows(epoch)[window])
            self._rows = (epoch, window), self._plan(text, key=(*self._key, epoch, window))
        return self._rows[1]

    def stretch(self, place: Place, count: int, last: int | None = None) -> tuple[list[tuple[Rows, int, int]], Place]:
        """Return the next `count` rows as pieces (window's rows, first, end), and the place after them.

        Rows may continue into the next epoch, but not beyond epoch `last`; there may be fewer at its end. Without
        `last`, raise ValueError if an epoch has no row.
        """
        pieces = []
        empty_windows = 0  # of the current epoch
        while count and (last is None or place.epoch <= last):
            rows = self.rows(place.epoch, place.window)
            empty_windows = (empty_windows if place.window else 0) + (len(rows) == 0)
            end = min(place.row + count, len(rows))
            if end > place.row:
                pieces.append((rows, place.row, end))
            count -= end - place.row
            place = place._replace(row=end)
            if end == len(rows):
                more = place.window + 1 < len(self.windows(place.epoch))
                if last is None and empty_windows == len(self.windows(place.epoch)):
                    raise ValueError(
                        f"{self.store.folder}: none of {len(self.store):,} documents in its part "
                        f"{self.store.part!r} {self._no_row}"
                    )
                place = Place(place.epoch, place.window + 1) if more else Place(place.epoch + 1)
        return pieces, place

    def passed(self, place: Place) -> float:
        """Return the number of epochs that have passed at a place; all windows of an epoch count equally."""
        share = place.row / len(self.rows(place.epoch, place.window)) if place.row else 0
        return place.epoch + (place.window + share) / len(self.windows(place.epoch))

    def size(self, epoch: int) -> int:
        """Return the exact number of rows of an epoch; plans all of its windows."""
        return sum(len(self.rows(epoch, window)) for window in range(len(self.windows(epoch))))
