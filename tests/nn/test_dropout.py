import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.nn import dropout

pytestmark = pytest.mark.usefixtures("strict_dtypes")
KINDS = ["threefry2x32", "rbg", "unsafe_rbg"]


@pytest.mark.parametrize(("kind", "rate"), [*zip(KINDS, (0.01, 0.1, 0.9)), ("threefry2x32", 0.5)])
def test_rate_scaling_and_mean(kind, rate):
    n = 400_000
    dropped = np.asarray(dropout(jnp.full(n, 2.0), rate, jax.random.key(3, impl=kind)))
    zeros = (dropped == 0).mean()
    assert abs(zeros - rate) < 5 * np.sqrt(rate * (1 - rate) / n)
    np.testing.assert_allclose(dropped[dropped != 0], 2 / (1 - rate), rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_elements_are_independent(kind):
    """Elements at distances of powers of two, and masks of two keys, agree no more often than by chance."""
    keys = jax.random.split(jax.random.key(0, impl=kind), 2)
    a, b = (np.asarray(dropout(jnp.ones((512, 768)), 0.5, key)) > 0 for key in keys)
    for shift in [1, 2, 3, 16, 64, 256, 768, 768 * 2, 768 * 16, 768 * 256]:
        same = (a.ravel()[shift:] == a.ravel()[:-shift]).mean()
        assert abs(same - 0.5) < 5 * 0.5 / np.sqrt(a.size - shift), shift
    assert abs((a == b).mean() - 0.5) < 5 * 0.5 / np.sqrt(a.size)
    assert np.abs(a.mean(0) - 0.5).max() < 6 * 0.5 / np.sqrt(512)
    assert np.abs(a.mean(1) - 0.5).max() < 6 * 0.5 / np.sqrt(768)


def test_same_key_gives_same_mask_in_jit_and_backward():
    x, key = jnp.arange(1.0, 1001.0), jax.random.key(5)
    once = dropout(x, 0.3, key)
    np.testing.assert_array_equal(once, jax.jit(lambda x: dropout(x, 0.3, key))(x))
    assert (once != dropout(x, 0.3, jax.random.key(6))).any()
    gradient = jax.grad(lambda x: dropout(x, 0.3, key).sum())(x)
    np.testing.assert_allclose(gradient, once / x, rtol=1e-6)
    assert dropout(x, 0.5, None) is dropout(x, 0.0, key) is x


def test_rows_of_neighbouring_keys_are_independent():
    """Keys are folded with 0, 1, 2, … as in a training loop, and rows are short."""
    keys = jax.vmap(lambda step: jax.random.fold_in(jax.random.key(0), step))(jnp.arange(64))
    drawn = np.asarray(jax.jit(jax.vmap(lambda key: dropout(jnp.ones((64, 16)), 0.5, key)))(keys)) > 0
    drawn = drawn.reshape(64 * 64, 16)
    correlation = np.corrcoef(drawn.T) - np.eye(16)
    assert np.abs(correlation).max() < 5 / np.sqrt(64 * 64)
    assert len({row.tobytes() for row in drawn}) > 0.95 * 2**16 * (1 - np.exp(-(64 * 64) / 2**16))


def test_scale_is_not_rounded_to_16_bits():
    dropped = dropout(jnp.linspace(1, 2, 100_000).astype(jnp.bfloat16), 0.1, jax.random.key(0))
    assert dropped.dtype == jnp.bfloat16
    dropped = dropped.astype(jnp.float32)
    nonzero_values = np.asarray(dropped)[np.asarray(dropped) > 0]
    exact = np.linspace(1, 2, 100_000)[np.asarray(dropped) > 0] / 0.9
    assert abs((nonzero_values / exact).mean() - 1) < 3e-4


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5])
def test_invalid_rates_raise(rate):
    with pytest.raises(ValueError, match="at least 0 and below 1"):
        dropout(jnp.ones(3), rate, jax.random.key(0))
