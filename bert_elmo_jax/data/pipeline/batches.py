"""Training and evaluation batches, with any number of workers and hosts, resumable at the exact next example.

A checkpoint stores the position, a few numbers. grain runs the worker processes; its iterator state would tie a
checkpoint to the number of workers, so each worker returns the position after a batch together with the batch.
"""

import bisect
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from bert_elmo_jax.data.pipeline.feeds import (
    OLD_KINDS,
    Batch,
    Examples,
    Places,
    Reader,
    Recipe,
    check_corpora,
    check_ids,
)
from bert_elmo_jax.data.pipeline.windows import WINDOW, Place
from bert_elmo_jax.data.rows.masking import Masking
from bert_elmo_jax.data.rows.pieces import PieceExamples

BUFFER = 4  # batches that each worker keeps ready
SMALL_WINDOW = 1 << 18  # tokens, which are read in milliseconds


class Batches(Iterator[Batch]):
    """An endless iterator over training batches; see `train_batches`."""

    def __init__(self, recipe: Recipe, workers: int):
        self.recipe, self.workers = recipe, workers
        self._identity = recipe.identity()
        self._feed = recipe.feed()  # even if workers make the batches, so that errors are raised here
        self._places = recipe.start()
        self.epoch = 0.0  # epochs of the first corpus that have passed, with the share of the current one
        self._ready: Any = None

    def __next__(self) -> Batch:
        if not self.workers:
            batch, self._places = self._feed.batch(self._places)
            self.epoch = self._feed.tracks[0].passed(self._places.corpora[0])
            assert batch is not None
            check_ids(batch, self._feed.vocab_size)
            return batch
        if self._ready is None:
            from bert_elmo_jax.data.pipeline.workers import start_workers

            self._ready = start_workers(self.recipe, self._places, self.workers, BUFFER)
        try:
            element = next(self._ready)
        except BaseException:
            self.close()  # the next call tries the same batch again
            raise
        self._places, self.epoch = _places_of(json.loads(element["after"])), float(element["epoch"])
        batch = {name: np.array(array) for name, array in element["batch"].items()}  # out of shared memory
        check_ids(batch, self._feed.vocab_size)
        return batch

    def epoch_size(self, epoch: int = 0) -> int:
        """Return the number of rows, or of a language model's steps, in an epoch of the first corpus; plans it all."""
        return self.recipe.feed().tracks[0].size(epoch)

    def state(self) -> dict[str, Any]:
        """Return the current position as JSON, to be saved with a checkpoint.

        It can be restored with any number of workers or processes.
        """
        places = [list(place) for place in self._places.corpora]
        return {"taken": self._places.taken, "places": places, "epoch": self.epoch, "of": self._identity}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume at the position that `state` returned."""
        try:
            places, epoch, of = _places_of(state), float(state["epoch"]), dict(state["of"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"this is not a state of batches ({error!r}); give the return value of state()") from None
        of["kind"] = OLD_KINDS.get(of.get("kind", ""), of.get("kind"))
        names = sorted(
            name for name in {*of, *self._identity} if of.get(name, "(absent)") != self._identity.get(name, "(absent)")
        )
        if names or len(places.corpora) != len(self.recipe.corpora):
            listed = "; ".join(f"{name}: {of.get(name)!r} there, {self._identity.get(name)!r} here" for name in names)
            remedy = "use the configuration and the corpora it was saved with, or start over without it"
            raise ValueError(f"this state belongs to other batches ({listed}); {remedy}")
        self.close()
        self._places, self.epoch = places, epoch

    def continues(self, before: "Batches") -> bool:
        """Return True if these batches have the same rows as others, but for their number and their masking."""
        return _rows_of(self.recipe) == _rows_of(before.recipe)

    def follow(self, before: "Batches") -> None:
        """Continue where other batches ended, and take over the data that they hold in memory."""
        self.close()
        self._places, self.epoch = before._places, before.epoch
        self._feed.tracks, before._feed.tracks = before._feed.tracks, self._feed.tracks

    def close(self) -> None:
        """End the worker processes, if there are any; the next batch starts them again."""
        if self._ready is not None:
            self._ready.close()
            self._ready = None


def _rows_of(recipe: Recipe) -> Any:
    """Return what determines the rows of a recipe before masking."""
    examples = recipe.examples
    if isinstance(examples, PieceExamples):
        examples = dataclasses.replace(examples, masking=Masking())
    return recipe.corpora, examples, recipe.seed, recipe.window, recipe.part


def _places_of(state: Mapping[str, Any]) -> Places:
    places = tuple(Place(int(epoch), int(window), int(row)) for epoch, window, row in state["places"])
    return Places(int(state["taken"]), places)


class Phases(Iterator[Batch]):
    """Iterate over several `Batches` in turn, each for its number of steps and the last without end.

    BERT trained 90 percent of the steps at length 128, and the rest at 512. Batches continue in the data where the
    previous ones ended if their rows differ only in number and masking; others start at its beginning.
    """

    def __init__(self, parts: Sequence[tuple[int, Batches]]):
        self._parts = [batches for _, batches in parts]
        self._ends = list(accumulate(steps for steps, _ in parts))
        self._done = 0

    def __next__(self) -> Batch:
        phase = min(bisect.bisect_right(self._ends, self._done), len(self._parts) - 1)
        for before in self._parts[:phase]:
            before.close()
        if phase and self._done == self._ends[phase - 1] and self._parts[phase].continues(self._parts[phase - 1]):
            self._parts[phase].follow(self._parts[phase - 1])
        batch = next(self._parts[phase])
        self._done += 1
        return batch

    def state(self) -> dict[str, Any]:
        """Return the current position, as JSON."""
        return {"done": self._done, "parts": [part.state() for part in self._parts]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume at the position that `state` returned."""
        if set(state) != {"done", "parts"} or len(state["parts"]) != len(self._parts):
            raise ValueError(f"this is not a state of {len(self._parts)} phases; give the return value of state()")
        for part, saved in zip(self._parts, state["parts"]):
            part.restore(saved)
        self._done = int(state["done"])

    def close(self) -> None:
        """End all worker processes."""
        for part in self._parts:
            part.close()


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
    """Return an endless iterator over training batches from prepared corpora.

    Args:
        corpora: a folder made by `prepare_data`, or several with their weights, all made by the same tokenizer.
        examples: settings of the examples.
        batch_size: rows of a batch over all processes; each process gets an equal part.
        seed: seed of all random choices.
        workers: number of worker processes that make batches in advance; 0 makes them in this process.
        process: number of this process.
        processes: number of processes.
        shards: number of parts that all devices together split a batch into; in language models that read characters,
            each part has a word table. The default is one part per process.
        window: approximate number of tokens held in memory, and shuffled, at a time.

    >>> import tempfile
    >>> from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus
    >>> from bert_elmo_jax.data.rows.pieces import PieceExamples
    >>> batches = train_batches(toy_corpus(tempfile.mkdtemp(), documents=40), PieceExamples(length=32), 4)
    >>> next(batches)["tokens"].shape
    (4, 32)
    """
    reader = Reader(process, processes, processes if shards is None else shards)
    folders = tuple(check_corpora(corpora).items())
    return Batches(Recipe(folders, examples, batch_size, seed, window, "train", reader), workers)


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
    """Yield one pass over the held-out part, with the same examples every time, at most `limit` batches per corpus.

    All processes get the same number of batches; the last batch is padded with empty rows of weight 0.
    """
    reader = Reader(process, processes, processes if shards is None else shards)
    for corpus in check_corpora(corpora).items():
        recipe = Recipe((corpus,), examples, batch_size, 0, window, part, reader)
        feed, places, batches = recipe.feed(), recipe.start(), 0
        while limit is None or batches < limit:
            batch, places = feed.batch(places, last=0)
            if batch is None:
                break
            check_ids(batch, feed.vocab_size)
            yield batch
            batches += 1


def check_rows(
    corpora: str | Path | Mapping[str, float], examples: Examples, batch_size: int, *, part: str = "heldout"
) -> None:
    """Raise ValueError if no corpus has a row for `eval_batches`; one batch is made, of little text where it suffices.

    A run evaluates at its end, which may be days later.
    """
    folders = check_corpora(corpora).items()
    for window in (SMALL_WINDOW, WINDOW):  # rows may need more text than a small one has
        recipes = [Recipe((corpus,), examples, batch_size, 0, window, part, Reader()) for corpus in folders]
        if any(recipe.feed().batch(recipe.start(), last=0)[0] is not None for recipe in recipes):
            return
    recipes[0].feed().batch(recipes[0].start())  # the error of an epoch without rows names the folder and the remedy
