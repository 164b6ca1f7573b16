"""Properties of a BERT with any weights: packing, padding, causality, options, types, devices, messages."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from bert_elmo_jax.encoders.arguments import check_batch
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.family import FAMILY
from bert_elmo_jax.families.bert.model import Bert
from bert_elmo_jax.families.init_params import init_params, param_shapes
from bert_elmo_jax.nn.layers import layer_numbers

from ..logits import pretraining_logits

pytestmark = pytest.mark.usefixtures("strict_dtypes")

CONFIG = BertConfig(
    vocab_size=60, hidden_size=16, num_layers=2, num_heads=4, feed_forward_size=24, max_positions=12,
    initializer_range=0.3,
)  # fmt: skip
LONG = pytest.mark.long  # one of its kind is in every run of the tests
BOTH = {"scan": True, "remat": True}
OPTIONS = [pytest.param({"scan": True}, marks=LONG), pytest.param({"remat": True}, marks=LONG), BOTH]


def replace(**changes):
    return dataclasses.replace(CONFIG, **changes)


@functools.cache
def params():
    return jax.jit(lambda: init_params(FAMILY, CONFIG, jax.random.key(0), ("mlm", "nsp")))()


@functools.cache
def compiled(config, layers=None, attentions=False, deterministic=True):
    options = {"layers": layers, "attentions": attentions, "deterministic": deterministic}
    return jax.jit(functools.partial(Bert(config).apply, **options))


def encode(config, *batch, params=None, layers=None, attentions=False, deterministic=True, **arrays):
    tree = {"params": (params or globals()["params"]())["encoder"]}
    layers = tuple(layers) if isinstance(layers, list) else layers
    return compiled(config, layers, attentions, deterministic)(tree, *batch, **arrays)


def sequences(lengths, seed=0):
    random = np.random.default_rng(seed)
    return [random.integers(5, CONFIG.vocab_size - 1, n) for n in lengths]


def rows(texts, size):
    """Return tokens, types, positions and segments with one text per row."""
    tokens, segments = np.zeros((2, len(texts), size), np.int32)
    for i, text in enumerate(texts):
        tokens[i, : len(text)], segments[i, : len(text)] = text, 1
    types = (np.cumsum(tokens, axis=1) % 2).astype(np.int32)
    positions = np.broadcast_to(np.arange(size, dtype=np.int32), tokens.shape)
    return tokens, types, positions, segments


def packed(unpacked, plan, size):
    """Return the same texts, several per row by `plan`, and the start of each."""
    lengths = unpacked[3].sum(1)
    fields = [np.zeros((len(plan), size), np.int32) for _ in range(4)]
    starts = {}
    for row, texts in enumerate(plan):
        at = 0
        for number, text in enumerate(texts):
            n = lengths[text]
            for field, source in zip(fields[:3], unpacked[:3], strict=True):
                field[row, at : at + n] = source[text, :n]
            fields[3][row, at : at + n] = number + 1
            starts[text] = row, at
            at += n
    return fields, starts


@pytest.mark.parametrize("attention", ["reference", pytest.param("fused", marks=LONG)])
def test_packed_rows_equal_unpacked_ones_values_and_gradients(attention):
    config = replace(attention=attention, causal=attention == "fused", num_layers=1)
    unpacked = rows(sequences([7, 4, 5, 3]), 8)
    fields, starts = packed(unpacked, [[0, 2], [1, 3]], 13)
    weights = np.random.default_rng(1).normal(size=(4, 8, 16)).astype(np.float32)
    firsts = np.array([[0, 7], [0, 4]])

    def apart(params):
        out = Bert(config).apply({"params": params["encoder"]}, *unpacked)
        real = weights * unpacked[3][..., None].astype(np.float32)
        return (out.last * real).sum() + out.pooled.sum(), out.pooled[np.array([0, 2, 1, 3])]

    def together(params):
        out = Bert(config).apply({"params": params["encoder"]}, *fields, nsp_positions=firsts)
        total = out.pooled.sum()
        for text, (row, at) in starts.items():
            n = unpacked[3][text].sum()
            total += (out.last[row, at : at + n] * weights[text, :n]).sum()
        return total, out.pooled.reshape(4, 16)

    a, b = (jax.jit(jax.value_and_grad(f, has_aux=True))(params()) for f in (apart, together))
    np.testing.assert_allclose(a[0][0], b[0][0], rtol=1e-5)
    np.testing.assert_allclose(a[0][1], b[0][1], atol=1e-5)
    largest = max(np.abs(g).max() for g in jax.tree.leaves(a[1]))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-5 * largest), a[1], b[1])


@functools.cache
def values_and_gradients(**options):
    """Return all outputs and gradients of a training pass with dropout."""
    batch = rows(sequences([8, 5]), 8)

    def total(tree):
        out = Bert(replace(**options)).apply(
            {"params": tree["encoder"]}, *batch, layers="all", attentions=True, deterministic=False,
            rngs={"dropout": jax.random.key(1)},
        )  # fmt: skip
        return jnp.square(out.last).sum() + out.pooled.sum(), out

    return jax.jit(jax.value_and_grad(total, has_aux=True))(params())


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_scan_and_remat_change_nothing(options):
    """Equal only up to rounding: the compiler fuses a loop's body differently from the unrolled layers."""
    plain, other = values_and_gradients(), values_and_gradients(**options)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5), plain, other)
    assert jax.tree.structure(other[1]) == jax.tree.structure(params())
    (_, out), _ = plain  # dropout was on when they were compared
    assert not np.allclose(out.last, encode(CONFIG, *rows(sequences([8, 5]), 8)).last, atol=0.1)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_scan_and_remat_have_the_same_parameters(options):
    init = jax.jit(lambda: init_params(FAMILY, replace(**options), jax.random.key(0), ("mlm", "nsp")))
    jax.tree.map(np.testing.assert_array_equal, init(), params())


def test_padding_never_changes_a_real_position():
    """`tests/nn/test_attention.py` has the same of every attention."""
    tokens, types, positions, segments = rows(sequences([5, 3]), 8)
    other = np.where(segments == 0, 44, tokens), np.where(segments == 0, 1, types), positions, segments
    plain = encode(CONFIG, tokens, types, positions, segments, layers="all")
    noisy = encode(CONFIG, *other, layers="all")
    real = segments == 1
    np.testing.assert_array_equal(plain.layers[:, real], noisy.layers[:, real])
    np.testing.assert_array_equal(plain.pooled, noisy.pooled)
    shorter = encode(CONFIG, *(x[:, :5] for x in (tokens, types, positions, segments)), layers="all")
    np.testing.assert_allclose(plain.layers[:, :, :5][:, real[:, :5]], shorter.layers[:, real[:, :5]], atol=2e-6)
    by_lengths = encode(CONFIG, tokens, types, lengths=np.array([5, 3]))
    np.testing.assert_allclose(by_lengths.last[real], plain.last[real], atol=2e-6)
    bare = encode(CONFIG, tokens).last  # no mask is all real
    np.testing.assert_allclose(bare, encode(CONFIG, tokens, None, positions, np.ones_like(tokens)).last, atol=1e-6)


def test_causal_never_peeks():
    tokens = rows(sequences([8]), 8)[0]
    changed = tokens.copy()
    changed[:, 5:] += 1
    before, after = (encode(replace(causal=True), t, layers="all").layers for t in (tokens, changed))
    np.testing.assert_array_equal(before[:, :, :5], after[:, :, :5])
    assert np.abs(before[-1, :, 5:] - after[-1, :, 5:]).min() > 0
    peeking, plain = (encode(CONFIG, t, layers="all").layers for t in (changed, tokens))
    assert np.abs(peeking[1:, :, :5] - plain[1:, :, :5]).max() > 0.01


def test_a_row_of_padding_is_finite_and_changes_no_gradient():
    config, batch = replace(attention="fused", num_layers=1), rows([*sequences([8, 5]), []], 8)

    def total(tree, keep):
        out = encode(config, *(x[:keep] for x in batch), params=tree)
        real = out.last * batch[3][:keep, :, None].astype(np.float32)
        return jnp.square(real).sum() + out.pooled[:2].sum(), out.last

    compute = jax.jit(jax.grad(total, has_aux=True), static_argnums=1)
    (with_padding, last), (without, _) = (compute(params(), keep) for keep in (3, 2))
    assert np.isfinite(last).all()
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4, rtol=1e-5), with_padding, without)


def test_layers_by_number_and_maps():
    tokens = rows(sequences([8]), 8)[0]
    every = encode(CONFIG, tokens, layers="all", attentions=True)
    assert every.layers.shape == (3, 1, 8, 16) and every.attentions.shape == (2, 1, 4, 8, 8)
    np.testing.assert_array_equal(every.layers[-1], every.last)
    for config in (CONFIG, replace(scan=True)):
        output = encode(config, tokens, layers=[-1, 0, 1], attentions=True)
        np.testing.assert_allclose(output.layers, every.layers[np.array([2, 0, 1])], atol=1e-6)
        np.testing.assert_allclose(output.attentions, every.attentions, atol=1e-6)
    nothing = encode(CONFIG, tokens)
    assert nothing.layers is None and nothing.attentions is None
    with pytest.raises(ValueError, match=r"no layer 3: .*0 \(the embeddings\) to 2"):
        encode(CONFIG, tokens, layers=[3])
    with pytest.raises(ValueError, match="'last' was given; it is 'all' or a list"):
        layer_numbers("last", 2)
    without = {k: v for k, v in params()["encoder"].items() if k != "pooler"}
    assert jax.eval_shape(Bert(CONFIG, add_pooler=False).apply, {"params": without}, tokens).pooled is None
    assert not any("pooler" in path for path in param_shapes(FAMILY, CONFIG, pooler=False))


def test_bf16_is_close_to_float32_and_keeps_parameters_and_logits_in_float32():
    tree = jax.tree.map(lambda x: x / 3, params())
    assert {x.dtype for x in jax.tree.leaves(tree)} == {jnp.dtype("float32")}
    tokens = rows(sequences([8, 8]), 8)[0]
    places = {"mlm_positions": np.array([[1, 2]] * 2), "nsp_positions": np.zeros((2, 1), int)}
    rough, exact = (
        jax.jit(functools.partial(pretraining_logits, replace(dtype=d)))(tree, tokens, **places)
        for d in ("bfloat16", "float32")
    )
    assert rough.mlm.dtype == rough.nsp.dtype == jnp.float32
    module = Bert(replace(dtype="bfloat16"))
    assert jax.eval_shape(module.apply, {"params": tree["encoder"]}, tokens).last.dtype == jnp.bfloat16
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=0.03 * np.abs(b).max()), rough, exact)


def test_dropout_follows_the_key_and_differs_from_layer_to_layer():
    config = replace(dropout=0.4, attention_dropout=0.4)
    tokens = np.full((4, 8), 9)

    def run(key):
        random = {"dropout": jax.random.key(key)}
        return np.asarray(encode(config, tokens, layers="all", deterministic=False, rngs=random).layers)

    one, other = run(0), run(1)
    np.testing.assert_array_equal(one, run(0))
    assert (one[0] != other[0]).any()
    assert 0.3 < (one[0] == 0).mean() < 0.5
    assert (one[0][0] != one[0][1]).any()  # two rows of the same tokens
    with pytest.raises(Exception, match="dropout"):
        encode(config, tokens, layers="all", deterministic=False)


def test_each_layer_draws_its_own_dropout(monkeypatch):
    drawn = []

    def spy(x, rate, key):
        drawn.extend([] if key is None else [tuple(np.asarray(jax.random.key_data(key)))])
        return x

    for module in ("families.bert.model", "nn.transformer"):
        monkeypatch.setattr(f"bert_elmo_jax.{module}.dropout", spy)
    tree, random = {"params": params()["encoder"]}, {"dropout": jax.random.key(0)}
    Bert(CONFIG).apply(tree, np.ones((1, 3), int), deterministic=False, rngs=random)
    assert len(drawn) == len(set(drawn)) == 1 + 2 * CONFIG.num_layers


@pytest.mark.parametrize("options", [pytest.param({}, marks=LONG), BOTH], ids=str)
@pytest.mark.devices
def test_eight_devices_equal_one(options):
    """Rows are split over four devices, matrices over two: with dropout, values and gradients equal one device's."""
    config = replace(**options)
    mesh = jax.make_mesh((4, 2), ("data", "tensor"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    batch = rows(sequences([8, 5, 8, 2, 6, 7, 4, 8]), 8)
    places = (np.tile(np.array([[1, 0]]), (8, 1)), np.zeros((8, 1), int))

    def total(tree, tokens, types, positions, segments, mlm_positions, nsp_positions):
        logits = pretraining_logits(
            config, tree, tokens, types, positions, segments,
            mlm_positions=mlm_positions, nsp_positions=nsp_positions, key=jax.random.key(2),
        )  # fmt: skip
        return jnp.square(logits.mlm).sum() + jnp.square(logits.nsp).sum()

    def spec(leaf):
        divisible = leaf.ndim == 2 and leaf.shape[1] % 2 == 0
        return NamedSharding(mesh, PartitionSpec(None, "tensor") if divisible else PartitionSpec())

    step = jax.jit(jax.value_and_grad(total))
    single_device = step(params(), *batch, *places)
    split = jax.device_put(params(), jax.tree.map(spec, params()))
    sharded = jax.device_put((*batch, *places), NamedSharding(mesh, PartitionSpec("data")))
    together = step(split, *sharded)
    np.testing.assert_allclose(single_device[0], together[0], rtol=1e-5)
    largest = max(np.abs(g).max() for g in jax.tree.leaves(single_device[1]))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5 * largest), single_device[1], together[1])


def test_positions_and_ids_outside_their_tables_never_pass_silently():
    vectors = encode(CONFIG, np.full((1, 8), 60)).last
    assert np.isnan(vectors).all()
    places = np.array([[0, 1, 12, 3, 4, 5, 6, 7]])
    assert np.isnan(encode(CONFIG, np.ones((1, 8), int), None, places).last[0, 2]).all()
    with pytest.raises(ValueError, match=r"13 tokens.*12 positions"):
        encode(CONFIG, np.ones((1, 13), int))
    with pytest.raises(ValueError, match=r"rows of 513 tokens.*512 positions"):
        check_batch(BertConfig(), np.ones((1, 513), int))
    # packed rows may be longer than any sequence in them
    row = np.ones((1, 16), int), None, np.arange(16)[None] % 8, np.arange(16)[None] // 8 + 1
    assert jax.eval_shape(Bert(CONFIG).apply, {"params": params()["encoder"]}, *row).last.shape == (1, 16, 16)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tokens": [[1, 2], [3, 60]]}, r"token id 60 at row 1, column 1 .*vocabulary.*0 to 59 \(vocab_size 60\)"),
        ({"tokens": [[1, -1]]}, "token id -1 at row 0, column 1"),
        ({"tokens": [[1, 2]], "types": [[0, 2]]}, r"type 2 at row 0, column 1 .*0 to 1 \(type_vocab_size 2\)"),
        ({"tokens": [[1, 2]], "positions": [[0, 12]]}, r"position 12 .*0 to 11 \(max_positions 12\)"),
        ({"tokens": [[1, 2]], "types": [[0]]}, r"tokens have the shape \(1, 2\) but its types \(1, 1\)"),
    ],
)
def test_check_batch_says_what_and_where(fields, message):
    with pytest.raises(ValueError, match=message):
        check_batch(CONFIG, **{k: np.array(v) for k, v in fields.items()})
    check_batch(CONFIG, *rows(sequences([8, 5]), 8)[:3])


def test_initialisation_follows_the_release():
    config = BertConfig.preset("tiny", vocab_size=500)
    tree = jax.device_get(jax.jit(lambda: init_params(FAMILY, config, jax.random.key(0), ("mlm", "nsp")))())
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        name = path[-1].key
        if name == "scale":
            assert (leaf == 1).all()
        elif name == "bias":
            assert (leaf == 0).all()
        else:
            assert np.abs(leaf).max() <= 0.04
            assert abs(float(leaf.mean())) < 6 * 0.0176 / np.sqrt(leaf.size)
            assert float(leaf.std()) == pytest.approx(0.02 * 0.8796, rel=max(0.02, 4 / np.sqrt(leaf.size)))
    kernels = [tree["encoder"][f"layer_{i}"]["attention"]["query"]["kernel"] for i in range(2)]
    assert kernels[0][0, 0] != kernels[1][0, 0]
