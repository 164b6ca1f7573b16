"""Tests of senses, neighbours, centroids and attention heads against hand-computed values and plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.evals import attention_heads, nearest, probing


def test_labels_of_words():
    words, labels = ["a", "a", "a", "b", "c"], ["X", "Y", "Y", "X", "X"]
    assert probing.by_word(words, labels, ["a", "b", "눈"]) == ["Y", "X", "X"]
    assert probing.by_word(["a", "b"], ["b", "a"], ["눈"]) == ["b"]
    assert probing.rank_labels(["배", "배", "배"], ["ship", "pear", "pear"]) == {"배": ["pear", "ship"]}
    assert probing.accuracy(["a", "b"], ["a", "a"]) == 0.5


@given(st.integers(0, 2**32 - 1))
def test_group_means_equal_a_loop(seed):
    draw = np.random.default_rng(seed)
    vectors, groups = draw.normal(size=(37, 3)), draw.integers(0, 6, 37)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probing, "CHUNK", 5)
        means = probing.group_means(vectors, groups, 7)
    for group in range(7):
        mine = vectors[groups == group]
        assert np.allclose(means[group], mine.mean(axis=0) if len(mine) else 0, atol=1e-6)


def test_nearest_senses():
    train = np.array([[2.0, 0.0], [0.0, 1.0], [0.0, 3.0], [5.0, 5.0]])
    items, keys = ["배", "배", "배", "눈"], ["ship", "pear", "pear", "snow"]
    test = np.array([[1.0, 0.1], [0.1, 1.0], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    test_items = ["배", "배", "배", "눈", "말"]
    # By cosine; the first sense for a zero vector; only the item's own senses; None for unseen items.
    assert probing.nearest_senses(train, items, keys, test, test_items) == ["ship", "pear", "pear", "snow", None]
    assert probing.first_senses(items, keys, test_items) == ["pear", "pear", "pear", "snow", None]
    # Static vectors, and layer 0 of a character model, give equal vectors: rounding must not decide.
    same = np.full((5, 8), 0.1, np.float32) + np.random.default_rng(0).normal(0, 1e-8, (5, 8)).astype(np.float32)
    senses = probing.nearest_senses(same, ["배"] * 5, ["a", "b", "b", "a", "b"], same, ["배"] * 5)
    assert senses == ["b"] * 5


def test_neighbours_by_cosine(monkeypatch):
    monkeypatch.setattr(nearest, "CHUNK", 2)
    rows = np.array([[3.0, 0.0], [0.0, 0.0], [1.0, 1.0], [-1.0, 0.0], [5.0, 0.1]])
    # The second row has zeros, which are near to nothing.
    assert [row for row, _ in nearest.neighbours(rows, np.array([2.0, 0.0]), 9)] == [0, 4, 2, 3]
    assert nearest.neighbours(rows, np.array([2.0, 0.0]), 1) == [(0, 1.0)]


def test_accuracy_of_centroids():
    draw = np.random.default_rng(0)
    groups = ["a", "b", "c"] * 20
    apart = draw.normal(size=(60, 4)) + 20 * np.eye(4)[[ord(g) - ord("a") for g in groups]]
    assert nearest.centroid_accuracy(apart, groups) == 1.0
    assert abs(nearest.centroid_accuracy(draw.normal(size=(600, 4)), groups * 10) - 1 / 3) < 0.1
    with pytest.raises(ValueError, match="expected at least two groups of two"):
        nearest.centroid_accuracy(apart[:2], ["a", "b"])


def test_plane_keeps_the_two_largest_directions():
    draw = np.random.default_rng(1)
    values = draw.normal(size=(500, 5)) * [9, 0.1, 4, 0.1, 0.1]
    plane = nearest.principal_plane(values)
    assert np.allclose(np.abs(np.corrcoef(plane.T, values[:, [0, 2]].T)[:2, 2:]), np.eye(2), atol=0.1)
    assert np.allclose(np.cov(plane.T)[0, 1], 0, atol=1e-9)
    assert nearest.principal_plane(np.array([[1.0], [3.0]])).tolist() == [[-1.0, 0.0], [1.0, 0.0]]


@given(st.integers(0, 2**32 - 1))
def test_word_maps_equal_a_loop(seed):
    draw = np.random.default_rng(seed)
    word_of = np.array([-1, 0, 1, 1, 3, 3, 3, -1])  # word 2 has no piece
    maps = draw.dirichlet(np.ones(8), size=(2, 3, 8))
    word_maps = attention_heads.word_maps(maps, word_of, 4)
    for a in range(4):
        for b in range(4):
            block = maps[:, :, word_of == a][:, :, :, word_of == b]
            expected = block.sum(axis=3).mean(axis=2) if block.size else np.zeros((2, 3))
            assert np.allclose(word_maps[:, :, a, b], expected)


def test_follows_and_offsets():
    # Two maps of three words: in the first, words attend to the left (word 0 to the right), in the second to word 2.
    attended = np.array([[1, 0, 1], [2, 2, 0]])
    hits = attention_heads.follows(attended, [(1, 0), (0, 2)])
    assert hits.shape == (2, 2, 2)  # directions, arcs, maps
    assert hits[0].tolist() == [[True, False], [False, True]]
    assert hits[1].tolist() == [[True, False], [False, True]]
    fixed = attention_heads.at_offsets([(1, 0), (0, 2), (0, 9)])
    assert fixed.sum(axis=1)[0].tolist() == [0, 0, 0, 0, 1, 0, 1, 0, 0, 0]
    assert (fixed[0] == fixed[1][:, ::-1]).all()


def test_words_do_not_attend_to_themselves():
    maps = np.eye(3)[None] * 0.9 + 0.01 * np.arange(3)[None, None, :]
    assert attention_heads.most_attended(maps).tolist() == [[2, 2, 1]]
