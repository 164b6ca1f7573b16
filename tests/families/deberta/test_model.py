"""DeBERTa's distances and its convolution: look-ups, packed rows, loops over layers; wrong configurations."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.families.deberta.config import DebertaConfig
from bert_elmo_jax.families.deberta.family import FAMILY
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.nn.disentangled import distance_buckets, distance_vectors, position_terms, table_rows

CONFIG = DebertaConfig(
    40, 16, 2, 2, 24, 16, position_buckets=8, conv_kernel_size=5, conv_groups=2, initializer_range=0.5, dropout=0.0,
    attention_dropout=0.0, absolute_positions=True, embedding_size=8,
)  # fmt: skip


def test_buckets_are_the_original_ones(goldens):
    frozen = np.load(goldens / "deberta_v3_tiny" / "buckets.npz")
    for name in frozen.files:
        buckets, largest = map(int, name.split("_")[:2])
        distances = np.arange(len(frozen[name]))
        np.testing.assert_array_equal(distance_buckets(distances, buckets, largest), frozen[name])
        np.testing.assert_array_equal(distance_buckets(-distances, buckets, largest), -frozen[name])


def test_more_buckets_than_distances_are_those_of_transformers():
    """Its formula gives far pieces smaller buckets then, and from some distance on those of the other side."""
    config = dataclasses.replace(CONFIG, position_buckets=32, max_relative_positions=5)
    distances = np.array([1, 15, 16, 17, 18, 20, 32, 40, 64, 100, 200, 511])
    buckets = distance_buckets(distances, config.position_buckets, config.largest_distance)
    assert buckets.tolist() == [1, 15, 16, 16, 15, 14, 9, 7, 1, -3, -11, -21]


def looked_up(query, key, keys, queries, rows):
    """Return the terms as the paper writes them: a row of both tables for each pair of places."""
    terms = jnp.einsum("btah,tsah->bats", query, keys[rows]) if keys is not None else 0
    return terms + (jnp.einsum("bsah,tsah->bats", key, queries[rows]) if queries is not None else 0)


@pytest.mark.parametrize(("length", "buckets", "largest"), [(1, 4, 9), (5, 0, 3), (128, 6, 99)])
@pytest.mark.parametrize("terms", ["c2p|p2c", "c2p", "p2c"])
def test_terms_and_gradients_equal_look_ups(length, buckets, largest, terms):
    draw = np.random.default_rng(0).normal
    query, key = (jnp.asarray(draw(size=(2, length, 3, 4)), jnp.float32) for _ in range(2))
    tables = [jnp.asarray(draw(size=(2 * (buckets or largest), 12)), jnp.float32) for _ in range(2)]
    weights = draw(size=(2, 3, length, length)).astype(np.float32)
    places = np.arange(length)
    rows = table_rows((places[:, None] - places[None]).ravel(), buckets, largest).reshape(length, length)

    def ours(query, key, *tables):
        vectors = [distance_vectors(table, length, buckets, largest).reshape(-1, 3, 4) for table in tables]
        return position_terms(
            query, key, vectors[0] if "c2p" in terms else None, vectors[1] if "p2c" in terms else None
        )

    def theirs(query, key, *tables):
        keys, queries = (table.reshape(-1, 3, 4) for table in tables)
        return looked_up(query, key, keys if "c2p" in terms else None, queries if "p2c" in terms else None, rows)

    np.testing.assert_allclose(ours(query, key, *tables), theirs(query, key, *map(jnp.asarray, tables)), atol=1e-5)
    mine, other = (
        jax.grad(lambda *arrays, f=f: (f(*arrays) * weights).sum(), argnums=(0, 1, 2, 3))(query, key, *tables)
        for f in (ours, lambda query, key, *tables: theirs(query, key, *map(jnp.asarray, tables)))
    )
    for one, two in zip(mine, other, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5 * np.abs(two).max())


@pytest.fixture(scope="module")
def params():
    return jax.jit(lambda: init_params(FAMILY, CONFIG, jax.random.key(0), pooler=True))()["encoder"]


@pytest.fixture(scope="module")
def encode(params):
    module = FAMILY.build(CONFIG, pooler=True)
    return jax.jit(lambda *arrays, **options: module.apply({"params": params}, *arrays, **options, layers="all"))


def test_packed_texts_have_the_vectors_of_texts_alone(encode):
    """Distances count places, the convolution reads no neighbour of another text, and positions start again."""
    ids, sizes = np.random.default_rng(1).integers(1, 40, (1, 20)), (3, 9, 6)
    tokens = ids.astype(np.int32)
    positions = np.concatenate([*(np.arange(size) for size in sizes), [0, 0]])[None].astype(np.int32)
    segments = np.repeat([1, 2, 3, 0], [*sizes, 2])[None].astype(np.int32)
    firsts = np.array([[0, 3, 12]], np.int32)
    packed = encode(tokens, None, positions, segments, nsp_positions=firsts)
    for number, (first, size) in enumerate(zip(firsts[0], sizes)):
        single = encode(tokens[:, first : first + size])
        np.testing.assert_allclose(packed.layers[:, :, first : first + size], single.layers, atol=1e-5)
        np.testing.assert_allclose(packed.pooled[:, number], single.pooled, atol=1e-5)


def test_padding_by_segments_by_lengths_and_on_the_left_changes_nothing(encode):
    tokens = np.random.default_rng(1).integers(1, 40, (1, 7)).astype(np.int32)
    unpadded = encode(tokens).last
    behind, before = np.pad(tokens, ((0, 0), (0, 5))), np.pad(tokens, ((0, 0), (5, 0)))
    mask = (np.arange(12) < 7).astype(np.int32)[None]
    np.testing.assert_allclose(encode(behind, None, None, mask).last[:, :7], unpadded, atol=1e-5)
    np.testing.assert_allclose(encode(behind, lengths=np.array([7])).last[:, :7], unpadded, atol=1e-5)
    places = np.maximum(np.arange(12) - 5, 0).astype(np.int32)[None]
    np.testing.assert_allclose(encode(before, None, places, mask[:, ::-1]).last[:, 5:], unpadded, atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("fields", [{"scan": True}, {"remat": True}], ids=str)
def test_scan_and_remat_compute_the_same(fields):
    config = dataclasses.replace(CONFIG, num_layers=4)
    params = jax.jit(lambda: init_params(FAMILY, config, jax.random.key(0), pooler=False))()["encoder"]
    tokens = np.arange(1, 11, dtype=np.int32)[None]

    def gradient(config):
        module = FAMILY.build(config)
        return jax.jit(jax.value_and_grad(lambda p: (module.apply({"params": p}, tokens).last[..., :3] ** 2).sum()))

    both = (jax.tree.leaves(gradient(c)(params)) for c in (config, dataclasses.replace(config, **fields)))
    for ours, theirs in zip(*both, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)


def test_rows_of_any_length_without_absolute_positions():
    config = dataclasses.replace(CONFIG, absolute_positions=False)
    module = FAMILY.build(config)
    shape = jax.eval_shape(lambda: module.init_with_output(jax.random.key(0), jnp.ones((1, 40), jnp.int32))[0].last)
    assert shape.shape == (1, 40, 16)
    with pytest.raises(ValueError, match="rows of 40 tokens were given to a model with 16 positions"):
        FAMILY.build(CONFIG).init(jax.random.key(0), jnp.ones((1, 40), jnp.int32))


FIRST = {"model_type": "deberta", "share_att_key": False, "norm_relative": False}


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"relative_terms": "p2c|c2p"}, r"relative_terms is 'p2c\|c2p'; it is one of none, c2p, p2c, c2p\|p2c"),
        ({"position_buckets": -1}, "position_buckets is -1; it must be at least 0"),
        ({"position_buckets": 1}, "position_buckets is 1 for distances up to 512"),
        ({"position_buckets": 256, "max_relative_positions": 129}, "position_buckets is 256 for distances up to 129"),
        ({"position_buckets": 256, "max_relative_positions": 1}, "position_buckets is 256 for distances up to 1 "),
        ({"conv_kernel_size": 4}, "conv_kernel_size is 4; it is odd, or 0"),
        ({"conv_kernel_size": 3, "conv_groups": 5}, "conv_groups is 5; it must divide hidden_size 768"),
        ({"conv_activation": "tan"}, "tan"),
        ({"generator_depth": 0.0}, "generator_depth is 0.0; it is the generator's share"),
        ({"embedding_size": -3}, "embedding_size is -3; it must be at least 0"),
        ({"num_heads": 7}, "hidden_size 768 cannot be split evenly among num_heads 7"),
        ({"attention": "fused"}, "attention is 'fused', whose kernels do not train"),
        ({**FIRST}, "a DeBERTa of version 1 has no position_buckets=256: use model_type='deberta-v2'"),
        ({"model_type": "deberta-v3"}, "model_type is 'deberta-v3'; it is one of deberta-v2, deberta"),
    ],
)
def test_wrong_sizes(fields, message):
    with pytest.raises(ValueError, match=message):
        DebertaConfig(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"pos_att_type": "c2p|c2c"}, r"pos_att_type is 'c2p\|c2c'; only c2p and p2c are supported"),
        ({"pos_att_type": ["p2p"]}, r"pos_att_type is \['p2p'\]; only c2p and p2c are supported"),
        ({"pos_att_type": 3}, "pos_att_type is 3; only c2p and p2c are supported"),
        ({"relative_attention": False}, "relative_attention is False and pos_att_type 'p2c.c2p': pos_att_type names"),
        ({"norm_rel_ebd": "batch_norm"}, "norm_rel_ebd is 'batch_norm'; only 'layer_norm' and 'none' are supported"),
        ({"position_buckets": -5}, r"position_buckets is -5; .* \(position_buckets is its position_buckets\)"),
        ({"pooler_hidden_size": 48}, "pooler_hidden_size is 48; only hidden_size, 24, is supported"),
        ({"conv_kernel_size": 2}, "conv_kernel_size is 2; it is odd"),
        ({"share_att_key": "yes"}, "share_att_key is 'yes'; it must be true or false"),
        ({"model_type": "deberta", "talking_head": True}, "talking_head is True; only False is supported"),
    ],
)
def test_wrong_files(goldens, fields, message):
    content = json.loads((goldens / "deberta_v3_tiny" / "classifier" / "config.json").read_text()) | fields
    with pytest.raises(ValueError, match=message):
        DebertaConfig.from_json(content)


def test_fields_that_a_file_lacks_are_those_of_transformers():
    config = DebertaConfig.from_json({"model_type": "deberta-v2"})
    assert (config.hidden_size, config.num_layers, config.terms, config.absolute_positions) == (
        1536, 24, (), True,
    )  # fmt: skip
    assert DebertaConfig.from_json({"model_type": "deberta"}).vocab_size == 50_265
    for name in DebertaConfig.PRESETS:
        config = DebertaConfig.preset(name)
        assert DebertaConfig.from_json(config.to_huggingface()) == config
