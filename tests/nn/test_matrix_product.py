"""The dense product's own gradients equal JAX's."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

from bert_elmo_jax.nn import dense, matrix_product
from bert_elmo_jax.nn.matrix_product import float32_scores, multiply, multiply_in_tiles, word_logits


def _gradients(product, *inputs):
    def total(x, kernel, g):
        return (product(x, kernel).astype(jnp.float32) * g).sum()

    return [np.asarray(gradient) for gradient in jax.jit(jax.grad(total, (0, 1)))(*inputs)]


@pytest.fixture(scope="module", params=[(7, 12, 4), (1, 8, 3)])
def inputs(request):
    (rows, wide, out), random = request.param, np.random.default_rng(0)
    x, kernel, g = (random.normal(size=shape).astype(np.float32) for shape in ((rows, wide), (wide, out), (rows, out)))
    return jnp.asarray(x, jnp.bfloat16), jnp.asarray(kernel), g.astype(jnp.bfloat16).astype(np.float32)


def test_product_in_tiles_equals_the_plain_one(inputs):
    x, kernel, _ = inputs
    np.testing.assert_array_equal(multiply_in_tiles(x, kernel), x @ kernel.astype(jnp.bfloat16))


def test_gradients_in_tiles_are_those_of_float32_rounded_once(inputs):
    x, kernel, g = inputs
    wide = _gradients(jnp.matmul, x.astype(jnp.float32), kernel.astype(jnp.bfloat16).astype(jnp.float32), g)
    gradients = _gradients(multiply_in_tiles, *inputs)
    assert [part.dtype for part in gradients] == [jnp.bfloat16, jnp.float32]
    np.testing.assert_array_equal(gradients[0], wide[0].astype(jnp.bfloat16))
    np.testing.assert_allclose(gradients[1], wide[1], rtol=1e-6, atol=1e-6)


def test_a_narrow_kernel_gets_a_narrow_gradient(inputs):
    x, kernel, g = inputs
    assert _gradients(multiply_in_tiles, x, kernel.astype(jnp.bfloat16), g)[1].dtype == jnp.bfloat16


def test_bfloat16_is_fast_with_amx_and_a_new_jax(monkeypatch):
    for amx, version, fast in ((True, (0, 12, 0), True), (True, (0, 10, 2), False), (False, (0, 12, 0), False)):
        monkeypatch.setattr(matrix_product, "has_bfloat16_products", lambda amx=amx: amx)
        monkeypatch.setattr(jax, "__version_info__", version)
        assert matrix_product.fast_bfloat16() == fast


@pytest.mark.parametrize("amx", [True, False])
def test_only_bfloat16_on_a_processor_with_amx_multiplies_in_tiles(monkeypatch, amx):
    monkeypatch.setattr(matrix_product, "fast_bfloat16", lambda: amx)
    for dtype in (jnp.bfloat16, jnp.float32):
        shown = str(jax.make_jaxpr(lambda x, kernel: multiply(x, kernel))(jnp.ones((2, 8), dtype), jnp.ones((8, 3))))
        assert ("custom_vjp" in shown) == (amx and dtype == jnp.bfloat16)


def test_dense_layer_in_tiles_agrees_with_the_plain_one(monkeypatch, inputs):
    x, kernel, g = inputs
    bias = jnp.ones(kernel.shape[1])
    gradients = []
    for amx in (True, False):
        monkeypatch.setattr(matrix_product, "fast_bfloat16", lambda amx=amx: amx)
        gradients.append(_gradients(lambda x, kernel: dense(x[None], kernel, bias)[0], x, kernel, g))
    for ours, plain in zip(*gradients):
        np.testing.assert_allclose(ours.astype(np.float32), plain.astype(np.float32), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32, jnp.float64])
def test_the_gradient_of_a_bias_is_summed_at_least_in_float32(dtype):
    with jax.enable_x64(dtype == jnp.float64):
        x, kernel, bias = jnp.zeros((1001, 2), dtype), jnp.zeros((2, 3), dtype), jnp.zeros(3, jnp.float32)
        gradient = jax.grad(lambda bias: dense(x, kernel, bias).astype(jnp.float32).sum())(bias)
        assert gradient.dtype == jnp.float32 and gradient.tolist() == [1001.0] * 3  # 1000 in bfloat16


@pytest.mark.parametrize("narrow", [True, False])
def test_gradients_of_word_logits(monkeypatch, inputs, narrow):
    x, _, g = inputs
    words, at = jax.random.normal(jax.random.key(1), (g.shape[1], x.shape[1])), (lambda x: x[None])
    monkeypatch.setattr(matrix_product, "fast_bfloat16", lambda: narrow)
    for hidden in (x, x.astype(jnp.float32)):
        gradients = _gradients(lambda x, words: word_logits(at(x), words)[0], hidden, words, g)
        rounded = words.astype(hidden.dtype).astype(jnp.float32)
        exact = _gradients(lambda x, words: x @ words.T, hidden.astype(jnp.float32), rounded, g)
        assert [part.dtype for part in gradients] == [hidden.dtype, jnp.float32]
        np.testing.assert_array_equal(gradients[0], exact[0].astype(hidden.dtype))
        np.testing.assert_allclose(gradients[1], exact[1], rtol=1e-6, atol=1e-6)


def test_word_logits_are_multiplied_in_16_bits_where_that_is_faster(monkeypatch):
    arrays = jnp.ones((2, 8), jnp.bfloat16), jnp.ones((5, 8))
    for fast in (True, False):
        monkeypatch.setattr(matrix_product, "fast_bfloat16", lambda fast=fast: fast)
        shown = str(jax.make_jaxpr(jax.grad(lambda x, words: word_logits(x, words).sum(), (0, 1)))(*arrays))
        products = [line for line in shown.splitlines() if "dot_general" in line]
        assert len(products) == 3 and ("bf16[2,5]" in shown) == fast


@pytest.mark.parametrize("fast", [True, False])
def test_scores_have_gradients_of_their_inputs_type(monkeypatch, fast):
    monkeypatch.setattr(matrix_product, "fast_bfloat16", lambda: fast)
    x, y, g = (
        random.normal(random.key(n), shape) for n, shape in enumerate([(2, 5, 3, 4), (2, 6, 3, 4), (2, 3, 5, 6)])
    )
    g = g.astype(jnp.bfloat16).astype(jnp.float32)

    product = partial(jnp.einsum, "btah,bsah->bats")

    def gradients(scores, *inputs):
        return jax.grad(lambda x, y: (scores(x, y) * g).sum(), (0, 1))(*inputs)

    narrow = x.astype(jnp.bfloat16), y.astype(jnp.bfloat16)
    exact = gradients(product, *(array.astype(jnp.float32) for array in narrow))
    for ours, full in zip(gradients(partial(float32_scores, product), *narrow), exact):
        assert ours.dtype == jnp.bfloat16
        np.testing.assert_allclose(ours.astype(jnp.float32), full, rtol=2**-7, atol=2**-7)
    shown = str(jax.make_jaxpr(jax.grad(lambda x, y: float32_scores(product, x, y).sum(), (0, 1)))(*narrow))
    assert ("bf16[2,3,5,6]" in shown) == fast  # the gradient of the scores is rounded before it is multiplied
