"""Tests of averaging checkpoints."""

import jax.numpy as jnp
import ml_dtypes
import numpy as np

from bert_elmo_jax.optim import average


def test_mean_keeps_the_types():
    rng = np.random.default_rng(0)
    trees = [{"a": {"b": rng.normal(size=(3, 4)).astype(np.float32)}, "c": rng.normal(size=2)} for _ in range(5)]
    mean = average(trees)
    np.testing.assert_allclose(
        mean["a"]["b"], np.mean([t["a"]["b"] for t in trees], axis=0, dtype=np.float64), rtol=1e-6
    )
    assert mean["a"]["b"].dtype == np.float32 and mean["c"].dtype == np.float64


def test_mean_of_one_tree_is_a_copy():
    tree = {"a": np.array([-0.0, 1e-40, 3.0], np.float32)}
    assert average([tree])["a"].tobytes() == tree["a"].tobytes()
    assert average(iter([tree, tree]))["a"].tobytes() == tree["a"].tobytes()
    np.testing.assert_array_equal(tree["a"], np.array([-0.0, 1e-40, 3.0], np.float32))


def test_sums_are_float64():
    base = np.float32(1e4)
    mean = average({"a": np.array([base + 0.01 * k], np.float32)} for k in range(100))
    np.testing.assert_allclose(mean["a"], 1e4 + 0.495, atol=1e-3)
    brain = average([{"a": jnp.ones(2, jnp.bfloat16)}, {"a": 2 * jnp.ones(2, jnp.bfloat16)}])["a"]
    assert brain.dtype == ml_dtypes.bfloat16 and brain.tolist() == [1.5, 1.5]
