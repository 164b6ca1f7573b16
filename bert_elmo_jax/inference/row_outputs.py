"""The outputs of a model for rows of mixed lengths, in padded batches."""

import contextlib
import operator
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from bert_elmo_jax.data.rows.widths import WIDTHS, height_for, width_for
from bert_elmo_jax.data.tasks.batches import Batch, Collate, collate
from bert_elmo_jax.data.tasks.rows import Row
from bert_elmo_jax.encoders.sentences import max_rows
from bert_elmo_jax.progress_bars import BarPart, count_rows

ANY_WIDTH = WIDTHS[-1]
INPUTS = ("tokens", "types", "segments")


def collate_inputs(rows: Sequence[Row], height: int, limit: int, pad_id: int) -> Batch:
    """Return a batch of rows without their targets."""
    batch = collate(rows, height, limit, pad_id)
    return {name: batch[name] for name in INPUTS}


def compute_outputs(
    run: Callable[[Mapping[str, np.ndarray]], Any],
    rows: Sequence[Any],
    batch_size: int,
    collate: Collate,
    *,
    in_parts: bool = False,
    progress: bool | BarPart = False,
) -> list[Any]:
    """Return the outputs of `run` for each row; `collate` makes a batch from rows with a `width`, and a height.

    A batch of long rows has fewer of them, so that memory is bounded, unless `run` reads rows `in_parts`.
    """
    order = sorted(range(len(rows)), key=lambda n: -rows[n].width)  # longest first, so memory only falls
    parts, heights, at = list[list[int]](), list[int](), 0
    while at < len(order):
        most = batch_size if in_parts else max_rows(rows[order[at]].width, batch_size)
        parts.append(order[at : at + most])
        heights.append(height_for(len(parts[-1]), most))
        at += most
    batches = (collate([rows[n] for n in chosen], height) for chosen, height in zip(parts, heights))
    outputs: list[Any] = [None] * len(rows)
    with count_rows(progress, len(rows)) as bar, contextlib.closing(two_at_a_time(run, batches)) as computed:
        for chosen, height in zip(parts, heights):
            with bar.computing((height, width_for(rows[chosen[0]].width, ANY_WIDTH))):
                arrays = next(computed)
            for k, n in enumerate(chosen):
                outputs[n] = jax.tree.map(operator.itemgetter(k), arrays)
            bar.update(len(chosen))
    return outputs


def two_at_a_time(run: Callable[[Any], Any], batches: Iterable[Any]) -> Generator[Any, None, None]:
    """Yield the outputs of `run` for each batch as numpy arrays, computing two batches in parallel.

    An accelerator computes one batch while the other's output is fetched. A CPU uses more cores if a batch has many
    small steps, as in a recurrent network, and compiles two shapes at a time.
    """
    # Several devices need their common work in one order, from one thread.
    single_device = jax.device_count() == 1
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(2) as pool:
        try:
            for batch in batches:
                if single_device:
                    waiting.append(pool.submit(lambda batch: jax.device_get(run(batch)), batch))
                else:
                    waiting.append(pool.submit(jax.device_get, run(batch)))
                if len(waiting) > 2:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:  # a caller that stops early does not wait for batches that have not started
            for future in waiting:
                future.cancel()
