"""An epoch as a row of windows: some places of the corpus at a time, read into memory and shuffled there.

A corpus is cut into blocks of neighbouring documents. Every epoch puts all blocks into a random order and takes
sixteen or more of them at a time: a window. Within a window the order is random to the last row. So a small corpus, one
window, is shuffled perfectly; a large one needs no more memory and time to begin than a window does, and a batch still
mixes sixteen places of it. Nothing but the manifest is needed to say which documents a window holds.
"""

import itertools
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64, Integer

from bert_elmo_jax.data.corpora.store import DamagedStore, Store
from bert_elmo_jax.data.rows.draws import ORDER, generator

WINDOW = 1 << 24  # tokens: 32 or 64 MB of them
BLOCKS = 16  # blocks in a window


class Block(NamedTuple):
    """Neighbouring documents of a shard."""

    shard: int
    first: int
    end: int


class Text(NamedTuple):
    """Documents in memory: tokens, where each sentence begins in them, and each document in the sentences.

    Both lists of beginnings close with the end of the last.

    >>> text = Text(np.array([7, 8, 9]), np.array([0, 1, 3]), np.array([0, 2]))  # one document, two sentences
    >>> np.diff(text.sentences).tolist()
    [1, 2]
    """

    tokens: Integer[np.ndarray, "tokens"]
    sentences: Int64[np.ndarray, "sentences_plus_one"]
    documents: Int64[np.ndarray, "documents_plus_one"]


def plan_windows(store: Store, key: tuple[int, ...], tokens: int = WINDOW) -> list[list[Block]]:
    """All windows of one epoch, each of about so many tokens and at least two documents where there are two.

    `key` names the epoch; who asks, and what was asked before, changes nothing.
    """
    counts = [shard[store.part]["counts"] for shard in store.manifest["shards"]]
    blocks = []
    for number, count in enumerate(counts):
        pieces = min(count["documents"], -(-count["tokens"] * BLOCKS // tokens))
        cuts = [count["documents"] * k // pieces for k in range(pieces + 1)] if pieces else []
        blocks += [Block(number, first, end) for first, end in itertools.pairwise(cuts)]
    whole = max(1, round(sum(count["tokens"] for count in counts) / tokens))
    order = generator(*key, ORDER).permutation(len(blocks))
    windows: list[list[Block]] = []
    for part in np.array_split(order, min(whole, len(blocks)) or 1):
        window = [blocks[n] for n in part.tolist()]
        # A random next sentence comes from another document, so no window should have only one.
        if windows and (_documents(window) < 2 or _documents(windows[-1]) < 2):
            windows[-1] += window
        else:
            windows.append(window)
    return windows


def _documents(window: list[Block]) -> int:
    return sum(block.end - block.first for block in window)


def read_window(store: Store, window: list[Block]) -> Text:
    """Reads the documents of a window, as plain reads: a file that was cut or removed meanwhile is an error by name."""
    tokens, sentences, documents = [], [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    for block in window:
        in_sentences = _read(store, block.shard, "documents.npy", block.first, block.end + 1)
        in_tokens = _read(store, block.shard, "sentences.npy", int(in_sentences[0]), int(in_sentences[-1]) + 1)
        tokens.append(_read(store, block.shard, "tokens.npy", int(in_tokens[0]), int(in_tokens[-1])))
        documents.append(in_sentences[1:] - in_sentences[0] + documents[-1][-1])
        sentences.append(in_tokens[1:] - in_tokens[0] + sentences[-1][-1])
    return Text(*(np.concatenate(part) for part in (tokens, sentences, documents)))


def _read(store: Store, shard: int, name: str, first: int, end: int) -> Integer[np.ndarray, "N"]:
    """Elements `first` to `end` of one of a shard's arrays."""
    path = store.shards[shard].folder / name
    expected = store.manifest["shards"][shard][store.part]["files"][name]["bytes"]
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            if size == expected:
                np.lib.format.read_magic(file)
                _, _, dtype = np.lib.format.read_array_header_1_0(file)
                file.seek(first * dtype.itemsize, 1)
                found = np.fromfile(file, dtype, end - first)
                if len(found) == end - first:
                    return found
    except FileNotFoundError:
        raise DamagedStore(_damage(path, "missing")) from None
    raise DamagedStore(_damage(path, f"{size} bytes where {expected} were written"))


def _damage(path: Path, trouble: str) -> str:
    return (
        f"{path}: {trouble}; it was whole when the corpus was opened. Copy the shard again, or prepare the corpus "
        "again, and go on from the last checkpoint"
    )
