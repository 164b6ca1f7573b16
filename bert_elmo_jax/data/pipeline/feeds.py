"""Recipes describe batches; feeds compute the batch at any place in a mixture of corpora, and the place after it.

A feed is a pure function: the batch at a place depends on the corpora, the settings and the seed, and not on earlier
batches or on the number of processes.
"""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bert_elmo_jax.data.corpora.store import Store, open_store
from bert_elmo_jax.data.pipeline.windows import NO_ROW, Place, Text, Track
from bert_elmo_jax.data.rows.denoising import DenoisingExamples, plan_denoising_rows
from bert_elmo_jax.data.rows.draws import CORPORA, uniforms
from bert_elmo_jax.data.rows.masking import vocabulary_of
from bert_elmo_jax.data.rows.pieces import PieceExamples, PieceRows, piece_batch, plan_rows
from bert_elmo_jax.data.rows.stream import LanguageModelExamples, Marks, plan_steps
from bert_elmo_jax.data.rows.translation import PairExamples, empty_pair_batch, pair_batch, plan_pair_rows
from bert_elmo_jax.data.rows.word_batch import batch_of
from bert_elmo_jax.data.rows.word_windows import (
    POWER,
    SUBWORD_POWER,
    CountExamples,
    Frequencies,
    SubwordLists,
    WindowExamples,
    count_batch,
    plan_count_rows,
    plan_window_rows,
    window_batch,
)
from bert_elmo_jax.programs import show_program
from bert_elmo_jax.text import WordVocabulary, load_tokenizer

Batch = dict[str, np.ndarray]
INPUT_IDS = ("tokens", "words_forward", "words_backward", "source_tokens", "target_in", "words", "neighbours")
TARGET_IDS = ("mlm_targets", "forward_targets", "backward_targets", "target_out", "negatives")
Examples = PieceExamples | LanguageModelExamples | PairExamples | WindowExamples | CountExamples
# The name of each kind of examples in a checkpoint. `OLD_KINDS` are the names in older checkpoints.
KINDS: Mapping[type, str] = {PieceExamples: "pieces", LanguageModelExamples: "language_model", PairExamples: "pairs",
                             DenoisingExamples: "denoising", WindowExamples: "windows",
                             CountExamples: "counts"}  # fmt: skip
OLD_KINDS = {"PieceExamples": "pieces", "LanguageModelExamples": "language_model", "PairExamples": "pairs"}


class Places(NamedTuple):
    """The place in each corpus, and the number of rows (pieces, pairs) or steps (language model) read so far."""

    taken: int
    corpora: tuple[Place, ...]


class Reader(NamedTuple):
    """A process that reads batches; `shards` is the number of parts the whole batch is split into across devices."""

    process: int = 0
    processes: int = 1
    shards: int = 1

    def check(self, batch_size: int) -> None:
        """Raise if the batch cannot be split evenly."""
        if batch_size % self.processes:
            problem = f"batch_size={batch_size} cannot be split over {self.processes} processes"
            raise ValueError(f"{problem}; use a multiple of {self.processes}")
        if self.shards % self.processes or batch_size % self.shards:
            problem = f"shards={self.shards} must be a multiple of the number of processes ({self.processes})"
            raise ValueError(f"{problem} and divide batch_size={batch_size}")


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Everything that determines the batches; small enough to be sent to worker processes."""

    corpora: tuple[tuple[str, float], ...]
    examples: Examples
    batch_size: int
    seed: int
    window: int
    part: str
    reader: Reader

    def __post_init__(self) -> None:
        """Raise on invalid settings."""
        self.reader.check(self.batch_size)

    def stores(self) -> list[Store]:
        """Open the corpora; raise if they were made by different tokenizers."""
        stores = [open_store(folder, self.part) for folder, _ in self.corpora]
        prints = [store.manifest["tokenizer"]["fingerprint"] for store in stores]
        for store, fingerprint in zip(stores, prints):
            if fingerprint != prints[0]:
                raise ValueError(
                    f"{store.folder} and {stores[0].folder} were made by different tokenizers (fingerprints "
                    f"{fingerprint[:16]}… and {prints[0][:16]}…), so they cannot be mixed; prepare one of them again "
                    f"with --tokenizer={stores[0].folder / 'tokenizer'}"
                )
        return stores

    def feed(self) -> "RowFeed | WordFeed":
        """Return the feed that computes the batches."""
        if isinstance(self.examples, DenoisingExamples):
            return denoising_feed(self, self.examples)
        if isinstance(self.examples, PairExamples):
            return pair_feed(self, self.examples)
        if isinstance(self.examples, WindowExamples | CountExamples):
            return neighbour_feed(self, self.examples)
        return piece_feed(self, self.examples) if isinstance(self.examples, PieceExamples) else WordFeed(self)

    def identity(self) -> dict[str, Any]:
        """Return everything that determines the examples and their order, which must not change when a run resumes."""
        examples = json.loads(json.dumps(dataclasses.asdict(self.examples)))
        examples.pop("pieces", None)  # which changes no example
        if not examples.get("spread", 1):  # as before there was such a field
            del examples["spread"]
        shards = [[store.manifest["shards"], weight] for store, (_, weight) in zip(self.stores(), self.corpora)]
        digest = hashlib.sha256(json.dumps(shards, sort_keys=True).encode()).hexdigest()[:32]
        kind = KINDS[type(self.examples)]
        # Streams depend on the batch size.
        rows = {"batch_size": self.batch_size} if kind == "language_model" else {}
        return {"kind": kind, **examples, "seed": self.seed, "window": self.window, "corpora": digest, **rows}

    def start(self) -> Places:
        """Return the first places."""
        return Places(0, (Place(),) * len(self.corpora))


class RowFeed:
    """Batches of rows that do not depend on each other; each row is drawn from the corpora by their weights.

    `plan` returns the rows of a window, `empty(rows)` a batch of empty rows, and `fill(window_rows, first, end)` some
    rows of a window as a batch. `complete(batch, shards)` adds entries that depend on all rows of a process. `no_row`
    ends the error of an epoch without rows.
    """

    def __init__(
        self, recipe: Recipe, stores: Sequence[Store], plan: Callable[..., Any], empty: Any, fill: Any, copies: int = 0,
        complete: Callable[[Batch, int], Batch] = lambda batch, shards: batch, no_row: str = NO_ROW,
    ):  # fmt: skip
        self.batch_size, self.seed, self.reader = recipe.batch_size, recipe.seed, recipe.reader
        self.empty, self.fill, self.vocab_size = empty, fill, stores[0].vocab_size
        self.complete = complete
        weights = [weight for _, weight in recipe.corpora]
        self.shares = np.cumsum(weights) / np.sum(weights)
        self.tracks: list[Track[Any]] = [
            Track(store, plan, (recipe.seed, n), recipe.window, copies, no_row) for n, store in enumerate(stores)
        ]

    def batch(self, places: Places, last: int | None = None) -> tuple[Batch | None, Places]:
        """Return this process's part of the batch at these places, and the places after it.

        A batch may continue into the next epoch, but not beyond epoch `last`. Return None after the end of that epoch;
        its last batch is padded with empty rows.
        """
        owner = self._owners(places.taken)
        low = self.batch_size * self.reader.process // self.reader.processes
        high = self.batch_size * (self.reader.process + 1) // self.reader.processes
        batch = self.empty(high - low)
        following, rows_read = [], 0
        for number, (track, place) in enumerate(zip(self.tracks, places.corpora)):
            target = np.flatnonzero(owner == number)
            pieces, place = track.stretch(place, len(target), last)
            following.append(place)
            at = 0  # rows of this corpus so far, of all processes
            for rows, first, end in pieces:
                local = target[at : at + end - first]
                skip, stop = np.searchsorted(local, (low, high))
                if stop > skip:
                    for name, array in self.fill(rows, first + int(skip), first + int(stop)).items():
                        batch[name][local[skip:stop] - low] = array
                at += end - first
            rows_read += at
        batch = self.complete(batch, self.reader.shards // self.reader.processes)
        return (batch if rows_read else None), Places(places.taken + self.batch_size, tuple(following))

    def skip(self, places: Places) -> Places:
        """Return the places after the batch at these places."""
        counts = np.bincount(self._owners(places.taken), minlength=len(self.tracks)).tolist()
        following = [track.stretch(*where)[1] for track, where in zip(self.tracks, zip(places.corpora, counts))]
        return Places(places.taken + self.batch_size, tuple(following))

    def _owners(self, first_row: int) -> np.ndarray:
        """Return the corpus of each row of the whole batch."""
        if len(self.tracks) == 1:
            return np.zeros(self.batch_size, np.int64)
        draws = uniforms((self.seed, CORPORA), first_row, self.batch_size, 1)[:, 0]
        return np.searchsorted(self.shares[:-1], draws, side="right")


def piece_feed(recipe: Recipe, examples: PieceExamples) -> RowFeed:
    """Return the feed of BERT batches."""
    stores = recipe.stores()
    check_kind(stores, "BERT reads word pieces", words=False)
    vocabulary = vocabulary_of(load_tokenizer(stores[0].folder / "tokenizer"))

    def plan(text: Text, key: tuple[int, ...]) -> PieceRows:
        check_ids({"tokens": np.asarray(text.tokens)}, vocabulary.size)  # masking looks them up in the vocabulary
        return plan_rows(text, examples, vocabulary, key)

    def empty(rows: int) -> Batch:
        batch: Batch = {name: np.zeros(*shape) for name, shape in examples.shapes(rows).items()}
        batch["tokens"][:] = vocabulary.pad
        return batch

    fill = partial(piece_batch, examples=examples, vocabulary=vocabulary)
    return RowFeed(recipe, stores, plan, empty, fill, examples.copies)


def pair_feed(recipe: Recipe, examples: PairExamples) -> RowFeed:
    """Return the feed of texts with their translations."""
    stores = recipe.stores()
    for store in stores:
        check_pairs(store)
    folder = stores[0].folder / "tokenizer"
    if stores[0].manifest["tokenizer"]["kind"] == "words":
        vocabulary = WordVocabulary.load(folder)
        plan = partial(plan_pair_rows, examples=examples, unknown=(vocabulary.vocab_size, vocabulary.unk_id))
    else:
        frame = load_tokenizer(folder).frame
        plan = partial(plan_pair_rows, examples=examples, frame=(tuple(frame.before), tuple(frame.after)))
    empty, fill = partial(empty_pair_batch, examples=examples), partial(pair_batch, examples=examples)
    no_row = (
        f"is a pair that fits into {examples.source_length} positions of the source and {examples.target_length} of "
        "the target: raise config.length or config.target_length"
    )
    return RowFeed(recipe, stores, plan, empty, fill, no_row=no_row)


def denoising_feed(recipe: Recipe, examples: DenoisingExamples) -> RowFeed:
    """Return the feed of damaged texts with their originals."""
    stores = recipe.stores()
    check_kind(stores, "texts are damaged in pieces", words=False)
    tokenizer = load_tokenizer(stores[0].folder / "tokenizer")
    frame = (tuple(tokenizer.frame.before), tuple(tokenizer.frame.after))
    plan = partial(plan_denoising_rows, examples=examples, frame=frame, mask=tokenizer.mask_id)
    empty, fill = partial(empty_pair_batch, examples=examples), partial(pair_batch, examples=examples)
    return RowFeed(recipe, stores, plan, empty, fill)


def neighbour_feed(recipe: Recipe, examples: WindowExamples | CountExamples) -> RowFeed:
    """Return the feed of words with their neighbours."""
    stores = recipe.stores()
    check_kind(stores, "static vectors are of words", words=True)
    vocabulary = WordVocabulary.load(stores[0].folder / "tokenizer")

    def empty(rows: int) -> Batch:
        names = {"places", "subwords", "owners"}
        return {name: np.zeros(*shape) for name, shape in examples.shapes(rows).items() if name not in names}

    sample = getattr(examples, "sample", 0.0)
    counts = [(store.word_counts, weight) for store, (_, weight) in zip(stores, recipe.corpora)]
    power = SUBWORD_POWER if getattr(examples, "buckets", 0) else POWER
    frequencies = Frequencies.of(vocabulary, examples.min_count, sample, counts, power)
    no_row = "has a sentence with two words that are read: prepare more text, or lower config.min_count"
    if isinstance(examples, CountExamples):
        plan_counts = partial(plan_count_rows, examples=examples, frequencies=frequencies)
        return RowFeed(recipe, stores, plan_counts, empty, count_batch, no_row=no_row)
    plan = partial(plan_window_rows, examples=examples, frequencies=frequencies)
    fill = partial(window_batch, examples=examples, ends=frequencies.ends)
    if not examples.buckets:
        return RowFeed(recipe, stores, plan, empty, fill, no_row=no_row)
    lists = SubwordLists(vocabulary.words, examples)
    return RowFeed(recipe, stores, plan, empty, fill, complete=lists, no_row=no_row)


def check_ids(batch: Batch, vocab_size: int) -> None:
    """Raise ValueError if a batch has an id outside of the vocabulary, as of damaged shards; it costs microseconds.

    >>> check_ids({"tokens": np.array([[1, 2], [300, 0]], np.int32)}, vocab_size=100)
    Traceback (most recent call last):
    ...
    ValueError: a batch has the id 300 in tokens, and the vocabulary has the ids 0 to 99: the shards are damaged...
    """
    # Where a batch has the characters of its words, the others are places in their table.
    names = TARGET_IDS if "characters" in batch else (*TARGET_IDS, *INPUT_IDS)
    for name in names:
        ids = batch.get(name)
        # As unsigned numbers, negative ids are large, too.
        if ids is not None and ids.size and ids.view(f"u{ids.itemsize}").max() >= vocab_size:
            wrong = int(ids[(ids < 0) | (ids >= vocab_size)][0])
            raise ValueError(
                f"a batch has the id {wrong} in {name}, and the vocabulary has the ids 0 to {vocab_size - 1}: the "
                f"shards are damaged, or belong to another tokenizer; {show_program('prepare_data')} --verify "
                "--output=… checks them"
            )


def check_kind(stores: Sequence[Store], problem: str, *, words: bool) -> None:
    """Raise unless corpora hold words, or pieces."""
    for store in stores:
        if ((kind := store.manifest["tokenizer"]["kind"]) == "words") != words:
            held, remedy = (f"{kind!r} pieces", "words") if words else ("words", "wordpiece or sentencepiece")
            raise ValueError(f"{store.folder} holds {held}, but {problem}; prepare it with --tokenizer={remedy}")


def check_pairs(store: Store) -> None:
    """Raise unless a corpus can hold texts with their translations."""
    counts = store.manifest["counts"].values()
    if sum(count["sentences"] for count in counts) > 2 * sum(count["documents"] for count in counts):
        raise ValueError(
            f"{store.folder} holds texts without translations; prepare pairs with prepare_data --source=… --target=…"
        )
    if store.manifest["tokenizer"]["kind"] == "marian":  # it would read the second side with the first one's pieces
        raise ValueError(
            f"{store.folder} was prepared with Marian's tokenizer, which splits each language by a model of its own; "
            "pairs need one for both: prepare them with --tokenizer=sentencepiece or wordpiece"
        )


class WordFeed:
    """Language-model batches; each corpus fills a fixed number of rows, in proportion to its weight."""

    def __init__(self, recipe: Recipe):
        stores, examples = recipe.stores(), recipe.examples
        assert isinstance(examples, LanguageModelExamples)
        if not examples.pieces:
            check_kind(stores, "this language model reads words", words=True)
        self.vocab_size = stores[0].vocab_size
        self.marks = marks_of(stores[0])
        self.examples, self.reader = examples, recipe.reader
        self.forms = [store.forms for store in stores] if examples.input == "characters" else []
        rows_of = _proportional(recipe.batch_size, [weight for _, weight in recipe.corpora])
        plan = partial(plan_steps, examples=examples, marks=self.marks)
        self.tracks: list[Track[Any]] = [
            Track(store, partial(plan, rows=rows), (recipe.seed, n), recipe.window)
            for n, (store, rows) in enumerate(zip(stores, rows_of))
        ]

    def batch(self, places: Places, last: int | None = None) -> tuple[Batch | None, Places]:
        """See `RowFeed`."""
        parts, following = [], []
        for track, place in zip(self.tracks, places.corpora):
            pieces, place = track.stretch(place, 1, last)
            following.append(place)
            parts += [rows.take(first) for rows, first, _ in pieces]
        after = Places(places.taken + 1, tuple(following))
        if not parts:
            return None, after
        return batch_of(parts, self.forms, self.examples, self.marks, **self.reader._asdict()), after

    def skip(self, places: Places) -> Places:
        """See `RowFeed`."""
        following = [track.stretch(place, 1)[1] for track, place in zip(self.tracks, places.corpora)]
        return Places(places.taken + 1, tuple(following))


def marks_of(store: Store) -> Marks:
    """Return the ids of the marks of begin and end and of the unknown word; of pieces, those around a text."""
    folder = store.folder / "tokenizer"
    if store.manifest["tokenizer"]["kind"] == "words":
        words = WordVocabulary.load(folder)
        return Marks(words.bos_id, words.eos_id, words.unk_id, words.vocab_size)
    pieces = load_tokenizer(folder)
    return Marks(pieces.cls_id, pieces.sep_id, pieces.unk_id, pieces.vocab_size)


def _proportional(rows: int, weights: Sequence[float]) -> list[int]:
    """Return the number of rows for each corpus, at least one and in proportion to the weights."""
    if rows < len(weights):
        raise ValueError(f"batch_size={rows} rows cannot hold {len(weights)} corpora; use at least one row for each")
    shares = np.array(weights) / np.sum(weights) * rows
    counts = np.ones(len(weights), np.int64)
    for _ in range(rows - len(weights)):
        counts[np.argmax(shares - counts)] += 1
    return counts.tolist()


def check_corpora(corpora: str | Path | Mapping[str, float]) -> dict[str, float]:
    """Return the folders of corpora and their weights; raise on invalid weights."""
    weights = {str(corpora): 1.0} if isinstance(corpora, str | Path) else dict(corpora)
    if not weights:
        raise ValueError("no corpus was given; give a folder made by prepare_data, or {folder: weight, …}")
    for folder, weight in weights.items():
        if not (np.isfinite(weight) and weight > 0):
            raise ValueError(f"corpus {folder} has the weight {weight}; weights must be positive numbers")
    return {str(folder): float(weight) for folder, weight in weights.items()}
