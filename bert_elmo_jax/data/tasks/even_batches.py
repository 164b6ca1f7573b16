"""Batches whose sums of lengths are nearly equal, so that packed rows of one shape hold every batch."""

import numpy as np
from jaxtyping import Int

from bert_elmo_jax.data.rows.draws import ORDER, generator

Numbers = Int[np.ndarray, "_"]
ROUNDS = 8  # of exchanges between long and short batches: most sums then differ by a piece or two


def plan_even(lengths: Int[np.ndarray, "N"], batch_size: int, seed: int, epoch: int) -> list[Numbers]:
    """Return the indices of the examples of each batch of an epoch; one batch may have fewer than `batch_size`.

    The examples are sorted by length and cut into as many strata as a batch has examples. Each batch gets one example
    of each stratum at random. Then long batches exchange an example with short ones.

    >>> lengths = np.arange(100) % 40
    >>> [int(lengths[batch].sum()) for batch in plan_even(lengths, 25, seed=0, epoch=0)]
    [437, 438, 437, 438]
    """
    draw = generator(seed, ORDER, epoch)
    order = draw.permutation(len(lengths))
    order = order[np.argsort(lengths[order], kind="stable")]
    batches, short = [], len(order) % batch_size
    if short:  # a batch of examples of all lengths
        places = ((np.arange(short) + draw.random()) * (len(order) / short)).astype(np.int64)
        batches, order = [order[places]], np.delete(order, places)
    if len(order):
        strata = draw.permuted(order.reshape(batch_size, -1), axis=1)
        _exchange(strata, lengths)
        batches += list(strata.T)
    return [batches[n] for n in draw.permutation(len(batches))]


def _exchange(strata: Int[np.ndarray, "B batches"], lengths: Int[np.ndarray, "N"]) -> None:
    """Let the longest batch exchange an example with the shortest one, the second longest with the second, and so on.

    They choose the stratum whose exchange makes the two sums most similar. The last rounds exchange between
    neighbouring strata, because a batch with the very longest example may need shorter ones than its strata have.
    """
    half = strata.shape[1] // 2
    for number in range(ROUNDS):
        neighbours = np.roll(np.arange(len(strata)), number // (ROUNDS // 2))
        sums = lengths[strata].sum(axis=0)
        by_sum = np.argsort(sums, kind="stable")
        short, long = by_sum[:half], by_sum[::-1][:half]
        differences = sums[long] - sums[short]
        left = np.abs(differences - 2 * (lengths[strata[:, long]] - lengths[strata[neighbours][:, short]]))
        stratum = left.argmin(axis=0)
        better = np.flatnonzero(left[stratum, np.arange(half)] < differences)
        long_places, short_places = (stratum[better], long[better]), (neighbours[stratum[better]], short[better])
        strata[long_places], strata[short_places] = strata[short_places], strata[long_places]
