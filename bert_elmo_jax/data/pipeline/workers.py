"""Make batches in worker processes, in order: worker k of n makes batches k, k + n, …"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import grain
from absl import flags

if TYPE_CHECKING:
    from bert_elmo_jax.data.pipeline.feeds import Places, Recipe

Element = dict[str, Any]  # a batch, the places after it as JSON, and the epoch


class _BatchDataset(grain.IterDataset[Element]):
    """A grain dataset of the batches from some place on; each worker gets a copy and its slice of the batches."""

    def __init__(self, recipe: "Recipe", places: "Places"):
        super().__init__()
        self.recipe, self.places = recipe, places
        self.slice = slice(0, None, 1)

    def set_slice(self, sl: slice, sequential_slice: bool = False) -> None:
        """Restrict this copy to a slice of the batches; grain calls this in each worker."""
        del sequential_slice
        self.slice = sl

    def __iter__(self) -> "_BatchIterator":
        return _BatchIterator(self)


class _BatchIterator(grain.DatasetIterator[Element]):
    def __init__(self, batches: _BatchDataset):
        super().__init__()
        self._feed, self._places, self._slice = batches.recipe.feed(), batches.places, batches.slice
        self._next, self._at = batches.slice.start, 0

    def __next__(self) -> Element:
        while self._at < self._next:
            self._places = self._feed.skip(self._places)
            self._at += 1
        batch, self._places = self._feed.batch(self._places)
        self._at, self._next = self._at + 1, self._next + (self._slice.step or 1)
        after = {"taken": self._places.taken, "places": [list(place) for place in self._places.corpora]}
        return {
            "batch": batch,
            "after": json.dumps(after),
            "epoch": self._feed.tracks[0].passed(self._places.corpora[0]),
        }

    def get_state(self) -> dict[str, Any]:
        """Return no state: each batch contains the position after it."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Raise: `Batches.restore` starts new workers at the saved place instead."""
        raise NotImplementedError(f"batches are restored by Batches.restore, not by grain (given {state!r})")


def start_workers(recipe: "Recipe", places: "Places", workers: int, buffer: int) -> Iterator[Element]:
    """Return an iterator over batches from `places` on, made by processes; it has a method `close`."""
    if not flags.FLAGS.is_parsed():  # as in a notebook: grain reads flags, and absl raises if they are not parsed
        flags.FLAGS.mark_as_parsed()
    options = grain.MultiprocessingOptions(num_workers=workers, per_worker_buffer_size=buffer)
    return iter(_BatchDataset(recipe, places).mp_prefetch(options))
