"""The plane of a probe: held-out vectors only, groups that it separates, and no invented separation."""

import numpy as np
import pytest

from bert_elmo_jax.analysis.probe_plane import probe_plane


def cloud(groups, width=20, seed=0):
    return np.random.default_rng(seed).normal(size=(len(groups), width)).astype(np.float32)


def test_sides_of_the_plane_are_the_groups():
    groups = ["배.ship"] * 60 + ["배.pear"] * 60
    rows = cloud(groups)
    rows[:, 0] *= 50  # what differs most says nothing
    rows[60:, 7] += 6
    seen = probe_plane(rows, groups)
    assert seen.accuracy == 1.0
    assert seen.plane.shape == (30, 2)
    assert seen.groups.count("배.ship") == seen.groups.count("배.pear") == 15
    pears = np.array(seen.groups) == "배.pear"
    assert seen.plane[pears, 0].min() > seen.plane[~pears, 0].max() or (
        seen.plane[pears, 0].max() < seen.plane[~pears, 0].min()
    )
    np.testing.assert_allclose(seen.plane.std(axis=0), 1)
    assert abs(np.corrcoef(seen.plane.T)[0, 1]) < 0.5  # up is another direction


def test_three_groups_take_three_places():
    groups = ["a", "b", "c"] * 40
    rows = cloud(groups)
    for n, at in enumerate((3, 8, 11)):
        rows[n::3, at] += 8
    seen = probe_plane(rows, groups)
    assert seen.accuracy == 1.0
    labels = np.array(seen.groups)
    centres = np.stack([seen.plane[labels == name].mean(axis=0) for name in "abc"])
    spread = max(seen.plane[labels == name].std() for name in "abc")
    apart = np.linalg.norm(centres[:, None] - centres[None], axis=-1)[np.triu_indices(3, 1)]
    assert apart.min() > spread


def test_what_is_not_there_is_not_shown():
    """The plane of a probe fitted to noise separates only the vectors of the fit."""
    groups = ["a", "b"] * 60
    seen = probe_plane(cloud(groups, width=200), groups)
    assert 0.2 < seen.accuracy < 0.8
    labels = np.array(seen.groups)
    assert abs(seen.plane[labels == "a", 0].mean() - seen.plane[labels == "b", 0].mean()) < 1.0
    same = probe_plane(np.ones((40, 3), np.float32), ["a", "b"] * 20)  # layer 0: a word without its context
    assert same.accuracy == 0.5
    assert np.isfinite(same.plane).all()


def test_the_seed_decides_the_halves():
    groups = ["a", "b"] * 40
    first, again, other = (probe_plane(cloud(groups), groups, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.plane, again.plane)
    assert not np.array_equal(first.plane, other.plane)


def test_invalid_groups_are_refused():
    for rows, groups, message in (
        (3, ["a", "b"], "3 vectors and 2 groups: give one group per vector"),
        (8, ["a"] * 8, r"groups of \{'a': 8\} vectors: at least two groups of 4 are needed"),
        (8, ["a"] * 5 + ["b"] * 3, r"\{'a': 5, 'b': 3\}"),
    ):
        with pytest.raises(ValueError, match=message):
            probe_plane(np.zeros((rows, 2), np.float32), groups)
