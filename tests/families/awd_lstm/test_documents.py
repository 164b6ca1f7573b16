"""Long documents in training: pools of all parts, gradients, memory, and learning rates of layers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.awd_lstm.config import AwdLstmConfig
from bert_elmo_jax.families.awd_lstm.documents import classify_documents, pool_documents, read_document
from bert_elmo_jax.families.awd_lstm.model import AwdLstm, init_awd_lstm_params
from bert_elmo_jax.heads.pool_classifier import add_to_pool, classify_pooled, read_pool, start_pool
from bert_elmo_jax.optim import scale_by_depth
from bert_elmo_jax.text import WordVocabulary, train_wordpiece

CONFIG = AwdLstmConfig(vocab_size=20, embedding_size=6, cell_size=8, num_layers=2, classifier=(5, 3))
WORDS = np.random.default_rng(0).integers(0, 20, (3, 24)).astype(np.int32)
LENGTHS = np.array([24, 13, 3], np.int32)


@pytest.fixture(scope="module")
def params():
    init = jax.jit(lambda: init_awd_lstm_params(CONFIG, jax.random.key(0), classifier=True))
    return jax.tree.map(lambda x: 3 * np.asarray(x), init())


def pools_and_gradients(function, encoder):
    """Return the pools that a function makes, and the gradients of a weighted sum of them."""
    weight = np.random.default_rng(1).normal(size=(3, 18)).astype(np.float32)

    def total(encoder):
        pools = function(encoder)
        return (pools * weight).sum(), pools

    (_, pools), gradients = jax.jit(jax.value_and_grad(total, has_aux=True))(encoder)
    return pools, jax.device_get(gradients)


def in_parts(steps, last=0):
    return lambda encoder: pool_documents(CONFIG, encoder, WORDS.reshape(3, -1, steps), LENGTHS, last=last)


@pytest.fixture(scope="module")
def several(params):
    """Return pools and gradients of six parts."""
    return pools_and_gradients(in_parts(4), params["encoder"])


def test_pools_and_gradients_of_parts(params, several):
    """One part has the gradients of the whole; each of several parts has its own, but none through the state."""

    def pool_at_once(encoder):
        output = AwdLstm(CONFIG).apply({"params": encoder}, WORDS, LENGTHS)
        return read_pool(add_to_pool(start_pool(3, 6), output.last, LENGTHS))

    pools, expected = pools_and_gradients(pool_at_once, params["encoder"])
    pools_of_one, one = pools_and_gradients(in_parts(24), params["encoder"])
    for pools_of_parts in (pools_of_one, several[0]):
        np.testing.assert_allclose(pools_of_parts, pools, rtol=0, atol=1e-5)
    logits = classify_documents(CONFIG, params, WORDS, LENGTHS, 8)
    np.testing.assert_allclose(logits, classify_pooled(params["classifier"], pools), rtol=0, atol=1e-4)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4), one, expected)
    read = np.unique(np.concatenate([row[:length] for row, length in zip(WORDS, LENGTHS)]))
    assert several[1]["embeddings"]["word"][read].any(axis=-1).all()
    assert np.abs(several[1]["layer_0"]["state_kernel"] - expected["layer_0"]["state_kernel"]).max() > 1e-4


def memory_of_gradients(rows, parts, steps, **options):
    """Return the bytes that the gradients of documents need while they are computed."""
    config = AwdLstmConfig(vocab_size=20, embedding_size=32, cell_size=64, num_layers=2)
    encoder = jax.eval_shape(lambda: init_awd_lstm_params(config, jax.random.key(0)))["encoder"]
    words, lengths = (jax.ShapeDtypeStruct(shape, jnp.int32) for shape in ((rows, parts, steps), (rows,)))
    gradient = jax.grad(lambda e, w, n: pool_documents(config, e, w, n, **options).sum())
    return jax.jit(gradient).lower(encoder, words, lengths).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.long
def test_memory_does_not_grow_with_the_state_of_all_steps():
    """Twenty times as many parts need far less than twenty times the memory; with the last words alone only the ids."""
    assert memory_of_gradients(8, 40, 16) < 3 * memory_of_gradients(8, 2, 16)
    ids = 4 * 4 * 70  # bytes of a part
    assert memory_of_gradients(4, 1536, 70, last=4) - memory_of_gradients(4, 32, 70, last=4) < 4 * 1536 * ids


def test_poolings_are_parts_of_the_usual_one(params):
    usual = pool_documents(CONFIG, params["encoder"], WORDS.reshape(3, 3, 8), LENGTHS)
    config = dataclasses.replace(CONFIG, pooling="mean+last")
    pooled = pool_documents(config, params["encoder"], WORDS.reshape(3, 3, 8), LENGTHS)
    np.testing.assert_array_equal(pooled, np.concatenate([usual[:, 12:], usual[:, :6]], axis=1))
    fresh = init_awd_lstm_params(config, jax.random.key(0), classifier=True)
    assert fresh["classifier"]["layer_0"]["kernel"].shape == (12, 5)
    with pytest.raises(ValueError, match=r"pooling is 'min'; expected last, max, mean, or several with \+"):
        dataclasses.replace(CONFIG, pooling="min")


def test_dropout_of_documents(params):
    pool = jax.jit(lambda key: pool_documents(CONFIG, params["encoder"], WORDS.reshape(3, 3, 8), LENGTHS, key))
    plain, one, other = (np.asarray(pool(key)) for key in (None, jax.random.key(0), jax.random.key(1)))
    assert (plain != one).any() and (one != other).any()


def test_rates_of_layers_are_those_of_the_golden(chunks):
    config = AwdLstmConfig(vocab_size=9, embedding_size=3, cell_size=4, classifier=(5, 2))
    params = init_awd_lstm_params(config, jax.random.key(0), classifier=True)
    scale = scale_by_depth(1 / 2.6, get_family("awd_lstm").depth_of)
    ones = jax.tree.map(lambda x: 1e-3 * jnp.ones_like(x), params)
    rates, _ = scale.update(ones, optax.EmptyState())
    encoder = rates["encoder"]
    groups = [encoder["embeddings"], *(encoder[f"layer_{n}"] for n in range(3)), rates["classifier"]]
    for group, expected in zip(groups, chunks["discriminative_rates"], strict=True):
        for leaf in jax.tree.leaves(group):
            np.testing.assert_allclose(leaf, expected, rtol=1e-5)


@pytest.mark.parametrize("last", [1, 2, 9])
def test_gradients_of_the_last_words_alone(params, several, last):
    """The pools are the same; words before the last parts of each document have no gradient."""
    pools, gradients = pools_and_gradients(in_parts(4, last), params["encoder"])
    np.testing.assert_allclose(pools, several[0], rtol=0, atol=1e-5)
    used = -(-LENGTHS // 4)
    last_words = [row[max(0, (parts - last) * 4) : length] for row, length, parts in zip(WORDS, LENGTHS, used)]
    reached = gradients["embeddings"]["word"].any(axis=1)
    assert reached[np.unique(np.concatenate(last_words))].all()
    assert not reached[np.setdiff1d(np.arange(20), np.concatenate(last_words))].any()
    if last >= 6:
        np.testing.assert_array_equal(gradients["embeddings"]["word"], several[1]["embeddings"]["word"])


def test_a_text_as_ids():
    words = WordVocabulary(["<S>", "</S>", "<UNK>", "a", "boat", "."], rule="punctuation")
    forward = AwdLstmConfig(vocab_size=6)
    backward = AwdLstmConfig(vocab_size=6, direction="backward")
    assert read_document(forward, words, "a boat. Sea").tolist() == [0, 3, 4, 5, 2]
    assert read_document(backward, words, "a boat. Sea").tolist() == [1, 2, 5, 4, 3]
    assert read_document(forward, words, "\u200b").tolist() == [0, 2]  # no word
    by_spaces = WordVocabulary(["<S>", "</S>", "<UNK>", "a", "boat."], rule="whitespace")
    assert read_document(forward, by_spaces, "a boat. Sea").tolist() == [0, 3, 4, 2]
    pieces = train_wordpiece(["배를 타고"] * 9, vocab_size=30)
    ids = pieces.encode("배를 타고", specials=False).ids.tolist()
    assert read_document(backward, pieces, "배를 타고").tolist() == [pieces.sep_id, *ids[::-1]]
