"""Training phases with different batches, such as BERT's 90 percent of steps at length 128 and the rest at 512."""

import bisect
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from bert_elmo_jax.data.pipeline.batches import Batches
from bert_elmo_jax.data.pipeline.feeds import Batch


class Phases(Iterator[Batch]):
    """Iterate over several `Batches` in turn, each for its number of steps and the last without end."""

    def __init__(self, parts: Sequence[tuple[int, Batches]]):
        self._parts = [batches for _, batches in parts]
        self._ends = list(accumulate(steps for steps, _ in parts))
        self._done = 0

    def __next__(self) -> Batch:
        phase = min(bisect.bisect_right(self._ends, self._done), len(self._parts) - 1)
        for before in self._parts[:phase]:
            before.close()
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
