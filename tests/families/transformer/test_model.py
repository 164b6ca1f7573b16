"""The mathematics of a Transformer: packing, masks, sizes of its own, dropout, and other ways to compute the same."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.init_params import init_params, param_shapes
from bert_elmo_jax.families.transformer.config import TransformerConfig
from bert_elmo_jax.families.transformer.embeddings import sinusoids
from bert_elmo_jax.families.transformer.model import batch_logits, run_pair
from bert_elmo_jax.nn.decoder_layer import source_of
from bert_elmo_jax.weights.parameter_tree import flatten, nest

pytestmark = pytest.mark.usefixtures("strict_dtypes")
FAMILY = get_family("transformer")
SMALL = TransformerConfig(40, 16, 1, 4, 24, 12, decoder_heads=2, decoder_feed_forward_size=20)
APART = dataclasses.replace(
    SMALL, key_size=2, value_size=6, positions="learned", share_embeddings=False, target_vocab_size=30,
    tie_output=False, scale_embeddings=False, activation="silu",
)  # fmt: skip


@functools.cache
def fresh(config):
    """Return random parameters of an encoder and a decoder."""
    shapes, rng = param_shapes(FAMILY, config, ("decoder",), pooler=False), np.random.default_rng(0)
    return nest({path: rng.normal(0, 0.4, shape).astype(np.float32) for path, shape in shapes.items()})


def run(config, *pair, params=None):
    """Return the scores of one pair."""
    source, target = ({"tokens": np.asarray(tokens)} for tokens in pair)
    compute = jax.jit(lambda params: run_pair(config, params, source, target).logits)
    return np.asarray(compute(fresh(SMALL) if params is None else params))


def random_pairs(lengths):
    """Return sources and targets of these lengths, as lists of ids."""
    rng = np.random.default_rng(0)
    return [tuple(rng.integers(4, 30, size).astype(np.int32) for size in pair) for pair in lengths]


def padded_batch(pairs, width, high):
    """Return a pair batch with one row per pair."""
    arrays = {f"source_{name}": np.zeros((len(pairs), width), np.int32) for name in ("tokens", "positions", "segments")}
    names = ("target_in", "target_out", "target_positions", "target_segments")
    arrays |= {name: np.zeros((len(pairs), high), np.int32) for name in names}
    for row, pair in enumerate(pairs):
        put(arrays, row, 0, 0, 1, pair)
    return arrays


def put(arrays, row, left, top, number, pair):
    source, target = pair
    across, down = slice(left, left + len(source)), slice(top, top + len(target) + 1)
    arrays["source_tokens"][row, across] = source
    arrays["source_positions"][row, across] = np.arange(len(source))
    arrays["source_segments"][row, across] = number
    arrays["target_in"][row, down] = [2, *target]
    arrays["target_out"][row, down] = [*target, 3]
    arrays["target_positions"][row, down] = np.arange(len(target) + 1)
    arrays["target_segments"][row, down] = number


@pytest.mark.parametrize("config", [SMALL, pytest.param(APART, marks=pytest.mark.long)], ids=["usual", "apart"])
def test_packed_equals_padded(config):
    pairs = random_pairs([(5, 3), (2, 4), (6, 1)])
    logits = jax.jit(functools.partial(batch_logits, config))
    apart = np.asarray(logits(fresh(config), padded_batch(pairs, 6, 5)))
    packed = {name: np.zeros((1, array.shape[1]), np.int32) for name, array in padded_batch([], 16, 13).items()}
    left, top = 0, 0
    for number, pair in enumerate(pairs, 1):
        put(packed, 0, left, top, number, pair)
        left, top = left + len(pair[0]), top + len(pair[1]) + 1
    together = np.asarray(logits(fresh(config), packed))
    assert np.isfinite(together).all()  # padding, too: its gradient is 0 · finite
    top = 0
    for row, (_, target) in enumerate(pairs):
        size = len(target) + 1
        np.testing.assert_allclose(together[0, top : top + size], apart[row, :size], rtol=1e-4, atol=1e-5)
        top += size


def test_padding_changes_nothing_and_has_no_gradient():
    [pair] = random_pairs([(5, 3)])
    narrow, wide = padded_batch([pair], 5, 4), padded_batch([pair], 8, 7)
    wide["source_tokens"][0, 5:] = 9  # masked pieces do not matter

    @jax.jit
    def gradients(batch):
        def loss(params):
            logs = jax.nn.log_softmax(batch_logits(SMALL, params, batch))
            chosen = jnp.take_along_axis(logs, batch["target_out"][..., None], -1)[..., 0]
            return -(chosen * (batch["target_segments"] > 0).astype(jnp.float32)).sum()

        return jax.value_and_grad(loss)(fresh(SMALL))

    (one, first), (other, second) = (jax.device_get(gradients(batch)) for batch in (narrow, wide))
    assert float(one) == pytest.approx(float(other), rel=1e-5)
    largest = max(np.abs(gradient).max() for gradient in jax.tree.leaves(first))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5 * largest), first, second)


def test_a_piece_sees_only_the_pieces_before_it():
    [(source, target)] = random_pairs([(5, 6)])
    changed = target.copy()
    changed[3] = 35
    tokens = np.stack([target, changed])
    before, after = run(SMALL, np.stack([source] * 2), tokens)
    np.testing.assert_array_equal(before[:3], after[:3])
    assert (np.abs(before - after)[3:].max(-1) > 1e-4).all()


def test_sizes_apart_from_the_width():
    shapes = param_shapes(FAMILY, APART, ("decoder",), pooler=False)
    assert shapes["encoder/layer_0/attention/query/kernel"] == (16, 8)
    assert shapes["encoder/layer_0/attention/value/kernel"] == (16, 24)
    assert shapes["encoder/layer_0/attention/output/kernel"] == (24, 16)
    assert shapes["decoder/layer_0/cross_attention/key/kernel"] == (16, 4)  # of 2 heads
    assert shapes["decoder/layer_0/feed_forward/up/kernel"] == (16, 20)
    assert shapes["decoder/embeddings/word"] == (30, 16) == shapes["decoder/output"]
    assert shapes["encoder/embeddings/position"] == (12, 16) == shapes["decoder/embeddings/position"]
    deep = dataclasses.replace(SMALL, num_layers=2, decoder_layers=1)
    shapes = param_shapes(FAMILY, deep, ("decoder",), pooler=False)
    assert "encoder/layer_1/feed_forward/up/bias" in shapes and "decoder/layer_1/feed_forward/up/bias" not in shapes
    assert [path for path, shape in shapes.items() if 40 in shape] == ["encoder/embeddings/word"]  # shared and tied


def test_fresh_parameters():
    config = dataclasses.replace(SMALL, vocab_size=4000, hidden_size=64, num_heads=4)
    usual, small = (
        flatten(jax.device_get(jax.jit(lambda c=c: init_params(FAMILY, c, jax.random.key(1), ("decoder",)))()))
        for c in (config, dataclasses.replace(config, initializer_range=0.01))
    )
    assert float(usual["encoder/embeddings/word"].std() * 8) == pytest.approx(0.88, abs=0.01)  # cut at 2 deviations
    kernel = usual["decoder/layer_0/cross_attention/query/kernel"]
    assert float(kernel.std()) == pytest.approx((2 / 128) ** 0.5, rel=0.05)
    assert float(np.abs(small["encoder/layer_0/attention/query/kernel"]).max()) <= 0.02


def test_the_padding_piece_learns_nothing_from_the_input():
    source, target = np.array([[5, 0, 7]], np.int32), np.array([[0, 8]], np.int32)  # it begins the target, as in Marian
    config = dataclasses.replace(SMALL, tie_output=False)

    def total(params):
        return (run_pair(config, params, {"tokens": source}, {"tokens": target}).logits ** 2).sum()

    gradient = np.asarray(jax.jit(jax.grad(total))(fresh(config))["encoder"]["embeddings"]["word"])
    assert not gradient[0].any() and np.abs(gradient[[5, 7, 8]]).max(-1).all()


@pytest.mark.parametrize("trained", [False, pytest.param(True, marks=pytest.mark.long)])
def test_the_loop_over_layers_may_be_a_scan_and_computed_again(trained):
    [(source, target)] = random_pairs([(5, 4)])
    key, deep = jax.random.key(2), dataclasses.replace(SMALL, num_layers=2)

    def compute(config):
        def total(params):
            inputs = {"tokens": source[None]}, {"tokens": target[None]}
            return (run_pair(config, params, *inputs, key).logits ** 2).mean()

        return jax.device_get(jax.jit(jax.value_and_grad(total) if trained else total)(fresh(deep)))

    usual, other = compute(deep), compute(dataclasses.replace(deep, scan=True, remat=True))
    largest = max(np.abs(leaf).max() for leaf in jax.tree.leaves(usual))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5 * largest), usual, other)


@pytest.mark.parametrize("rate", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_dropout_is_applied_on_both_sides(rate):
    [(source, target)] = random_pairs([(6, 5)])
    config = dataclasses.replace(SMALL, **{"dropout": 0.0, rate: 0.5})

    @jax.jit
    def run(key):
        inputs = {"tokens": source[None]}, {"tokens": target[None]}
        return run_pair(config, fresh(SMALL), *inputs, key, every=True)

    one, two, same = (jax.device_get(run(jax.random.key(key))) for key in (0, 1, 0))
    np.testing.assert_array_equal(one.logits, same.logits)
    for side in ("encoder_layers", "decoder_layers"):
        assert np.abs(getattr(one, side)[-1] - getattr(two, side)[-1]).max() > 0.01
    assert (rate == "dropout") == bool(np.abs(one.encoder_layers[0] - two.encoder_layers[0]).max() > 0)


def test_half_precision_is_close():
    [pair] = random_pairs([(5, 4)])
    one, other = (run(dataclasses.replace(SMALL, dtype=d), *(x[None] for x in pair)) for d in ("float32", "bfloat16"))
    assert other.dtype == np.float32 and np.abs(one - other).max() < 0.1 * np.abs(one).max()


def test_positions():
    table = sinusoids(3, 5)  # sines of three columns, cosines of two
    np.testing.assert_allclose(table[2, 0], np.sin(2), rtol=1e-6)
    np.testing.assert_allclose(table[2, 3], np.cos(2), rtol=1e-6)
    np.testing.assert_allclose(table[2, 4], np.cos(2 / 10_000 ** (2 / 5)), rtol=1e-6)
    with pytest.raises(ValueError, match="rows of 13 tokens were given to a model with 12 positions"):
        run_pair(SMALL, fresh(SMALL), {"tokens": np.ones((1, 13), np.int32)})


def test_masks_of_the_source():
    assert source_of(None, jnp.array([[1, 0]]), 2).tolist() == [[[True, False], [True, False]]]
    both = source_of(np.array([[1, 2]], np.int32), jnp.array([[1, 2, 0]]), 2)
    assert both.astype(int).tolist() == [[[1, 0, 0], [0, 1, 0]]]
