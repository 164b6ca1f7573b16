"""Rows of mixed lengths through a compiled function of a batch: sorted, padded to few shapes, and back in order."""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

from bert_elmo_jax.data.tasks.batches import Batch, Collate, collate
from bert_elmo_jax.data.tasks.rows import Row
from bert_elmo_jax.data.widths import height_for

INPUTS = ("tokens", "types", "segments")


def collate_inputs(rows: Sequence[Row], height: int, limit: int, pad_id: int) -> Batch:
    """What a model reads of rows, without their targets.

    >>> row = Row(0, (np.array([2, 7, 3], np.int32),), (np.zeros(3, np.int32),), {"labels": 1, "weights": 1.0})
    >>> sorted(collate_inputs([row], height=1, limit=512, pad_id=0))
    ['segments', 'tokens', 'types']
    """
    batch = collate(rows, height, limit, pad_id)
    return {name: batch[name] for name in INPUTS}


def scores_of(
    run: Callable[[Mapping[str, np.ndarray]], Any],
    rows: Sequence[Any],
    batch_size: int,
    collate: Collate,
    *,
    progress: bool = False,
) -> list[Any]:
    """What `run` gives for each row, in the order of the rows; of a pair of arrays, a pair for each row.

    Rows have a `width`; `collate` makes a batch of some of them and a height.

    >>> import functools
    >>> rows = [Row(n, (np.full(n + 3, 7, np.int32),), (np.zeros(n + 3, np.int32),)) for n in range(3)]
    >>> collate = functools.partial(collate_inputs, limit=512, pad_id=0)
    >>> [int(total) for total in scores_of(lambda batch: batch["segments"].sum(axis=1), rows, 2, collate)]
    [3, 4, 5]
    """
    order = sorted(range(len(rows)), key=lambda n: -rows[n].width)  # the longest first: no surprise at the end
    found: list[Any] = [None] * len(rows)
    pending: tuple[list[int], Any] | None = None

    def settle() -> None:
        if pending is not None:
            chosen, outputs = pending
            arrays = jax.device_get(outputs)
            for k, n in enumerate(chosen):
                found[n] = jax.tree.map(operator.itemgetter(k), arrays)

    with tqdm(total=len(rows), desc="predicting", unit="rows", disable=not progress) as bar:
        for at in range(0, len(order), batch_size):
            chosen = order[at : at + batch_size]
            outputs = run(collate([rows[n] for n in chosen], height_for(len(chosen), batch_size)))
            settle()  # the batch before, while this one is computed
            pending = (chosen, outputs)
            bar.update(len(chosen))
        settle()
    return found
