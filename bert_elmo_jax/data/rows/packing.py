"""Pack sequences of different lengths into rows, so that little is padded."""

import numpy as np
from jaxtyping import Int64


def pack(
    lengths: Int64[np.ndarray, "N"], capacity: int, most: int
) -> tuple[Int64[np.ndarray, "N"], Int64[np.ndarray, "rows_plus_one"]]:
    """Pack examples into rows of `capacity` positions and at most `most` examples, by best fit, longest first.

    Return the examples, row after row, and the start of each row among them. All examples of one length are placed at
    once, in their order, so the time hardly grows with their number.
    """
    order = np.argsort(-lengths, kind="stable")
    row_of = np.empty(len(lengths), np.int64)
    space_in: list[list[np.ndarray]] = [[] for _ in range(capacity + 1)]  # open rows by the space left in them
    counts = np.zeros(len(lengths), np.int64)  # examples in each row; there are no more rows than examples
    rows = 0
    sorted_lengths = lengths[order]
    cuts = np.flatnonzero(np.diff(sorted_lengths, prepend=0, append=0))
    for first, end in zip(cuts[:-1].tolist(), cuts[1:].tolist()):
        length, waiting = int(sorted_lengths[first]), order[first:end]
        space = length
        while len(waiting) and space <= capacity:
            if not space_in[space]:
                space += 1
                continue
            open_rows = space_in[space].pop()
            used, unused = open_rows[: len(waiting)], open_rows[len(waiting) :]
            if len(unused):
                space_in[space].append(unused)
            row_of[waiting[: len(used)]] = used
            waiting = waiting[len(used) :]
            counts[used] += 1
            left = space - length
            if len(still := used[counts[used] < most]):
                space_in[left].append(still)
                space = min(space, max(left, length))
        if len(waiting):
            each = min(capacity // length, most)
            number = np.arange(len(waiting)) // each
            row_of[waiting] = rows + number
            opened = np.bincount(number)
            counts[rows : rows + len(opened)] = opened
            new = rows + np.arange(len(opened))
            for count in {each, int(opened[-1])}:
                if len(still := new[(opened == count) & (opened < most)]):
                    space_in[capacity - count * length].append(still)
            rows += len(opened)
    members = order[np.argsort(row_of[order], kind="stable")]
    return members, np.concatenate([[0], np.cumsum(counts[:rows])]).astype(np.int64)


def pack_shuffled(
    lengths: Int64[np.ndarray, "N"], capacity: int, most: int, rng: np.random.Generator
) -> tuple[Int64[np.ndarray, "N"], Int64[np.ndarray, "rows_plus_one"]]:
    """Pack examples in random order into rows in random order; see `pack`."""
    order = rng.permutation(len(lengths))
    if most == 1:
        return order, np.arange(len(order) + 1)
    packed, starts = pack(lengths[order], capacity, most)
    row_order = rng.permutation(len(starts) - 1)
    sizes = np.diff(starts)[row_order]
    first = np.concatenate([[0], np.cumsum(sizes)])
    return order[packed][np.repeat(starts[row_order] - first[:-1], sizes) + np.arange(len(packed))], first
