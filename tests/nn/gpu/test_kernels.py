"""Each kernel, computed operation by operation, against plain JAX: values, gradients, odd sizes."""

import functools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from scipy.special import ndtr

from bert_elmo_jax.gpu_switches import SWITCHES, uses, using
from bert_elmo_jax.losses import accuracy, cross_entropy
from bert_elmo_jax.nn.activations import gelu, gelu_new
from bert_elmo_jax.nn.dropout import dropout
from bert_elmo_jax.nn.gpu.drop_add_norm import Rules, drop_add_norm
from bert_elmo_jax.nn.gpu.gelu import bias_gelu
from bert_elmo_jax.nn.gpu.heads import split_heads
from bert_elmo_jax.nn.gpu.row_losses import cross_entropy_and_accuracy
from bert_elmo_jax.nn.layers import RMSNorm, layer_norm
from bert_elmo_jax.optim.global_norm import global_norm

KEY = jax.random.key(7)
EPS = 1e-12
LONG = pytest.mark.long


@pytest.fixture(autouse=True)
def computed_by_xla():
    with using(*SWITCHES, interpret=True):
        yield


def draw(*shapes):
    """Return random arrays of these shapes."""
    random = np.random.default_rng(7)
    return [random.normal(size=shape).astype(np.float32) for shape in shapes]


def widen(tree):
    return jax.tree.map(lambda leaf: np.asarray(leaf).astype(np.float32), tree)


# Without excess precision, the result of each operation in bfloat16 is rounded, as on a GPU.
@functools.partial(jax.jit, static_argnums=0, compiler_options={"xla_allow_excess_precision": False})
def with_gradients(function, gradients, inputs):
    """Return a flat list of outputs and gradients."""
    outputs, back = jax.vjp(function, *inputs)
    return jax.tree.leaves((outputs, back(gradients)))


def distances(results, exact):
    """Return the distance of each result from the exact one, relative to its size."""
    pairs = zip(widen(results), widen(exact), strict=True)
    return [float(np.linalg.norm((a - b).ravel()) / np.linalg.norm(b.ravel())) for a, b in pairs]


def check(kernel, plain, gradients, inputs):
    """Compare in float32, and in bfloat16 with float32: no worse than plain JAX."""
    exact = with_gradients(plain, gradients, inputs)
    assert max(distances(with_gradients(kernel, gradients, inputs), exact)) < 1e-6
    gradients, inputs = (
        jax.tree.map(lambda leaf: leaf.astype(ml_dtypes.bfloat16) if leaf.ndim > 1 else leaf, tree)
        for tree in (gradients, inputs)
    )
    exact = with_gradients(plain, widen(gradients), widen(inputs))
    ours = with_gradients(kernel, gradients, inputs)
    todays = with_gradients(plain, gradients, inputs)
    assert [leaf.dtype for leaf in ours] == [leaf.dtype for leaf in todays]
    for far, before in zip(distances(ours, exact), distances(todays, exact), strict=True):
        assert far <= 1.02 * before + 1e-6


@pytest.mark.parametrize(
    ("shape", "rate", "returns_sum", "centred"),
    [
        ((3, 7, 96), 0.1, False, True),
        ((3, 7, 96), 0.1, True, False),
        pytest.param((2, 16, 256), 0.0, False, True, marks=LONG),
        pytest.param((2, 5, 300), 0.1, True, True, marks=LONG),
        pytest.param((2, 16, 256), 0.0, True, False, marks=LONG),
    ],
)
def test_drop_add_norm(shape, rate, returns_sum, centred):
    x, y, g, h, *vectors = draw(*[shape] * 4, *[shape[-1:]] * 3)

    def plain(x, y, bias, scale, offset):
        total = x + dropout(y + jnp.broadcast_to(bias.astype(y.dtype), y.shape), rate, KEY)
        if centred:
            out = layer_norm(total, scale, offset, EPS)
        else:
            out = RMSNorm(EPS).apply({"params": {"scale": scale}}, total)
            out = out + jnp.broadcast_to(offset.astype(out.dtype), out.shape)
        return total if returns_sum else out, out

    rules = Rules(rate, EPS, returns_sum, centred)
    check(lambda *inputs: drop_add_norm(*inputs, KEY, rules), plain, (g, h), (x, y, *vectors))


def test_drop_add_norm_without_a_key_drops_nothing():
    x, y, *vectors = map(jnp.asarray, draw((4, 8), (4, 8), (8,), (8,), (8,)))
    dropped, expected = (drop_add_norm(x, y, *vectors, None, Rules(rate, EPS))[0] for rate in (0.1, 0.0))
    assert (dropped == expected).all()


@pytest.mark.parametrize(
    ("shape", "by_tanh"), [((3, 7, 1300), False), ((3, 7, 1300), True), pytest.param((2, 8, 1024), False, marks=LONG)]
)
def test_bias_gelu(shape, by_tanh):
    y, g, bias = draw(shape, shape, shape[-1:])
    function = gelu_new if by_tanh else gelu
    plain = lambda y, bias: function(y + jnp.broadcast_to(bias.astype(y.dtype), y.shape))  # noqa: E731
    check(lambda y, bias: bias_gelu(y, bias, by_tanh), plain, g, (y, bias))


def exact_gelu(wide):
    """Return w · Φ(w) and its slope, in float64."""
    return wide * ndtr(wide), ndtr(wide) + wide * np.exp(-0.5 * wide**2) / np.sqrt(2 * np.pi)


def exact_gelu_new(wide):
    inner, inner_slope = (
        np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3),
        np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * wide**2),
    )
    slope = 0.5 * (1 + np.tanh(inner)) + 0.5 * wide * inner_slope / np.cosh(np.clip(inner, -300, 300)) ** 2
    return 0.5 * wide * (1 + np.tanh(inner)), slope


@pytest.mark.parametrize(
    ("by_tanh", "function", "exactly"), [(False, gelu, exact_gelu), (True, gelu_new, exact_gelu_new)]
)
def test_gelu_of_every_bfloat16(by_tanh, function, exactly):
    every = np.arange(2**16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    every = every[np.isfinite(every.astype(np.float32))]
    x = jnp.asarray(np.resize(every, (64, 1024)))
    ones = jnp.ones(x.shape, x.dtype)
    out, slope = with_gradients(lambda y: bias_gelu(y, jnp.zeros(1024), by_tanh), ones, [x])
    todays, todays_slope = with_gradients(function, ones, [x])
    wide = np.asarray(x).astype(np.float64)
    near = np.abs(wide) < 100  # beyond, rounding is all of the difference
    exact = exactly(np.where(near, wide, np.where(wide > 0, 100.0, -100.0)))
    exact = [
        np.where(near, values, beyond) for values, beyond in zip(exact, (np.maximum(wide, 0), wide > 0), strict=True)
    ]
    for ours, before, right, worse in ((out, todays, exact[0], 1.0), (slope, todays_slope, exact[1], 1.01)):
        ours, before = (np.asarray(values).astype(np.float64) for values in (ours, before))
        assert np.isfinite(ours).all()
        assert np.abs(ours - right)[near].max() <= worse * np.abs(before - right)[near].max()
        assert np.abs(ours - right)[~near].max() <= np.nanmax(np.abs(before - right)[~near])
    if not by_tanh:  # where the polynomial ends
        assert np.abs(np.asarray(out).astype(np.float64) - exact[0])[wide < -5.5].max() < 1e-7


@pytest.mark.parametrize("lengths", [pytest.param(None, marks=LONG), (7, 0, 3)])
def test_split_heads(lengths):
    together, bias, *gradients = draw((21, 36), (36,), *[(21, 12)] * 3)
    real = None if lengths is None else (jnp.arange(7)[None] < jnp.array(lengths)[:, None]).astype(jnp.int32).ravel()

    def plain(together, bias):
        parts = jnp.split(together + jnp.broadcast_to(bias.astype(together.dtype), together.shape), 3, axis=1)
        inside = jnp.ones(21, bool) if real is None else real > 0
        hidden = [jax.lax.stop_gradient(part) for part in parts]
        return tuple(jnp.where(inside[:, None], part, other) for part, other in zip(parts, hidden))

    check(lambda *inputs: split_heads(*inputs, real), plain, tuple(gradients), (together, bias))


def test_undefined_gradients_of_padding_are_not_used():
    together, bias, gradient = draw((4, 6), (6,), (4, 2))
    real, gradient[2] = jnp.array([1, 1, 0, 1]), np.nan
    function = lambda *inputs: split_heads(*inputs, real)  # noqa: E731
    *_, to_together, to_bias = with_gradients(function, (gradient,) * 3, (together, bias))
    assert (to_together[2] == 0).all() and jnp.isfinite(to_together).all() and jnp.isfinite(to_bias).all()


@pytest.mark.parametrize(("size", "added"), [(5, 0), (9001, 0), (9001, 23)])
def test_losses_of_rows(size, added):
    [logits] = draw((2, 6, size))
    logits *= 4
    logits[0, 0, :2] = 50.0  # a tie: the first wins
    targets = np.array([[0, size - 1, -100, 2, 3, 1], [4, 0, 1, 2, 3, 4]])
    targets[1, 0] = logits[1, 0].argmax()
    targets, weights = jnp.asarray(targets), jnp.array([[1.0, 0.5, 0.0, 1.0, 1.0, 1.0], [1.0] * 6])

    @jax.jit
    def both(logits):
        # The values in added columns have no effect.
        widen = lambda logits: jnp.pad(logits, ((0, 0), (0, 0), (0, added)), constant_values=99.0)  # noqa: E731
        ours = lambda logits: cross_entropy_and_accuracy(widen(logits), targets, weights, size)  # noqa: E731
        plain = lambda logits: cross_entropy(logits, targets, weights)  # noqa: E731
        values = ours(logits), plain(logits), accuracy(logits, targets, weights)
        return values, [jax.grad(lambda x, f=f: jax.tree.leaves(f(x))[0])(logits) for f in (ours, plain)]

    (((loss, weight), (right, again)), expected, hits), slopes = both(logits)
    assert float(loss) == pytest.approx(float(expected[0]), rel=1e-6)
    assert (weight, right, again) == (expected[1], *hits)
    np.testing.assert_allclose(*slopes, atol=1e-6)


def test_a_target_outside_the_vocabulary_makes_the_loss_nan():
    (loss, _), _ = cross_entropy_and_accuracy(jnp.zeros((1, 3)), jnp.array([3]), jnp.ones(1))
    assert jnp.isnan(loss)


def test_global_norm_from_joined_sums():
    tree = dict(zip("abcd", draw((3, 4), (5,), (2, 3, 4), (1, 1))))
    with using():
        expected = float(global_norm(tree))
    assert float(global_norm(tree)) == pytest.approx(expected, rel=1e-6)


def test_switches():
    assert uses("gelu")
    with using("qkv"):
        assert not uses("qkv"), "a CPU has no kernels"
    with pytest.raises(ValueError, match="did you mean gelu"), using("gelus"):
        pass
