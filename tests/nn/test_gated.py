import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.nn import GatedFeedForward, gated_unit

pytestmark = pytest.mark.usefixtures("strict_dtypes")


# Whole feed-forward layers, with and without biases, are computed by hand in test_layer_parts.py.


def test_the_first_argument_is_activated():
    x, up = jnp.array([1.0, -2.0]), jnp.array([-3.0, 4.0])
    np.testing.assert_allclose(gated_unit(x, up, "silu"), jax.nn.silu(x) * up)
    np.testing.assert_allclose(gated_unit(x, up, "gelu"), jax.nn.gelu(x, approximate=False) * up, rtol=1e-6)


def test_dropout_and_initial_deviations():
    x = jnp.ones((64, 32))
    layer = GatedFeedForward(128, dropout=0.5, stddev=0.1, output_stddev=0.01)
    variables = jax.jit(layer.init)(jax.random.key(0), x)
    assert float(jnp.abs(variables["params"]["down"]["kernel"]).max()) <= 0.02
    assert float(jnp.abs(variables["params"]["up"]["kernel"]).max()) > 0.1
    apply = jax.jit(layer.apply)
    dropped, plain = np.asarray(apply(variables, x, jax.random.key(1))), np.asarray(apply(variables, x))
    assert np.abs(dropped[0] - dropped[1]).max() > 1e-3 and np.abs(plain[0] - plain[1]).max() < 1e-6
