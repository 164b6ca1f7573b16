"""Tests of attention between texts against loops, and of its masks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.nn.pooling import attention_flow, init_similarity, masked_softmax, self_attention_flow, similarity

pytestmark = pytest.mark.usefixtures("strict_dtypes")

B, T, Q, D = 2, 5, 3, 4
flow, self_flow = jax.jit(attention_flow), jax.jit(self_attention_flow)


@pytest.fixture(scope="module")
def texts():
    draw = np.random.default_rng(0)
    x, y = (jnp.asarray(draw.normal(size=(B, n, D)), jnp.float32) for n in (T, Q))
    params = {name: jnp.asarray(draw.normal(size=D), jnp.float32) for name in ("both", "of_x", "of_y")}
    return x, y, params


def test_similarity_by_pairs(texts):
    x, y, params = texts
    scores = jax.jit(similarity)(x, y, params["both"], params["of_x"], params["of_y"])
    x, y, params = jax.tree.map(np.asarray, texts)
    for b, t, q in np.ndindex(B, T, Q):
        a, c = x[b, t], y[b, q]
        expected = params["of_x"] @ a + params["of_y"] @ c + params["both"] @ (a * c)
        assert float(scores[b, t, q]) == pytest.approx(float(expected), rel=1e-5, abs=1e-5)


def test_padding_has_no_effect(texts):
    x, y, params = texts
    x_mask, y_mask = jnp.array([[True] * 3 + [False] * 2] * 2), jnp.array([[True] * 2 + [False]] * 2)
    wild_x = jnp.where(x_mask[..., None], x, 1e6)
    wild_y = jnp.where(y_mask[..., None], y, -1e6)
    outputs = flow(wild_x, wild_y, params, x_mask, y_mask)[:, :3]
    expected = flow(x[:, :3], y[:, :2], params, x_mask[:, :3], y_mask[:, :2])
    np.testing.assert_allclose(outputs, expected, atol=1e-6)
    inner = {name: params[name] for name in ("both", "of_y")}
    outputs = self_flow(wild_x, inner, x_mask)[:, :3]
    np.testing.assert_allclose(outputs, self_flow(x[:, :3], inner, x_mask[:, :3]), atol=1e-6)


def test_no_word_attends_to_itself(texts):
    x, _, params = texts
    inner = {name: params[name] for name in ("both", "of_y")}
    mask = jnp.ones((B, T), bool)
    one = self_flow(x[:, :1], inner, mask[:, :1])  # a single word has no other to attend to
    np.testing.assert_array_equal(one[..., :D], x[:, :1])
    assert not one[..., D:].any()
    outputs = self_flow(x, inner, mask)[..., D : 2 * D]
    x, inner = np.asarray(x), jax.tree.map(np.asarray, inner)
    for b, t in np.ndindex(B, T):
        places = [n for n in range(T) if n != t]
        scores = np.array([float(inner["both"] @ (x[b, t] * x[b, n]) + inner["of_y"] @ x[b, n]) for n in places])
        shares = np.exp(scores - scores.max())
        np.testing.assert_allclose(outputs[b, t], (shares / shares.sum()) @ x[b][places], atol=1e-5)


def test_empty_texts_give_zeros_and_zero_gradients(texts):
    x, y, params = texts
    nothing = jnp.zeros((B, Q), bool)

    def total(x, y):
        return attention_flow(x, y, params, jnp.zeros((B, T), bool), nothing).sum()

    gradient = jax.jit(jax.grad(total, argnums=(0, 1)))(x, y)
    np.testing.assert_array_equal(gradient[0], jnp.ones_like(x))  # from the copy of x in the output
    assert not gradient[1].any()
    assert not jax.jit(masked_softmax)(jnp.zeros((B, T, Q)), jnp.zeros((B, T, Q), bool)).any()


def test_similarity_makes_no_array_of_pairs(texts):
    """An array of [T, Q, D] would be the largest by far."""
    params = init_similarity(jax.random.key(0), 64)
    x, y = jnp.zeros((1, 128, 64)), jnp.zeros((1, 32, 64))

    def run(x, y):
        return attention_flow(x, y, params, jnp.ones((1, 128), bool), jnp.ones((1, 32), bool))

    program = jax.make_jaxpr(jax.grad(lambda x, y: run(x, y).sum(), argnums=(0, 1)))(x, y)
    sizes = [v.aval.size for eqn in program.jaxpr.eqns for v in eqn.outvars]
    assert max(sizes) == 128 * 64 * 4  # the output
