"""Tests of averaging checkpoints."""

import ml_dtypes
import numpy as np

from bert_elmo_jax.optim import average


def test_means_keep_the_types_and_are_summed_in_float64():
    rng = np.random.default_rng(0)
    trees = [{"a": {"b": rng.normal(size=(3, 4)).astype(np.float32)}, "c": rng.normal(size=2)} for _ in range(5)]
    mean = average(trees)
    expected = np.mean([t["a"]["b"] for t in trees], axis=0, dtype=np.float64)
    np.testing.assert_allclose(mean["a"]["b"], expected, rtol=1e-6)
    assert mean["a"]["b"].dtype == np.float32 and mean["c"].dtype == np.float64
    mean = average({"a": np.array([1e4 + 0.01 * k], np.float32)} for k in range(100))
    np.testing.assert_allclose(mean["a"], 1e4 + 0.495, atol=1e-3)
    ones = np.ones(2, ml_dtypes.bfloat16)
    brain = average([{"a": ones}, {"a": 2 * ones}])["a"]
    assert brain.dtype == ml_dtypes.bfloat16 and brain.tolist() == [1.5, 1.5]


def test_mean_of_one_tree_is_a_copy():
    tree = {"a": np.array([-0.0, 1e-40, 3.0], np.float32)}
    assert average([tree])["a"].tobytes() == tree["a"].tobytes()
    assert average(iter([tree, tree]))["a"].tobytes() == tree["a"].tobytes()
    np.testing.assert_array_equal(tree["a"], np.array([-0.0, 1e-40, 3.0], np.float32))
