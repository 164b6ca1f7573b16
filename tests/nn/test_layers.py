"""Tests of dense layers, layer normalisation, activations and embeddings."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from bert_elmo_jax.nn import ACTIVATIONS, Dense, activation, dense, embed, gelu, gelu_new, layer_norm, truncated_normal

pytestmark = pytest.mark.usefixtures("strict_dtypes")


def test_dense_is_a_matrix_product_in_its_input_type():
    x, kernel, bias = (jax.random.normal(jax.random.key(i), s) for i, s in enumerate([(2, 3, 4), (4, 5), (5,)]))
    np.testing.assert_allclose(
        dense(x, kernel, bias), np.einsum("btd,do->bto", x, kernel) + np.asarray(bias), atol=1e-6
    )
    assert dense(x.astype(jnp.bfloat16), kernel, bias).dtype == jnp.bfloat16
    assert dense(x[:0], kernel, bias).shape == (0, 3, 5)


def test_dense_keeps_its_parameters_in_float32():
    params = Dense(5, dtype=jnp.bfloat16).init(jax.random.key(0), jnp.ones((2, 3)))["params"]
    assert {p.dtype for p in jax.tree.leaves(params)} == {jnp.dtype("float32")}


def test_initialisation_is_truncated_without_correction():
    drawn = np.asarray(truncated_normal(0.02)(jax.random.key(0), (500, 500)))
    assert np.abs(drawn).max() <= 0.04
    assert abs(drawn.mean()) < 2e-4
    # The deviation of a standard normal distribution truncated at ±2.
    density, inside = math.exp(-2) / math.sqrt(2 * math.pi), math.erf(math.sqrt(2))
    assert drawn.std() == pytest.approx(0.02 * math.sqrt(1 - 4 * density / inside), rel=0.01)


def test_layer_norm_against_float64():
    x = np.random.default_rng(0).normal(3, 2, (4, 7, 16))
    scale, bias = np.random.default_rng(1).normal(size=(2, 16))
    expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12) * scale + bias
    ours = layer_norm(*(jnp.asarray(y, jnp.float32) for y in (x, scale, bias)))
    np.testing.assert_allclose(ours, expected, atol=2e-6)


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
def test_gradients_of_layer_norm_against_float64(backend, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    draw = np.random.default_rng(0)
    x, (scale, bias) = draw.normal(3, 2, (4, 7, 16)), draw.normal(size=(2, 16))
    weights = draw.normal(size=x.shape)
    total = lambda *arrays: (layer_norm(*arrays) * weights.astype(np.float32)).sum()  # noqa: E731
    gradients = jax.jit(jax.grad(total, (0, 1, 2)))(*(array.astype(np.float32) for array in (x, scale, bias)))
    normal, g = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True), weights * scale
    to_x = (g - g.mean(-1, keepdims=True) - normal * (g * normal).mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
    for ours, expected in zip(gradients, (to_x, (weights * normal).sum((0, 1)), weights.sum((0, 1))), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-5)


def test_layer_norm_of_constants_has_finite_gradients():
    value, gradient = jax.value_and_grad(lambda x: layer_norm(x, jnp.ones(8), jnp.full(8, 0.5)).sum())(
        jnp.full((1, 8), 3.0)
    )
    assert value == 4 and np.isfinite(gradient).all()


def test_layer_norm_statistics_are_float32_in_bf16():
    x = jnp.asarray(np.random.default_rng(0).normal(100, 1, (2, 512)), jnp.bfloat16)
    ours = layer_norm(x, jnp.ones(512), jnp.zeros(512))
    exact = layer_norm(x.astype(jnp.float32), jnp.ones(512), jnp.zeros(512))
    assert ours.dtype == jnp.bfloat16
    np.testing.assert_allclose(ours.astype(jnp.float32), exact, atol=0.02)


X = np.concatenate([np.linspace(-12, 12, 4001), [0.0, -100.0, 100.0]]).astype(np.float32)


def test_gelu_and_its_derivative_match_scipy():
    x = X.astype(np.float64)
    cdf, density = scipy.special.ndtr(x), np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(gelu(jnp.asarray(X)), x * cdf, atol=1e-6, rtol=1e-6)
    backward = jax.vmap(jax.grad(gelu))(jnp.asarray(X))
    _, forward = jax.jvp(gelu, (jnp.asarray(X),), (jnp.ones(len(X)),))
    np.testing.assert_allclose(backward, cdf + x * density, atol=1e-6)
    np.testing.assert_allclose(forward, backward, atol=1e-6)


@pytest.mark.parametrize("backend", ["cpu", "tpu"])
def test_gelu_keeps_one_array_for_its_gradient(backend, monkeypatch):
    """On a TPU its input, otherwise the slope."""
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    x = jnp.linspace(-4, 4, 9, dtype=jnp.bfloat16)
    program = jax.make_jaxpr(lambda x: jax.vjp(lambda x: gelu(x), x)[1])(x)
    (residual,) = (array for array in program.jaxpr.outvars if array.aval.shape)
    assert (residual.aval.shape, residual.aval.dtype) == (x.shape, x.dtype)
    assert (residual in program.jaxpr.invars) == (backend == "tpu")
    wide = x.astype(jnp.float32)
    exact = jax.vmap(jax.grad(lambda x: 0.5 * x * (1 + jax.lax.erf(x * 0.5**0.5))))(wide)
    np.testing.assert_allclose(jax.vmap(jax.grad(lambda x: gelu(x)))(wide), exact, atol=1e-6)


def test_gelu_new_is_the_tanh_formula():
    x = X.astype(np.float64)
    formula = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(gelu_new(jnp.asarray(X)), formula, atol=1e-6)
    assert 1e-4 < np.abs(gelu_new(jnp.asarray(X)) - gelu(jnp.asarray(X))).max() < 1e-3


POINTS = np.array([-12.0, -3.5, -1.0, -0.25, 0.0, 0.3, 0.707107, 1.0, 2.5, 5.0, 7.0, 12.0], np.float32)
WIDE = POINTS.astype(np.float64)
RELU = np.maximum(WIDE, 0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gelu_10", np.clip(WIDE * scipy.special.ndtr(WIDE), -10, 10)),
        ("hardswish", WIDE * np.clip(WIDE + 3, 0, 6) / 6),
        ("laplace", scipy.special.ndtr((WIDE - 0.707107) / 0.282095)),
        ("leaky_relu", np.where(WIDE < 0, 0.01 * WIDE, WIDE)),
        ("linear", WIDE),
        ("mish", WIDE * np.tanh(np.logaddexp(0, WIDE))),
        ("relu2", RELU**2),
        ("relu6", np.minimum(RELU, 6)),
        ("sigmoid", scipy.special.expit(WIDE)),
    ],
)
def test_activations_of_transformers_are_their_formulas(name, expected):
    np.testing.assert_allclose(activation(name)(jnp.asarray(POINTS)), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_activations_keep_the_type_and_stay_finite(name):
    compute = jax.jit(lambda x: (activation(name)(x), jax.vmap(jax.grad(activation(name)))(x)))
    for dtype in (jnp.float32, jnp.bfloat16):
        value, slope = compute(jnp.asarray(X, dtype))
        assert value.dtype == dtype and np.isfinite(np.asarray(slope, np.float32)).all()


def test_unknown_activation_suggests_a_name():
    with pytest.raises(ValueError, match=r"no activation 'geluu'.*did you mean gelu"):
        activation("geluu")


def test_embed_gradients_and_invalid_ids():
    table = jnp.arange(12.0).reshape(4, 3)
    ids = jnp.array([[1, 1], [3, 0]])
    np.testing.assert_array_equal(embed(table, ids), np.asarray(table)[np.asarray(ids)])
    gradient = jax.grad(lambda t: embed(t, ids).sum())(table)
    np.testing.assert_array_equal(gradient[:, 0], [1, 2, 0, 1])
    assert np.isnan(embed(table, jnp.array([4]))).all()


@pytest.mark.parametrize("platform", ["gpu", "cpu"])
def test_a_gpu_adds_the_gradients_of_16_bit_rows_in_32(monkeypatch, platform):
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    table, ids = jnp.ones((4, 2), jnp.bfloat16), jnp.zeros(262, jnp.int32)
    assert embed(table, ids).dtype == jnp.bfloat16
    gradient = jax.grad(lambda table: embed(table, ids).astype(jnp.float32).sum())(table)
    assert gradient.dtype == jnp.bfloat16
    # Sums of ones in bfloat16 end at 256.
    assert gradient[0].tolist() == ([262.0] * 2 if platform == "gpu" else [256.0] * 2) and not gradient[1:].any()
