"""Batches to train on and to evaluate with: any number of workers and hosts, resumed at the exact next example.

The position is a few numbers, so it is what a checkpoint keeps. grain runs the worker processes; its own iterator state
would tie a checkpoint to their number, so each batch comes out of a worker together with the position after it.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bert_elmo_jax.data.corpora.store import Store, open_store
from bert_elmo_jax.data.pipeline.feeds import Batch, BertFeed, Feed, Places, Reader, WordFeed, check_corpora
from bert_elmo_jax.data.pipeline.track import Place
from bert_elmo_jax.data.pipeline.windows import WINDOW
from bert_elmo_jax.data.rows.pieces import BertExamples
from bert_elmo_jax.data.rows.stream import LanguageModelExamples

BUFFER = 4  # batches that each worker keeps ready
Examples = BertExamples | LanguageModelExamples


@dataclasses.dataclass(frozen=True)
class Recipe:
    """All that batches depend on; small, so that it can be sent to worker processes."""

    corpora: tuple[tuple[str, float], ...]
    examples: Examples
    batch_size: int
    seed: int
    window: int
    part: str
    reader: Reader

    def stores(self) -> list[Store]:
        """The corpora, opened; all must have been made by the same tokenizer."""
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

    def feed(self) -> Feed:
        """What makes the batches."""
        weights = [weight for _, weight in self.corpora]
        rest = self.batch_size, self.seed, self.window, self.reader
        if isinstance(self.examples, BertExamples):
            return BertFeed(self.stores(), weights, self.examples, *rest)
        return WordFeed(self.stores(), weights, self.examples, *rest)

    def identity(self) -> dict[str, Any]:
        """What may not change when a run goes on: everything that decides which examples come in which order."""
        examples = json.loads(json.dumps(dataclasses.asdict(self.examples)))
        shards = [[store.manifest["shards"], weight] for store, (_, weight) in zip(self.stores(), self.corpora)]
        digest = hashlib.sha256(json.dumps(shards, sort_keys=True).encode()).hexdigest()[:32]
        kind = type(self.examples).__name__
        rows = {} if kind == "BertExamples" else {"batch_size": self.batch_size}  # each row of a stream is a place
        return {"kind": kind, **examples, "seed": self.seed, "window": self.window, "corpora": digest, **rows}

    def start(self) -> Places:
        """The first place."""
        return Places(0, (Place(),) * len(self.corpora))


class Batches(Iterator[Batch]):
    """Training batches without end; see `train_batches`."""

    def __init__(self, recipe: Recipe, workers: int):
        if workers < 0:
            raise ValueError(f"workers={workers}: expected 0 (this process) or more")
        recipe.reader.check(recipe.batch_size)
        self.recipe, self.workers = recipe, workers
        self._identity = recipe.identity()
        self._feed = recipe.feed()  # also where workers make the batches, so that what is wrong is said here
        self._places, self._epoch = recipe.start(), 0.0
        self._ready: Any = None

    def __next__(self) -> Batch:
        if not self.workers:
            batch, self._places = self._feed.batch(self._places)
            self._epoch = self._feed.passed(self._places)
            assert batch is not None
            return batch
        if self._ready is None:
            from bert_elmo_jax.data.pipeline.workers import start_workers

            self._ready = start_workers(self.recipe, self._places, self.workers, BUFFER)
        try:
            element = next(self._ready)
        except BaseException:
            self.close()  # the next call begins again with the batch that failed
            raise
        self._places, self._epoch = _places_of(json.loads(element["after"])), float(element["epoch"])
        return {name: np.array(array) for name, array in element["batch"].items()}  # out of shared memory

    @property
    def epoch(self) -> float:
        """How many epochs (of the first corpus) have passed, with the share of the present one."""
        return self._epoch

    def epoch_size(self, epoch: int = 0) -> int:
        """How many rows (BERT) or steps (language model) an epoch of the first corpus has, exactly: plans all of it."""
        return self.recipe.feed().size(epoch)

    def state(self) -> dict[str, Any]:
        """Where the next batch begins, as JSON: to be saved with a checkpoint.

        It does not depend on the number of workers or processes, and may be restored with others.
        """
        places = [list(place) for place in self._places.corpora]
        return {"taken": self._places.taken, "places": places, "epoch": self._epoch, "of": self._identity}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on where `state` was taken: the next batch is the one that came next there."""
        try:
            places, epoch, of = _places_of(state), float(state["epoch"]), dict(state["of"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"this is no state of batches ({error!r}); give what state() returned") from None
        names = sorted(
            name for name in {*of, *self._identity} if of.get(name, "(absent)") != self._identity.get(name, "(absent)")
        )
        if names or len(places.corpora) != len(self.recipe.corpora):
            listed = "; ".join(f"{name}: {of.get(name)!r} there, {self._identity.get(name)!r} here" for name in names)
            raise ValueError(
                f"this state belongs to other batches ({listed}); use the configuration and the corpora it was saved "
                "with, or begin anew without it"
            )
        self.close()
        self._places, self._epoch = places, epoch

    def close(self) -> None:
        """Ends the worker processes, if there are any; the next batch would start them again."""
        if self._ready is not None:
            self._ready.close()
            self._ready = None


def _places_of(state: Mapping[str, Any]) -> Places:
    places = []
    for epoch, window, row in state["places"]:
        places.append(Place(int(epoch), int(window), int(row)))
    return Places(int(state["taken"]), tuple(places))


def train_batches(
    corpora: str | Path | Mapping[str, float],
    examples: Examples,
    batch_size: int,
    *,
    seed: int = 0,
    workers: int = 0,
    process: int = 0,
    processes: int = 1,
    shards: int | None = None,
    window: int = WINDOW,
) -> Batches:
    """Batches from prepared corpora, epoch after epoch without end.

    `corpora`: a folder of `prepare_data`, or several with their weights in the mixture, all of one tokenizer. Of every
    batch of `batch_size` rows this process gets its part, number `process` of `processes`. `workers` processes make
    batches in advance; 0 makes them when asked. `shards`: into how many parts all devices together split the batch, for
    language models that read characters (each part has a word table); by default one for each process. `window`: about
    how many tokens are in memory, and shuffled, at a time.

    >>> import tempfile
    >>> from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus
    >>> corpus = toy_corpus(tempfile.mkdtemp(), documents=40)
    >>> batches = train_batches(corpus, BertExamples(length=32), 4)
    >>> batch = next(batches)
    >>> {name: array.shape for name, array in batch.items() if name in ("tokens", "mlm_positions", "nsp_targets")}
    {'tokens': (4, 32), 'mlm_positions': (4, 5), 'nsp_targets': (4, 1)}
    >>> saved = batches.state()
    >>> following = next(batches)
    >>> batches.restore(saved)
    >>> bool((next(batches)["tokens"] == following["tokens"]).all())
    True
    """
    recipe = _recipe(corpora, examples, batch_size, "train", seed, process, processes, shards, window)
    return Batches(recipe, workers)


def eval_batches(
    corpora: str | Path | Mapping[str, float],
    examples: Examples,
    batch_size: int,
    *,
    part: str = "heldout",
    limit: int | None = None,
    process: int = 0,
    processes: int = 1,
    shards: int | None = None,
    window: int = WINDOW,
) -> Iterator[Batch]:
    """One pass over the held-out part, the same examples whenever it is made, at most `limit` batches of each corpus.

    Every process gets as many batches; where rows run out, the rest of a batch is empty and weighs nothing.

    >>> import tempfile
    >>> from bert_elmo_jax.data.rows.stream import LanguageModelExamples
    >>> from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus
    >>> corpus = toy_corpus(tempfile.mkdtemp(), language="ko", documents=40, tokenizer="words")
    >>> batches = list(eval_batches(corpus, LanguageModelExamples(length=7), 4))
    >>> {batch["words_forward"].shape for batch in batches}
    {(4, 7)}
    """
    for folder, weight in check_corpora(corpora).items():
        recipe = _recipe({folder: weight}, examples, batch_size, part, 0, process, processes, shards, window)
        feed, places, made = recipe.feed(), recipe.start(), 0
        while limit is None or made < limit:
            batch, places = feed.batch(places, last=0)
            if batch is None:
                break
            yield batch
            made += 1


def _recipe(
    corpora: str | Path | Mapping[str, float],
    examples: Examples,
    batch_size: int,
    part: str,
    seed: int,
    process: int,
    processes: int,
    shards: int | None,
    window: int,
) -> Recipe:
    if seed < 0:
        raise ValueError(f"seed={seed}: expected 0 or more")
    if window < 1:
        raise ValueError(f"window={window} tokens: expected 1 or more; the default is {WINDOW}")
    reader = Reader(process, processes, processes if shards is None else shards)
    reader.check(batch_size)
    return Recipe(tuple(check_corpora(corpora).items()), examples, batch_size, seed, window, part, reader)
