"""Tests of the chunked softmax: values, gradients and memory."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.losses import cross_entropy, full_softmax, perplexity
from bert_elmo_jax.losses.full_softmax import chunk_of_logits, log_normaliser

pytestmark = pytest.mark.usefixtures("strict_dtypes")

KEEP = pytest.mark.parametrize("keep", [0, 10_000])  # logits are computed again, or kept


def draw(words=53, positions=7, width=5, dtype=np.float32):
    rng = np.random.default_rng(0)
    hidden = (3 * rng.normal(size=(positions, width))).astype(dtype)
    table, bias = rng.normal(size=(words, width)).astype(np.float32), rng.normal(size=words).astype(np.float32)
    targets = rng.integers(0, words, positions, np.int32)
    return hidden, table, bias, targets, rng.integers(0, 3, positions).astype(np.float32)


@functools.partial(jax.jit, static_argnames=("chunk", "keep"))
def loss_and_gradients(hidden, table, bias, targets, weights, chunk, keep):
    def loss(hidden, table, bias):
        return full_softmax(hidden, table, bias, targets, weights, chunk, keep)

    return jax.value_and_grad(loss, argnums=(0, 1, 2), has_aux=True)(hidden, table, bias)


@jax.jit
def at_once(hidden, table, bias, targets, weights):
    def loss(hidden, table, bias):
        logits = jnp.einsum("nd,vd->nv", hidden, table.astype(hidden.dtype), preferred_element_type=jnp.float32)
        return cross_entropy(logits + bias[None, :], targets, weights)

    return jax.value_and_grad(loss, argnums=(0, 1, 2), has_aux=True)(hidden, table, bias)


@pytest.mark.parametrize(("chunk", "keep"), [(1, 0), (10, 0), (52, 0), (54, 0), (10, 7 * 53 - 1), (10, 10_000)])
def test_chunks_match_the_whole(chunk, keep):
    (value, weight), gradients = loss_and_gradients(*draw(), chunk=chunk, keep=keep)
    (expected, expected_weight), expected_gradients = at_once(*draw())
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for gradient, other in zip(gradients, expected_gradients):
        np.testing.assert_allclose(gradient, other, atol=2e-5)
    assert weight == expected_weight == draw()[-1].sum()


@KEEP
def test_masked_positions_are_ignored_and_targets_outside_give_nan(keep):
    hidden, table, bias, targets, weights = draw()
    weights[:2], weights[2] = 0, 1
    hostile, hostile_targets = hidden.copy(), targets.copy()
    hostile[:2], hostile_targets[:2] = np.nan, -100
    of = functools.partial(loss_and_gradients, chunk=10, keep=keep)
    outputs = of(hostile, table, bias, hostile_targets, weights)
    jax.tree.map(np.testing.assert_array_equal, outputs, of(hidden, table, bias, targets, weights))
    (nothing, _), gradients = of(hidden, table, bias, targets, 0 * weights)
    assert nothing == 0 and not np.any(gradients[0])
    targets[2] = 53
    assert np.isnan(of(hidden, table, bias, targets, weights)[0][0])


@KEEP
def test_words_with_a_bias_of_minus_infinity(keep):
    """A bias of -inf removes a word; a whole chunk may be removed."""
    hidden, table, bias, targets, weights = draw()
    bias[:20], bias[45:] = -np.inf, -np.inf
    targets = targets % 25 + 20
    (value, _), gradients = loss_and_gradients(hidden, table, bias, targets, weights, 10, keep)
    (expected, _), _ = at_once(hidden, table[20:45], bias[20:45], targets - 20, weights)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    assert np.isfinite(gradients[0]).all()


@KEEP
def test_bf16_hidden_has_float32_logits_and_typed_gradients(keep):
    (value, _), gradients = loss_and_gradients(*draw(dtype=jnp.bfloat16), chunk=10, keep=keep)
    np.testing.assert_allclose(value, at_once(*draw(dtype=jnp.bfloat16))[0][0], rtol=1e-5)
    assert [g.dtype for g in gradients] == [jnp.bfloat16, jnp.float32, jnp.float32]


@KEEP
@pytest.mark.devices
def test_jit_and_mesh(keep):
    mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    hidden, table, bias, targets, weights = map(jnp.asarray, draw(words=64, positions=16))
    of = lambda spec: jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))  # noqa: E731
    step = jax.jit(jax.value_and_grad(lambda *a: full_softmax(*a, targets, weights, 10, keep)[0], argnums=(0, 1)))
    one_device = step(hidden, table, bias)
    spread = step(jax.device_put(hidden, of(["data"])), jax.device_put(table, of(["data"])), bias)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5, rtol=1e-5), one_device, spread)


def test_memory_is_bounded_by_a_chunk():
    """With 100,000 words, the logits of 512 positions would take 205 MB."""
    words, positions, width, chunk = 100_000, 512, 8, 2048
    shapes = [(positions, width), (words, width), (words,), (positions,), (positions,)]
    arguments = [jax.ShapeDtypeStruct(s, jnp.int32 if i == 3 else jnp.float32) for i, s in enumerate(shapes)]
    gradient = jax.jit(jax.grad(lambda *a: full_softmax(*a, chunk=chunk, keep=0)[0], argnums=(0, 1, 2)))
    temporary = gradient.lower(*arguments).compile().memory_analysis().temp_size_in_bytes
    assert temporary < 8 * positions * chunk * 4 < positions * words * 4 / 4


def test_more_logits_than_are_kept_take_the_memory_of_a_chunk():
    """By default, too: 600 MB of logits are kept, 1.6 GB are not."""
    words, chunk = 800_000, 2048
    for positions, keeps_logits in ((128, True), (512, False)):
        shapes = [(positions, 4), (words, 4), (words,)]
        arguments = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
        gradient = jax.jit(jax.grad(lambda *a: log_normaliser(*a, chunk).sum(), argnums=(0, 1, 2)))
        temporary = gradient.lower(*arguments).compile().memory_analysis().temp_size_in_bytes
        assert (temporary > 4 * positions * words / 2) == keeps_logits


def test_perplexity():
    assert perplexity(0, 3) == 1
    assert perplexity(np.float32(np.log(39.7) * 8), np.float32(8)) == pytest.approx(39.7, rel=1e-5)
    assert perplexity(1e6, 1) == np.inf
    with pytest.raises(ValueError, match=r"at least one predicted word, but the weight is 0"):
        perplexity(0.0, 0.0)


def test_chunks_by_hand():
    zeros = jnp.asarray(np.zeros((4, 2), np.float32))
    normaliser = log_normaliser(zeros[:1], zeros, jnp.asarray(np.log(np.float32([1, 2, 3, 4]))), 3)
    np.testing.assert_allclose(normaliser, [np.log(10)], rtol=1e-6)
    one, table, bias = (jnp.asarray(np.float32(values)) for values in ([[1]], [[0], [1], [2], [3], [4]], [0] * 5))
    logits, start = chunk_of_logits(one, table, bias, jnp.int32(3), 3)
    assert (logits.tolist(), int(start)) == ([[-np.inf, 3.0, 4.0]], 2)
