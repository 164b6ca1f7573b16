"""Batches made by worker processes, in order: worker k of n makes batches k, k + n, …"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import grain
from absl import flags

if TYPE_CHECKING:
    from bert_elmo_jax.data.pipeline.batches import Recipe
    from bert_elmo_jax.data.pipeline.feeds import Places

Element = dict[str, Any]  # a batch, and as JSON the places after it


class _Made(grain.IterDataset[Element]):
    """Batches from some place on, as grain wants to see them: each worker gets a copy, told which batches are its."""

    def __init__(self, recipe: "Recipe", places: "Places"):
        super().__init__()
        self.recipe, self.places = recipe, places
        self.slice = slice(0, None, 1)

    def set_slice(self, sl: slice, sequential_slice: bool = False) -> None:
        """grain's name for: make only these batches."""
        del sequential_slice  # only asked for by who asks for it
        self.slice = sl

    def __iter__(self) -> "_Making":
        return _Making(self)


class _Making(grain.DatasetIterator[Element]):
    def __init__(self, made: _Made):
        super().__init__()
        self._feed, self._places, self._slice = made.recipe.feed(), made.places, made.slice
        self._next, self._at = made.slice.start, 0

    def __next__(self) -> Element:
        while self._at < self._next:
            self._places = self._feed.skip(self._places)
            self._at += 1
        batch, self._places = self._feed.batch(self._places)
        self._at, self._next = self._at + 1, self._next + (self._slice.step or 1)
        after = {"taken": self._places.taken, "places": [list(place) for place in self._places.corpora]}
        return {"batch": batch, "after": json.dumps(after), "epoch": self._feed.passed(self._places)}

    def get_state(self) -> dict[str, Any]:
        """grain asks with every batch; the position travels in the batch instead."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Nothing is ever restored here: new workers are started at the place."""
        raise NotImplementedError(f"batches are restored by Batches.restore, not by grain (given {state!r})")


def start_workers(recipe: "Recipe", places: "Places", workers: int, buffer: int) -> Iterator[Element]:
    """An iterator over batches from `places` on, made by processes; it has a `close`."""
    if not flags.FLAGS.is_parsed():  # in a notebook, say: grain looks at its flags, and absl refuses unparsed ones
        flags.FLAGS.mark_as_parsed()
    options = grain.MultiprocessingOptions(num_workers=workers, per_worker_buffer_size=buffer)
    return iter(_Made(recipe, places).mp_prefetch(options))
