import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.nn import GatedFeedForward, gated_unit

pytestmark = pytest.mark.usefixtures("strict_dtypes")


def test_the_first_argument_is_activated():
    x, up = jnp.array([1.0, -2.0]), jnp.array([-3.0, 4.0])
    np.testing.assert_allclose(gated_unit(x, up, "silu"), jax.nn.silu(x) * up)
    np.testing.assert_allclose(gated_unit(x, up, "gelu"), jax.nn.gelu(x, approximate=False) * up, rtol=1e-6)


@pytest.mark.parametrize("use_bias", [False, True])
def test_feed_forward_by_hand(use_bias):
    x = jax.random.normal(jax.random.key(0), (2, 3, 4))
    layer = GatedFeedForward(6, "relu", stddev=0.5, use_bias=use_bias)
    p = layer.init(jax.random.key(1), x)["params"]
    p = jax.tree.map(lambda leaf: leaf + 0.1, p)

    def dense(x, name):
        return x @ p[name]["kernel"] + (p[name]["bias"][None, None, :] if use_bias else 0.0)

    wanted = dense(jnp.maximum(dense(x, "gate"), 0.0) * dense(x, "up"), "down")
    np.testing.assert_allclose(layer.apply({"params": p}, x), wanted, atol=1e-5)


def test_dropout_and_initial_deviations():
    x = jnp.ones((64, 32))
    layer = GatedFeedForward(128, dropout=0.5, stddev=0.1, output_stddev=0.01)
    variables = layer.init(jax.random.key(0), x)
    assert float(jnp.abs(variables["params"]["down"]["kernel"]).max()) <= 0.02
    assert float(jnp.abs(variables["params"]["up"]["kernel"]).max()) > 0.1
    dropped, kept = layer.apply(variables, x, jax.random.key(1)), layer.apply(variables, x)
    assert np.abs(dropped[0] - dropped[1]).max() > 1e-3 and np.abs(kept[0] - kept[1]).max() < 1e-6
