"""Pictures of a linear probe: held-out vectors in the plane that separates their labels best."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32, Int

from bert_elmo_jax.analysis.linear_probe import LinearProbe, choose_probe
from bert_elmo_jax.evals.nearest import principal_plane

LEAST = 4  # vectors per label, for training, dev and test


class Probed(NamedTuple):
    """The accuracy of a probe on held-out vectors, and their places in its plane with their labels."""

    accuracy: float
    plane: Float[np.ndarray, "N 2"]
    groups: list[str]

    def __repr__(self) -> str:
        return f"Probed(accuracy {self.accuracy:.3f}, {len(self.groups)} vectors)"


def probe_plane(vectors: Float32[np.ndarray, "N D"], groups: Sequence[str], *, seed: int = 0) -> Probed:
    """Fit a probe on half of each group, choose its penalty on a quarter, and return the last quarter.

    The horizontal axis is the probe's own direction: its logit for two groups, otherwise the first principal component
    of its logits. The vertical axis is the second component, or for two groups the direction of the largest remaining
    variance. Both axes are scaled to the same spread, so distances mean nothing. Separate groups do,
    because these vectors were held out.

    >>> rows = np.random.default_rng(0).normal(size=(80, 5)).astype(np.float32)
    >>> rows[:40, 3] += 6
    >>> seen = probe_plane(rows, ["ship"] * 40 + ["pear"] * 40)
    >>> seen.accuracy, seen.plane.shape, sorted(set(seen.groups))
    (1.0, (20, 2), ['pear', 'ship'])
    """
    if len(vectors) != len(groups):
        raise ValueError(f"{len(vectors)} vectors and {len(groups)} groups: give one group per vector")
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
    """Return the rows to fit (half of each label), to choose on and to test on (a quarter each)."""
    order = np.random.default_rng(seed).permutation(len(labels))
    turn = np.zeros(len(labels), np.int64)
    for label in set(labels.tolist()):
        mine = order[labels[order] == label]
        turn[mine] = np.arange(len(mine)) % 4
    return [np.flatnonzero(np.isin(turn, turns)) for turns in ((0, 1), (2,), (3,))]


def _plane(probe: LinearProbe, vectors: Float32[np.ndarray, "N D"]) -> Float[np.ndarray, "N 2"]:
    rows = np.asarray((vectors - probe.mean) / probe.scale, np.float64)
    weights = np.asarray(probe.weights, np.float64)
    if weights.shape[1] == 2:
        across = weights[:, 1] - weights[:, 0]
        logits = rows @ across
        remainder = rows - np.outer(logits, across) / max(float(across @ across), 1e-12)
        plane = np.stack([logits, principal_plane(remainder)[:, 0]], axis=1)
    else:
        plane = principal_plane(rows @ weights)
    return (plane - plane.mean(axis=0)) / np.maximum(plane.std(axis=0), 1e-12)
