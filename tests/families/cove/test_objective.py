"""The loss of translation: pieces that count and pieces that do not, frozen word vectors, vectors from a file."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from bert_elmo_jax.data.corpora.toy_corpus import toy_pairs
from bert_elmo_jax.families.cove.config import CoveConfig
from bert_elmo_jax.families.cove.decoder import cove_decoder, init_cove_params
from bert_elmo_jax.families.cove.encoder import CoveEncoder
from bert_elmo_jax.families.cove.family import FAMILY
from bert_elmo_jax.families.cove.model import look_up_vectors
from bert_elmo_jax.families.cove.objective import read_table, score_targets
from bert_elmo_jax.families.pair_objective import held_out_pair_loss
from bert_elmo_jax.text import WordVocabulary

CONFIG = CoveConfig(5, 4, 2, vocab_size=20, decoder_layers=2, target_size=3, dropout=0.3)


@pytest.fixture(scope="module")
def params():
    return jax.device_get(jax.jit(lambda: init_cove_params(CONFIG, jax.random.key(3), decoder=True))())


def make_batch(pairs, width=7):
    """Return a batch as `data.rows.translation` makes it of words: only targets have marks, 0 and 1."""
    batch = {name: np.zeros((len(pairs), width), np.int32) for name in ("source_segments", "target_segments")}
    batch |= {name: np.full((len(pairs), width), 1, np.int32) for name in ("source_tokens", "target_in", "target_out")}
    for row, (source, target) in enumerate(pairs):
        if source:
            batch["source_tokens"][row, : len(source)] = source
            batch["source_segments"][row, : len(source)] = 1
            batch["target_in"][row, : len(target) + 1] = [0, *target]
            batch["target_out"][row, : len(target)] = target
            batch["target_segments"][row, : len(target) + 1] = 1
    return batch


PAIRS = [([4, 5, 6], [7, 8]), ([9], [10, 11, 12, 13]), ([3, 14, 15, 16, 17], [18])]


def pair_loss(config):
    return held_out_pair_loss(functools.partial(score_targets, config), 1)


@functools.partial(jax.jit, static_argnames="config")
def measure(params, batch, key=None, config=CONFIG):
    return pair_loss(config)(params, batch, key, None)


@functools.partial(jax.jit, static_argnames="config")
def gradients(params, batch, config=CONFIG):
    return jax.grad(lambda p: pair_loss(config)(p, batch, None, None)[0]["translation"][0])(params)


force = jax.jit(functools.partial(score_targets, CONFIG))  # the scores of given targets


def test_the_loss_is_the_cross_entropy_of_each_word(params):
    batch = make_batch(PAIRS)
    terms, metrics, _ = measure(params, batch)
    log = np.asarray(jax.nn.log_softmax(force(params, batch)))
    expected = -sum(
        float(log[row, t, word]) for row, (_, target) in enumerate(PAIRS) for t, word in enumerate([*target, 1])
    )
    total, weight = terms["translation"]
    assert float(total) == pytest.approx(expected, rel=1e-5)
    assert float(weight) == 3 + 5 + 2
    assert float(metrics["exact"][1]) == 3


def test_rows_and_padding_do_not_matter(params):
    total = float(measure(params, make_batch(PAIRS))[0]["translation"][0])
    row_sum = sum(float(measure(params, make_batch([pair, ([], []), ([], [])]))[0]["translation"][0]) for pair in PAIRS)
    wide = make_batch(PAIRS, width=12)
    wide["source_tokens"][wide["source_segments"] == 0] = 7
    wide["target_in"][wide["target_segments"] == 0] = 19
    assert row_sum == pytest.approx(total, rel=1e-5)
    assert float(measure(params, wide)[0]["translation"][0]) == pytest.approx(total, rel=1e-5)


def test_a_row_without_words_has_finite_gradients(params):
    grads = gradients(params, make_batch([([], [])] * 3))
    assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(grads))


def test_dropout_needs_a_key(params):
    keys = [None, None, *jax.random.split(jax.random.key(0))]
    totals = [float(measure(params, make_batch(PAIRS), key)[0]["translation"][0]) for key in keys]
    assert totals[0] == totals[1] and len(set(totals)) == 3


@pytest.mark.parametrize("trained", [False, True])
def test_word_vectors_are_trained_only_on_request(params, trained):
    grads = gradients(params, make_batch(PAIRS), config=dataclasses.replace(CONFIG, train_vectors=trained))
    assert bool(np.asarray(grads["encoder"]["embeddings"]["word"]).any()) == trained
    lstm_grads = {name: part for name, part in grads["encoder"].items() if name != "embeddings"}
    assert all(np.asarray(leaf).any() for leaf in jax.tree.leaves([lstm_grads, grads["decoder"]]))


def test_an_unknown_word_is_zero_in_training_as_in_encode(params):
    """A trained table once gave it a vector in training, and `encode` reads zeros."""
    table = np.ones((20, 5), np.float32)
    moved = {"encoder": {"embeddings": {"word": table}}}
    words = np.array([[3, 2]])
    config = dataclasses.replace(CONFIG, train_vectors=True)
    vocabulary = WordVocabulary(["<S>", "</S>", "<UNK>", *(f"w{n}" for n in range(17))])
    encoder = CoveEncoder(config, {**params, "encoder": {**params["encoder"], **moved["encoder"]}}, vocabulary)
    trained = np.asarray(look_up_vectors(config, moved, words))[0]
    np.testing.assert_array_equal(trained, encoder.vectors_of(["w0", "zebra"]))
    np.testing.assert_array_equal(trained, [[1.0] * 5, [0.0] * 5])
    unread = jax.grad(lambda tree: look_up_vectors(config, tree, words).sum())(moved)
    assert np.flatnonzero(np.asarray(unread["encoder"]["embeddings"]["word"]).any(axis=1)).tolist() == [3]
    np.testing.assert_array_equal(look_up_vectors(CONFIG, moved, words)[0], table[[3, 2]])  # a fixed table is as it is


@pytest.mark.long
def test_the_loss_falls_on_what_it_sees():
    """Gradient descent learns three sentences by heart; then they are exact."""
    config = CoveConfig(5, 16, 2, vocab_size=20, decoder_layers=1, target_size=8, dropout=0.0)
    batch = make_batch(PAIRS)

    @jax.jit
    def train(params):
        def step(carried, _):
            params, momentum = carried
            momentum = jax.tree.map(lambda m, g: 0.9 * m + g / 10, momentum, gradients(params, batch, config=config))
            return (jax.tree.map(lambda x, m: x - 0.3 * m, params, momentum), momentum), None

        return jax.lax.scan(step, (params, jax.tree.map(jnp.zeros_like, params)), length=60)[0][0]

    fresh = jax.jit(lambda: init_cove_params(config, jax.random.key(0), decoder=True))()
    learned_params = train(fresh)
    exact = [measure(params, batch, config=config)[1]["exact"] for params in (fresh, learned_params)]
    assert [float(right) for right, _ in exact] == [0, 3] and float(exact[0][1]) == 3
    # Word by word, as `generate` writes, it is the same.
    decoder = cove_decoder(config)
    start, step, written = jax.jit(decoder.start, static_argnums=3), jax.jit(decoder.step), []
    memory = start(learned_params, batch["source_tokens"], batch["source_segments"], 7)
    token = np.full((3, 1), decoder.first, np.int32)
    for at in range(6):
        logits, memory = step(learned_params, memory, token, np.full((3, 1), at), at, np.ones((3, 7), bool))
        token = np.asarray(logits).argmax(-1).astype(np.int32)
        written.append(token[:, 0])
    for row, (_, target) in enumerate(PAIRS):
        assert [int(words[row]) for words in written][: len(target) + 1] == [*target, 1]


def test_the_decoder_of_the_contract(params):
    """Steps of several words equal single ones, rows can be reordered, padding of a source is not read."""
    decoder = FAMILY.decoder(CONFIG)
    assert (decoder.first, decoder.ends, decoder.most) == (0, (1,), None)
    source = np.array([[4, 5, 6, 1, 1], [9, 10, 1, 1, 1]], np.int32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0]])
    words = np.array([[0, 7, 8], [0, 12, 3]], np.int32)
    visible = np.ones((2, 8), bool)
    start, step = jax.jit(decoder.start, static_argnums=3), jax.jit(decoder.step)
    memory = start(params, source, mask, 8)
    assert all(len(leaf) == 2 for leaf in jax.tree.leaves(memory))
    together, after = step(params, memory, words, np.arange(3)[None].repeat(2, 0), 0, visible)
    assert together.shape == (2, 3, 20) and together.dtype == jnp.float32
    flipped = jax.tree.map(lambda x: np.asarray(x)[::-1], start(params, np.where(mask, source, 13), mask, 8))
    for t in range(3):
        logits, flipped = step(params, flipped, words[::-1, t : t + 1], np.full((2, 1), t), t, visible)
        np.testing.assert_allclose(logits[::-1, 0], together[:, t], rtol=0, atol=1e-5)
    np.testing.assert_allclose(flipped["context"][::-1], after["context"], rtol=0, atol=1e-5)
    # Teacher forcing gives the same scores.
    batch = make_batch([([4, 5, 6], [7, 8]), ([9, 10], [12, 3]), ([], [])])
    np.testing.assert_allclose(force(params, batch)[:2, :3], together, rtol=0, atol=1e-5)


def test_a_table_of_vectors_for_a_corpus(tmp_path):
    data = toy_pairs(tmp_path / "data", documents=60, topics=2, words=2, tokenizer="words", vocab_size=400)
    vocabulary = WordVocabulary.load(data / "tokenizer")
    known_words = vocabulary.words[5:8]
    rows = np.arange(15, dtype=np.float32).reshape(3, 5)
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in zip([*known_words, "<UNK>"], [*rows, rows[0]])]
    (tmp_path / "glove.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    table = read_table(str(tmp_path / "glove.txt"), f"{data}=2,other=1", CONFIG)
    assert table.shape == (len(vocabulary), 5) and (table[5:8] == rows).all()
    assert not np.delete(table, [5, 6, 7], axis=0).any()  # words without a vector, and the unknown word, are zero
    with pytest.raises(ValueError, match=r"glove.txt has vectors of 5 numbers: set config.model.vector_size=5"):
        read_table(str(tmp_path / "glove.txt"), str(data), CoveConfig(6))
    (tmp_path / "other.txt").write_text("zzz 1 2 3 4 5\n")
    with pytest.raises(ValueError, match="has no vector for any word of"):
        read_table(str(tmp_path / "other.txt"), str(data), CONFIG)
    with pytest.raises(ValueError, match="no file has vectors of the toy world's words"):
        read_table(str(tmp_path / "glove.txt"), "toyworld", CONFIG)


def test_the_objective_freezes_the_table():
    fields = {"length": 9, "target_length": 8, "reverse": True, "steps": 4, "batch_size": 2, "vectors": "", "data": "x"}
    fields |= {"sequences": 1, "smoothing": 0.0}
    objective = FAMILY.objective(ConfigDict(fields), CONFIG)
    assert objective.frozen == ("encoder/embeddings/word",) and objective.phases[0].examples.reverse
    assert objective.phases[0].examples.source_length == 9 and objective.phases[0].examples.target_length == 8
    shapes = jax.eval_shape(objective.init, jax.random.key(0))
    assert objective.work(shapes, 9) > 0
    figures = objective.figures({"translation": np.log(3.0), "accuracy": 0.5, "exact": 0.25})
    assert figures["held_out/perplexity"] == pytest.approx(3) and figures[objective.score] == 0.5
    with pytest.raises(ValueError, match="sequences=2: this model does not keep the pairs of a row apart"):
        FAMILY.objective(ConfigDict({**fields, "sequences": 2}), CONFIG)
