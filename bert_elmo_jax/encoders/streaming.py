"""Encode streams of texts: a few batches are computed together and yielded in order."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

READ_AHEAD = 4  # batches that are sorted together
BAR_FROM = 300  # texts: below, a bar would only flicker

R = TypeVar("R")
E = TypeVar("E")


def stream(
    texts: Iterator[Any],
    batch_size: int,
    read: Callable[[Any, int], R],
    room: Callable[[R], E],
    fill: Callable[[list[E], list[R]], object],
    join: Callable[[Sequence[E]], E],
) -> Iterator[E]:
    """Yield batches of `batch_size` texts; `read` makes rows, `fill` computes them into `room`."""
    numbered = ((text, number) for number, text in enumerate(texts))
    while rows := [read(*text) for text in itertools.islice(numbered, batch_size * READ_AHEAD)]:
        # Texts of similar length are computed together but yielded in order, so a few batches are in memory: each
        # text with its own length, because padding to one long text would make all of them long.
        held = [room(row) for row in rows]
        fill(held, rows)
        while held:
            batch = join(held[:batch_size])
            del held[:batch_size]
            yield batch
