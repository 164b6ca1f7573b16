"""Make the shards of a corpus: each turns byte ranges of the sources into a folder of arrays, atomically.

The content of a shard depends only on the plan.
"""

import contextlib
import hashlib
import itertools
import math
import os
import shutil
import unicodedata
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Integer

from bert_elmo_jax.data.corpora.cleaning.mixtures import count_copies
from bert_elmo_jax.data.corpora.corpus import iterate_documents
from bert_elmo_jax.data.corpora.reading import Reading, Source, Tally
from bert_elmo_jax.data.corpora.store import FILES, PARTS, NpyAppender
from bert_elmo_jax.files import hash_file, write_json
from bert_elmo_jax.text import load_tokenizer
from bert_elmo_jax.text.words import split_words

BATCH = 1 << 20  # characters tokenized at once: fast, and small in memory
_load_once = lru_cache(maxsize=1)(load_tokenizer)
Encode = Callable[[list[str]], tuple[Integer[np.ndarray, "tokens"], Integer[np.ndarray, "sentences"]]]


@dataclass(frozen=True)
class Job:
    """The instructions for one shard."""

    number: int
    ranges: tuple[tuple[int, Source, int, int], ...]  # (number of the source, source, first byte, end)
    reading: Reading
    seed: int
    heldout: float
    output: str
    word_rule: str = "punctuation"

    @property
    def name(self) -> str:
        """Return the name of the shard's folder in the store."""
        return f"shard-{self.number:05d}"

    @property
    def size(self) -> int:
        """Return the number of bytes of text."""
        return sum(end - start for _, _, start, end in self.ranges)


def plan_ranges(sources: Sequence[Source], shards: int) -> list[tuple[tuple[int, Source, int, int], ...]]:
    """Cut the sources, laid end to end, into equal ranges of bytes; a document belongs to the range it begins in."""
    total = sum(source.size for source in sources)
    cuts = [total * k // shards for k in range(shards + 1)]
    plan = []
    for low, high in itertools.pairwise(cuts):
        ranges, base = [], 0
        for number, source in enumerate(sources):
            start, end = max(low - base, 0), min(high - base, source.size)
            if start < end:
                ranges.append((number, source, start, end))
            base += source.size
        plan.append(tuple(ranges))
    return plan


def is_heldout(seed: int, source: int, place: int, share: float) -> bool:
    """Return True if a document is held out; this depends only on its place, so all workers agree."""
    coin = hashlib.blake2b(f"{seed}:{source}:{place}".encode(), digest_size=8).digest()
    return int.from_bytes(coin, "little") < share * 2**64


class PartWriter:
    """Write the three arrays of one part, a batch of sentences at a time."""

    def __init__(self, folder: Path, dtype: np.dtype, encode: Encode, files: contextlib.ExitStack):
        folder.mkdir(parents=True)
        types = zip(FILES, (dtype, np.dtype(np.int64), np.dtype(np.int64)))
        self.files = [files.enter_context(NpyAppender(folder / name, kind)) for name, kind in types]
        self.encode = encode
        self._pending: list[str] = []
        self._owners = array("q")  # the document of each pending sentence
        self._characters, self._last_owner = 0, -1

    def add(self, sentence: str, document: int) -> None:
        """Add a sentence of the document with this number."""
        self._pending.append(sentence)
        self._owners.append(document)
        self._characters += len(sentence)
        if self._characters >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Encode and write the pending sentences; drop sentences without tokens and documents without sentences."""
        if not self._pending:
            return
        tokens, sentences, documents = self.files
        ids, lengths = self.encode(self._pending)
        nonempty = lengths > 0
        owners = np.array(self._owners, np.int64)[nonempty]
        documents.append(sentences.length + np.flatnonzero(np.diff(owners, prepend=self._last_owner)))
        sentences.append(tokens.length + np.cumsum(lengths[nonempty]) - lengths[nonempty])
        tokens.append(ids)
        if len(owners):
            self._last_owner = int(owners[-1])
        self._pending, self._owners, self._characters = [], array("q"), 0

    def finish(self) -> dict[str, int]:
        """Write the last batch and the closing offsets; return the counts."""
        self.flush()
        tokens, sentences, documents = self.files
        counts = {"documents": documents.length, "sentences": sentences.length, "tokens": tokens.length}
        documents.append(np.array([sentences.length]))
        sentences.append(np.array([tokens.length]))
        return counts


def make_piece_shard(job: Job, report: Callable[[int], object]) -> None:
    """Make a shard of word pieces, unless it exists."""
    target = Path(job.output, job.name)
    if target.exists():
        return
    tokenizer = _load_once(str(Path(job.output, "tokenizer")))
    dtype = np.dtype(token_dtype(tokenizer.vocab_size))
    starts_word = np.asarray(tokenizer.word_starts)
    counts = {part: {"words": 0, "unknown": 0} for part in PARTS}

    def encoder(part: str) -> Encode:
        def encode(lines: list[str]) -> tuple[np.ndarray, np.ndarray]:
            ids, lengths = tokenizer.encode_lines(lines)
            unknown = int((ids == tokenizer.unk_id).sum())
            counts[part]["words"] += int(starts_word[ids].sum()) + unknown * (not starts_word[tokenizer.unk_id])
            counts[part]["unknown"] += unknown
            return ids, lengths

        return encode

    with building(target, Path(job.output, "work")) as folder:
        entry = write_documents(job, folder, dtype, {part: encoder(part) for part in PARTS}, report)
        for part in PARTS:
            entry[part]["counts"] |= counts[part]
        write_json(folder / "shard.json", entry)


def make_word_shard(job: Job, report: Callable[[int], object]) -> None:
    """Make a shard of words with its own ids, listed in `forms.txt` (sorted), `places.npy` and `counts.npy`.

    The ids of the whole corpus are known only after all shards have been read; `renumber_shard` then replaces them.
    """
    target = Path(job.output, "work", job.name)
    if target.exists() or Path(job.output, job.name).exists():
        return
    numbers: dict[str, int] = {}

    def encode(lines: list[str]) -> tuple[np.ndarray, np.ndarray]:
        # Compose characters, as our tokenizers of pieces do: files from a Mac may contain decomposed Hangul.
        words = [split_words(unicodedata.normalize("NFC", line), job.word_rule) for line in lines]
        ids = [numbers.setdefault(word, len(numbers)) for line in words for word in line]
        return np.array(ids, np.int64), np.array([len(line) for line in words], np.int64)

    with building(target, Path(job.output, "work")) as folder:
        entry = write_documents(job, folder, np.dtype(np.uint32), dict.fromkeys(PARTS, encode), report)
        write_json(folder / "shard.json", entry)
        train = np.load(folder / "train" / "tokens.npy", mmap_mode="r")
        order = sorted(numbers)  # by code point in every shard, so that the tables can be merged as streams
        places = np.array([numbers[form] for form in order], np.int64)
        counts = np.zeros(len(order), np.int64)
        for at in range(0, len(train), BATCH):  # in parts, because a shard may be of any size
            counts += np.bincount(train[at : at + BATCH], minlength=len(order))
        np.save(folder / "counts.npy", counts[places])
        np.save(folder / "places.npy", places)
        (folder / "forms.txt").write_text("".join(f"{form}\n" for form in order), encoding="utf-8", newline="\n")


def write_documents(
    job: Job, folder: Path, dtype: np.dtype, encoders: dict[str, Encode], report: Callable[[int], object]
) -> dict[str, Any]:
    """Write every sentence of the job to its part; return the shard's entry in the manifest."""
    tally = first_tally = Tally(job.reading)
    document = 0
    with contextlib.ExitStack() as files:
        writers = {part: PartWriter(folder / part, dtype, encoders[part], files) for part in PARTS}
        for number, source, start, end in job.ranges:
            done = start
            for turn in range(math.ceil(source.copies)):  # a mixture repeats documents
                if turn:
                    tally = Tally(job.reading)  # its bad lines have been counted
                for place, sentences in iterate_documents(source, start, end, tally):
                    heldout = is_heldout(job.seed, number, place, job.heldout)
                    if turn >= _count_turns(job, number, place, source.copies, heldout=heldout):
                        deque(sentences, maxlen=0)
                        continue
                    writer = writers["heldout" if heldout else "train"]
                    for sentence in sentences:
                        writer.add(sentence, document)
                        if tally.place - done > 1 << 16 and done < end:
                            report(min(tally.place, end) - done)
                            done = min(tally.place, end)
                    document += 1
            report(end - done)
        counts = {part: writer.finish() for part, writer in writers.items()}
    entry: dict[str, Any] = {"skipped": dict(sorted(first_tally.skipped.items()))}
    for part in PARTS:
        entry[part] = {"counts": counts[part], "files": {name: file_facts(folder / part / name) for name in FILES}}
    return entry


def _count_turns(job: Job, source: int, place: int, copies: float, *, heldout: bool) -> int:
    """Return how many times a document is written; one that is held out, at most once."""
    if copies == 1:
        return 1
    count = count_copies(copies, job.seed, source, place)
    return min(count, 1) if heldout else count


def file_facts(path: Path) -> dict[str, Any]:
    """Return the size and hash of a file."""
    return {"bytes": path.stat().st_size, "sha256": hash_file(path)}


def token_dtype(vocab_size: int) -> type[np.unsignedinteger]:
    """Return the smallest type that holds every id."""
    return np.uint16 if vocab_size <= 1 << 16 else np.uint32


@contextlib.contextmanager
def building(target: Path, work: Path) -> Iterator[Path]:
    """Make a folder under a temporary name inside `work`, and move it to `target` when it is complete."""
    partial = work / f"{target.name}.{os.getpid()}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        try:
            partial.rename(target)
        except OSError:
            if not target.exists():  # a retry on a cluster may have made the same folder first
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
