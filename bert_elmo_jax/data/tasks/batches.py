"""Batches of one height and few widths, in an order that depends only on the seed and the epoch."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from bert_elmo_jax.data.rows.draws import ORDER, generator
from bert_elmo_jax.data.rows.widths import width_for
from bert_elmo_jax.data.tasks.even_batches import plan_even
from bert_elmo_jax.data.tasks.rows import Row

Batch = dict[str, np.ndarray]
Collate = Callable[[Sequence[Any], int], Batch]
POOL = 50  # number of batches whose rows are sorted by length together: more would save little, and mix less


def collate(rows: Sequence[Row], height: int, limit: int, pad_id: int) -> Batch:
    """Return rows as arrays, padded to one of a few widths (at most `limit`) and to `height` with empty rows.

    Empty rows, and choices that an example does not have, have segment 0 and weight 0.
    """
    width = width_for(max(row.width for row in rows), limit)
    choices = max(len(row.ids) for row in rows)
    tokens = np.full((height, choices, width), pad_id, np.int32)
    types, segments = np.zeros_like(tokens), np.zeros_like(tokens)
    for n, row in enumerate(rows):
        for c, (ids, kinds) in enumerate(zip(row.ids, row.types)):
            tokens[n, c, : len(ids)] = ids
            types[n, c, : len(ids)] = kinds
            segments[n, c, : len(ids)] = 1
    batch: Batch = {"tokens": tokens, "types": types, "segments": segments}
    if all(len(row.ids) == 1 for row in rows):
        batch = {name: array[:, 0] for name, array in batch.items()}
    for name, value in rows[0].targets.items():
        shape = (height, width) if isinstance(value, np.ndarray) else (height,)
        batch[name] = np.zeros(shape, np.int32 if np.asarray(value).dtype.kind in "iu" else np.float32)
        for n, row in enumerate(rows):
            target = row.targets[name]
            place = (n, slice(len(target))) if isinstance(target, np.ndarray) else n
            batch[name][place] = target
    return batch


class TaskBatches(Iterator[Batch]):
    """Endless training batches; batch n depends only on the rows, the seed and n.

    `collate` makes a batch from rows and a height; rows have a `width`, and a method `content` for fingerprints. In
    each epoch, the rows are shuffled, sorted by length within pools of a few batches, and the batches are shuffled
    again. If the last batch of an epoch has fewer rows, it is padded. `even` batches, to be packed, have nearly equal
    sums of the rows' `size` instead.
    """

    def __init__(self, rows: Sequence[Any], batch_size: int, seed: int, collate: Collate, *, even: bool = False):
        if not rows:
            raise ValueError("no rows to train on; give at least one example")
        self._rows, self._batch_size, self._seed, self._collate = rows, batch_size, seed, collate
        self._even = even
        self._identity = {"rows": digest(rows), "batch_size": batch_size, "seed": seed}
        self._done = 0
        self._plan: tuple[int, list[Int[np.ndarray, "_"]]] | None = None

    @property
    def epoch_size(self) -> int:
        """The number of batches per epoch."""
        return -(-len(self._rows) // self._batch_size)

    def __next__(self) -> Batch:
        epoch, number = divmod(self._done, self.epoch_size)
        if self._plan is None or self._plan[0] != epoch:
            self._plan = (epoch, plan_epoch(self._rows, self._batch_size, self._seed, epoch, even=self._even))
        chosen = [self._rows[n] for n in self._plan[1][number]]
        self._done += 1
        return self._collate(chosen, self._batch_size)

    def state(self) -> dict[str, Any]:
        """Return the position of the next batch, as JSON."""
        return {"done": self._done, "even": self._even, "of": self._identity}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`; raise if the examples, the batch size or the seed have changed.

        The batches keep the examples that they had, even or not: on other devices, the choice may be another.
        """
        if set(state) - {"even"} != {"done", "of"}:
            raise ValueError("not the state of a task's batches; give the result of state()")
        changed = [name for name, value in self._identity.items() if state["of"].get(name) != value]
        if changed:
            subject = "the training examples have" if "rows" in changed else f"{' and '.join(changed)} has"
            raise ValueError(f"{subject} changed since this run started; restore the old ones, or use another workdir")
        self._done, self._even, self._plan = int(state["done"]), bool(state.get("even", False)), None

    def close(self) -> None:
        """Do nothing; there are no open files."""


def plan_epoch(
    rows: Sequence[Any], batch_size: int, seed: int, epoch: int, *, even: bool = False
) -> list[Int[np.ndarray, "_"]]:
    """Return the indices of the rows of each batch of an epoch: of similar lengths, or `even` sums of lengths.

    >>> [len(batch) for batch in plan_epoch([Row(n, (np.ones(3, np.int32),), ()) for n in range(6)], 3, 0, 0)]
    [3, 3]
    """
    if even:
        return plan_even(np.array([row.size for row in rows]), batch_size, seed, epoch)
    return plan(np.array([row.width for row in rows]), batch_size, seed, epoch)


def plan(lengths: Int[np.ndarray, "N"], batch_size: int, seed: int, epoch: int) -> list[Int[np.ndarray, "_"]]:
    """Return the indices of the rows of each batch of an epoch."""
    draw = generator(seed, ORDER, epoch)
    order = draw.permutation(len(lengths))
    batches: list[Int[np.ndarray, "_"]] = []
    for at in range(0, len(order), POOL * batch_size):
        pool = order[at : at + POOL * batch_size]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[k : k + batch_size] for k in range(0, len(pool), batch_size)]
    return [batches[n] for n in draw.permutation(len(batches))]


def digest(rows: Sequence[Any]) -> str:
    """Return a fingerprint of the rows and their targets."""
    sums = hashlib.blake2b(digest_size=16)
    for row in rows:
        sums.update(row.content())
    return sums.hexdigest()
