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
    probed = probe_plane(rows, groups)
    assert probed.accuracy == 1.0
    assert probed.plane.shape == (30, 2)
    assert probed.groups.count("배.ship") == probed.groups.count("배.pear") == 15
    pears = np.array(probed.groups) == "배.pear"
    assert probed.plane[pears, 0].min() > probed.plane[~pears, 0].max() or (
        probed.plane[pears, 0].max() < probed.plane[~pears, 0].min()
    )
    np.testing.assert_allclose(probed.plane.std(axis=0), 1)
    assert abs(np.corrcoef(probed.plane.T)[0, 1]) < 0.5  # up is another direction


def test_three_groups_take_three_places():
    groups = ["a", "b", "c"] * 40
    rows = cloud(groups)
    for n, at in enumerate((3, 8, 11)):
        rows[n::3, at] += 8
    probed = probe_plane(rows, groups)
    assert probed.accuracy == 1.0
    labels = np.array(probed.groups)
    centres = np.stack([probed.plane[labels == name].mean(axis=0) for name in "abc"])
    spread = max(probed.plane[labels == name].std() for name in "abc")
    apart = np.linalg.norm(centres[:, None] - centres[None], axis=-1)[np.triu_indices(3, 1)]
    assert apart.min() > spread


def test_groups_of_noise_are_not_separated():
    """The plane of a probe fitted to noise separates only the vectors of the fit."""
    groups = ["a", "b"] * 60
    probed = probe_plane(cloud(groups, width=200), groups)
    assert 0.2 < probed.accuracy < 0.8
    labels = np.array(probed.groups)
    assert abs(probed.plane[labels == "a", 0].mean() - probed.plane[labels == "b", 0].mean()) < 1.0
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
