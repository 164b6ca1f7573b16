"""What a linear probe sees: vectors that it was not fitted on, in the plane in which it tells their labels apart."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32, Int

from bert_elmo_jax.analysis.linear_probe import LinearProbe, choose_probe
from bert_elmo_jax.evals.nearest import principal_plane

LEAST = 4  # vectors of a label: with fewer none is left to look at


class Probed(NamedTuple):
    """How often a probe was right of vectors it had not seen, where these lie in its plane, and what each is.

    >>> Probed(0.5, np.zeros((2, 2)), ["ship", "pear"]).groups
    ['ship', 'pear']
    """

    accuracy: float
    plane: Float[np.ndarray, "N 2"]
    groups: list[str]


def probe_plane(vectors: Float32[np.ndarray, "N D"], groups: Sequence[str], *, seed: int = 0) -> Probed:
    """Fit a probe on half of each group, choose its penalty on a quarter, and look at the last quarter.

    Across is what the probe goes by: of two groups its leaning to one or the other, of more the direction in which its
    leanings differ most. Up is the next such direction, or of two groups that in which the vectors differ most besides.
    Both have the same spread, so that distances mean nothing; that groups lie apart does, because the probe has not
    seen these vectors.

    >>> rows = np.random.default_rng(0).normal(size=(80, 5)).astype(np.float32)
    >>> rows[:40, 3] += 6
    >>> seen = probe_plane(rows, ["ship"] * 40 + ["pear"] * 40)
    >>> seen.accuracy, seen.plane.shape, sorted(set(seen.groups))
    (1.0, (20, 2), ['pear', 'ship'])
    """
    if len(vectors) != len(groups):
        raise ValueError(f"{len(vectors)} vectors and {len(groups)} groups: give a group for each vector")
    names, counts = np.unique(np.asarray(groups), return_counts=True)
    if len(names) < 2 or counts.min() < LEAST:
        raise ValueError(
            f"groups of {dict(zip(names.tolist(), counts.tolist()))} vectors: at least two groups of {LEAST} are needed"
        )
    labels = np.asarray(groups)
    train, dev, test = _split(labels, seed)
    probe, _ = choose_probe(vectors[train], labels[train], vectors[dev], labels[dev])
    right = float(np.mean(probe.predict(vectors[test]) == labels[test]))
    return Probed(right, _plane(probe, vectors[test]), labels[test].tolist())


def _split(labels: np.ndarray, seed: int) -> list[Int[np.ndarray, " n"]]:
    """Half of each label to fit, a quarter to choose, a quarter to test."""
    order = np.random.default_rng(seed).permutation(len(labels))
    turn = np.zeros(len(labels), np.int64)
    for label in set(labels.tolist()):
        mine = order[labels[order] == label]
        turn[mine] = np.arange(len(mine)) % 4
    return [np.flatnonzero(np.isin(turn, some)) for some in ((0, 1), (2,), (3,))]


def _plane(probe: LinearProbe, vectors: Float32[np.ndarray, "N D"]) -> Float[np.ndarray, "N 2"]:
    rows = np.asarray((vectors - probe.mean) / probe.scale, np.float64)
    weights = np.asarray(probe.weights, np.float64)
    if weights.shape[1] == 2:
        across = weights[:, 1] - weights[:, 0]
        leaning = rows @ across
        rest = rows - np.outer(leaning, across) / max(float(across @ across), 1e-12)
        plane = np.stack([leaning, principal_plane(rest)[:, 0]], axis=1)
    else:
        plane = principal_plane(rows @ weights)
    return (plane - plane.mean(axis=0)) / np.maximum(plane.std(axis=0), 1e-12)
