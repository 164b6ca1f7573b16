import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.nn import normalise_layer, scalar_mix

pytestmark = pytest.mark.usefixtures("strict_dtypes")


def draw(*shape, seed=0, mean=0.0, deviation=1.0):
    return np.random.default_rng(seed).normal(mean, deviation, shape).astype(np.float32)


def test_mixture_and_gradients_match_numpy():
    layers, weights, gamma = draw(3, 2, 5, 4), draw(3, seed=1), jnp.float32(1.7)
    shares = np.exp(weights) / np.exp(weights).sum()
    expected = gamma * np.einsum("l,lbtd->btd", shares, layers)
    np.testing.assert_allclose(scalar_mix(layers, weights, gamma), expected, atol=1e-6)

    of_weights, of_gamma = jax.grad(lambda w, g: scalar_mix(layers, w, g).sum(), argnums=(0, 1))(weights, gamma)
    sums = layers.sum((1, 2, 3))
    np.testing.assert_allclose(of_gamma, (shares * sums).sum(), rtol=1e-5)
    np.testing.assert_allclose(of_weights, gamma * shares * (sums - (shares * sums).sum()), rtol=1e-4, atol=1e-5)


def test_adding_a_constant_to_the_weights_changes_nothing():
    layers, weights = draw(3, 1, 2, 4), draw(3, seed=1)
    one, other = (scalar_mix(layers, weights + np.float32(shift)) for shift in (0, 50))
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_16_bit_layers_stay_16_bit():
    layers = jnp.asarray(draw(3, 1, 2, 4), jnp.bfloat16)
    assert scalar_mix(layers, np.zeros(3, np.float32)).dtype == jnp.bfloat16
    wide = scalar_mix(layers.astype(jnp.float32), np.zeros(3, np.float32))
    np.testing.assert_array_equal(scalar_mix(layers, np.zeros(3, np.float32)), wide.astype(jnp.bfloat16))
    assert normalise_layer(layers[0], np.ones((1, 2), bool)).dtype == jnp.bfloat16


def test_statistics_cover_all_real_positions():
    layer, mask = draw(3, 5, 4, mean=3, deviation=2), np.arange(5)[None, :] < np.array([5, 2, 0])[:, None]
    real = layer[mask].astype(np.float64)
    expected = (layer - real.mean()) / np.sqrt(real.var() + 1e-13)
    ours = np.asarray(normalise_layer(layer, mask))
    np.testing.assert_allclose(ours[mask], expected[mask], atol=1e-5)
    spoilt = np.where(mask[..., None], layer, np.float32(np.nan))
    np.testing.assert_array_equal(np.asarray(normalise_layer(spoilt, mask)), ours)


@pytest.mark.parametrize("real", [0, 1])
def test_degenerate_layers_give_zeros_with_finite_gradients(real):
    """No real position, or equal numbers."""
    mask = np.arange(2)[None, :] < real
    value, gradient = jax.value_and_grad(lambda x: normalise_layer(x, mask).sum())(jnp.full((1, 2, 3), 2.5))
    assert value == 0 and np.isfinite(gradient).all()
