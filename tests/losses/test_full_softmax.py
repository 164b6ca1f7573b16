"""Tests of the chunked softmax: values, gradients and memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.losses import cross_entropy, full_softmax, perplexity
from bert_elmo_jax.losses.full_softmax import chunk_of_logits, log_normaliser

pytestmark = pytest.mark.usefixtures("strict_dtypes")

KEEP = pytest.mark.parametrize("keep", [0, 10_000])  # logits are computed again, or kept


def draw(words=53, positions=7, width=5, dtype=jnp.float32):
    keys = jax.random.split(jax.random.key(0), 5)
    hidden = (3 * jax.random.normal(keys[0], (positions, width))).astype(dtype)
    table, bias = jax.random.normal(keys[1], (words, width)), jax.random.normal(keys[2], (words,))
    targets = jax.random.randint(keys[3], (positions,), 0, words)
    return hidden, table, bias, targets, jax.random.randint(keys[4], (positions,), 0, 3).astype(jnp.float32)


def at_once(hidden, table, bias, targets, weights):
    logits = jnp.einsum("nd,vd->nv", hidden, table.astype(hidden.dtype), preferred_element_type=jnp.float32)
    return cross_entropy(logits + bias[None, :], targets, weights)


@pytest.mark.parametrize(("chunk", "keep"), [(1, 0), (10, 0), (52, 0), (54, 0), (10, 7 * 53 - 1), (10, 7 * 53)])
def test_chunks_match_the_whole(chunk, keep):
    hidden, table, bias, targets, weights = draw()
    ours = lambda *arrays: full_softmax(*arrays, targets, weights, chunk, keep)[0]  # noqa: E731
    whole = lambda *arrays: at_once(*arrays, targets, weights)[0]  # noqa: E731
    value, gradients = jax.jit(jax.value_and_grad(ours, argnums=(0, 1, 2)))(hidden, table, bias)
    expected, of_whole = jax.jit(jax.value_and_grad(whole, argnums=(0, 1, 2)))(hidden, table, bias)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for gradient, other in zip(gradients, of_whole):
        np.testing.assert_allclose(gradient, other, atol=2e-5)
    assert full_softmax(hidden, table, bias, targets, weights, chunk, keep)[1] == weights.sum()


@KEEP
def test_masked_positions_are_ignored(keep):
    hidden, table, bias, targets, weights = draw()
    weights = weights.at[:2].set(0)
    hostile = hidden.at[:2].set(jnp.nan), targets.at[:2].set(-100)

    def of(hidden, targets):
        function = lambda h, t, b: full_softmax(h, t, b, targets, weights, 10, keep)[0]  # noqa: E731
        return jax.jit(jax.value_and_grad(function, argnums=(0, 1, 2)))(hidden, table, bias)

    jax.tree.map(np.testing.assert_array_equal, of(*hostile), of(hidden, targets))
    nothing = jax.value_and_grad(lambda h: full_softmax(h, table, bias, targets, jnp.zeros(7), 10, keep)[0])(hidden)
    assert nothing[0] == 0 and not np.any(nothing[1])


def test_targets_outside_give_nan():
    hidden, table, bias, targets, weights = draw()
    assert np.isnan(full_softmax(hidden, table, bias, targets.at[0].set(53), weights.at[0].set(1))[0])


@KEEP
def test_words_with_a_bias_of_minus_infinity(keep):
    """A bias of -inf removes a word; a whole chunk may be removed."""
    hidden, table, bias, targets, weights = draw()
    bias = bias.at[:20].set(-jnp.inf).at[45:].set(-jnp.inf)
    targets = targets % 25 + 20
    value, gradient = jax.value_and_grad(lambda h: full_softmax(h, table, bias, targets, weights, 10, keep)[0])(hidden)
    np.testing.assert_allclose(value, at_once(hidden, table[20:45], bias[20:45], targets - 20, weights)[0], rtol=1e-5)
    assert np.isfinite(gradient).all()


@KEEP
def test_bf16_hidden_has_float32_logits_and_typed_gradients(keep):
    hidden, table, bias, targets, weights = draw(dtype=jnp.bfloat16)
    ours = jax.value_and_grad(lambda *a: full_softmax(*a, targets, weights, 10, keep)[0], argnums=(0, 1, 2))
    value, gradients = ours(hidden, table, bias)
    np.testing.assert_allclose(value, at_once(hidden, table, bias, targets, weights)[0], rtol=1e-5)
    assert [g.dtype for g in gradients] == [jnp.bfloat16, jnp.float32, jnp.float32]


@KEEP
@pytest.mark.devices
def test_jit_and_mesh(keep):
    mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    hidden, table, bias, targets, weights = draw(words=64, positions=16)
    of = lambda spec: jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))  # noqa: E731
    step = jax.jit(jax.value_and_grad(lambda *a: full_softmax(*a, targets, weights, 10, keep)[0], argnums=(0, 1)))
    alone = step(hidden, table, bias)
    spread = step(jax.device_put(hidden, of(["data"])), jax.device_put(table, of(["data"])), bias)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5, rtol=1e-5), alone, spread)


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
    for positions, kept in ((128, True), (512, False)):
        shapes = [(positions, 4), (words, 4), (words,)]
        arguments = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
        gradient = jax.jit(jax.grad(lambda *a: log_normaliser(*a, chunk).sum(), argnums=(0, 1, 2)))
        temporary = gradient.lower(*arguments).compile().memory_analysis().temp_size_in_bytes
        assert (temporary > 4 * positions * words / 2) == kept


def test_perplexity():
    assert perplexity(0, 3) == 1
    assert perplexity(jnp.log(jnp.float32(39.7)) * 8, jnp.float32(8)) == pytest.approx(39.7, rel=1e-5)
    assert perplexity(1e6, 1) == np.inf
    with pytest.raises(ValueError, match=r"at least one predicted word, but the weight is 0"):
        perplexity(0.0, 0.0)


def test_example_of_log_normaliser():
    assert (
        repr(log_normaliser(jnp.zeros((1, 2)), jnp.zeros((4, 2)), jnp.log(jnp.array([1.0, 2.0, 3.0, 4.0])), 3).round(4))
        == "Array([2.3026], dtype=float32)"
    )


def test_example_of_chunk_of_logits():
    logits, start = chunk_of_logits(jnp.ones((1, 1)), jnp.arange(5.0)[:, None], jnp.zeros(5), jnp.array(3), 3)
    assert repr((logits.tolist(), int(start))) == "([[-inf, 3.0, 4.0]], 2)"
