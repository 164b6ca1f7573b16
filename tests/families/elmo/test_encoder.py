"""Outputs of the ELMo encoder: vectors, state, cache, mixtures, and their cost."""

import dataclasses
import itertools
import json
import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.elmo.encoder import ElmoEncoded, ElmoEncoder
from bert_elmo_jax.families.elmo.forward import read, token_vectors
from bert_elmo_jax.families.elmo.model import State
from bert_elmo_jax.families.piece_encoder import PieceEncoder

from .elmo_parts import CONFIG, VOCABULARY, WORD_CONFIG, WORDS, by_hand, close, fresh
from .test_hdf5_weights import random_params

# Outputs.


def test_batches_carried_on_are_those_of_allennlp(golden, goldens):
    """`encode` takes words, and `forward` raw ids, with or without marks; test_golden.py has two more batches."""
    outputs = np.load(goldens / "elmo_tiny" / "outputs.npz")
    batches = json.loads((goldens / "elmo_tiny" / "sentences.json").read_text(encoding="utf-8"))
    state, after = golden.zero_state(3), None
    for number, batch in enumerate(batches[:2]):
        encoding = golden.encode(batch, state=state)
        raw = golden.forward(outputs[f"{number}/char_ids"], state=after, boundaries="keep")
        state, after = encoding.state, raw.state
        mask = outputs[f"{number}/mask_with_bos_eos"]
        assert np.array_equal(raw.mask, mask)
        for layer in range(3):
            expected = outputs[f"{number}/layer_{layer}"]
            within = 1e-5 * np.abs(expected).max()
            assert np.abs(raw.layers[layer] - expected)[mask.astype(bool)].max() <= within
            for row, words in enumerate(batch):
                vectors = encoding.layers[layer, row, : len(words)]
                assert np.abs(vectors - expected[row, 1 : len(words) + 1]).max() <= within
        assert encoding.words == batch
        assert jax.tree.all(jax.tree.map(lambda a, b: np.abs(a - b).max() <= 1e-4, state, after))


def test_the_vectors_are_those_of_the_module(elmo, sentences):
    encoding = elmo.encode([*sentences[:5], "강가의  은행\n"])
    assert encoding.words == [*sentences[:5], ["강가의", "은행"]]
    assert encoding.layers.shape == (3, 6, max(map(len, encoding.words)), 16)
    assert encoding.layers.dtype == np.float32
    assert encoding.state is None
    assert np.array_equal(encoding.last, encoding.layers[2])
    assert encoding.mask.sum(1).tolist() == [len(words) for words in encoding.words]
    for n, words in enumerate(encoding.words):
        close(encoding.layers[:, n, : len(words)], by_hand(elmo, words)[0])
    assert not encoding.layers[:, encoding.mask == 0].any()
    assert np.array_equal(encoding.layers[0, ..., :8], encoding.layers[0, ..., 8:])


def test_a_stream_needs_no_more_memory_the_longer_it_is(elmo):
    sentences = (["the", "bank", f"{n % 7}"] for n in range(3200))
    for _ in itertools.islice(elmo.encode_batches(sentences, batch_size=16), 4):
        pass  # compiles
    tracemalloc.start()
    for batch in elmo.encode_batches(sentences, batch_size=16):
        assert batch.layers.shape == (3, 16, 3, 16)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500_000  # all layers of all sentences are 1.8 MB


def test_the_state_of_a_part_can_be_carried_on(elmo, sentences):
    many = elmo.encode(sentences[:4], state=elmo.zero_state(4))
    for number, one in enumerate(many):
        assert np.array_equal(one.state.cell[:, :, 0], many.state.cell[:, :, number])
    assert many[1:1].layers.shape == (3, 0, 0, 16)
    assert elmo.encode(["배를"], state=many[2].state).state.cell.shape == (2, 2, 1, 24)


# State.


def test_state_goes_on_row_by_row(elmo, sentences):
    """In batches of any size, each row has the state after its own sentences."""
    first, second = sentences[:9], sentences[9:18]
    one = elmo.encode(first, state=elmo.zero_state(9), batch_size=4)
    two = elmo.encode(second, state=one.state, batch_size=3)
    for n in range(9):
        _, state = by_hand(elmo, first[n])
        layers, after = by_hand(elmo, second[n], state)
        close(two.layers[:, n, : len(second[n])], layers)
        close(two.state.cell[:, :, n], np.asarray(after.cell[:, :, 0]))
        close(two.state.hidden[:, :, n], np.asarray(after.hidden[:, :, 0]))
    assert np.abs(two.last - elmo.encode(second).last).max() > 0.01
    # What came in stays as it was, and may be on a device.
    assert not elmo.zero_state(9).cell.any()
    again = elmo.encode(second, state=jax.tree.map(jnp.asarray, one.state), batch_size=3)
    assert np.array_equal(again.layers, two.layers)


def test_warming_up_is_reading_each_sentence_before_itself(elmo, sentences):
    few = sentences[:5]
    cold = elmo.encode(few, state=elmo.zero_state(5))
    warm = elmo.encode(few, state=cold.state)
    encoding = elmo.encode(few, warmup=1)
    close(encoding.layers, warm.layers)
    assert encoding.state is None
    close(elmo.encode(few, warmup=2, batch_size=2).layers, elmo.encode(few, state=warm.state).layers)
    close(elmo.encode(few[3:4], warmup=1).layers[:, 0], encoding.layers[:, 3, : len(few[3])])
    [batch] = elmo.encode_batches(few, warmup=1)
    close(batch.layers, encoding.layers)
    assert np.abs(encoding.last - cold.last).max() > 0.01


@pytest.mark.usefixtures("as_users_run")
def test_states_that_do_not_fit(elmo):
    configs = [dataclasses.replace(CONFIG, cell_size=20), dataclasses.replace(CONFIG, num_layers=3)]
    other, deeper = (ElmoEncoder(config, random_params(config)) for config in configs)
    for state, error, message in [
        (elmo.zero_state(2), ValueError, r"state has 2 rows, and there are 3 sentences: use zero_state\(3\)"),
        (other.zero_state(3), ValueError, r"state belongs to another model: .*20.*, expected .*24"),
        (deeper.zero_state(3), ValueError, "state belongs to another model"),
        (State(np.zeros(3), np.zeros(3)), ValueError, "state belongs to another model"),
        (State(elmo.zero_state(3).cell, elmo.zero_state(2).hidden), ValueError, "state has 3 and 2 rows, and there"),
        (State(None, None), ValueError, "state belongs to another model"),
        (np.zeros((2, 2, 3, 24)), TypeError, r"state is array.*; expected the result of zero_state\(3\) or of an earl"),
        ("zero", TypeError, "state is 'zero'; expected"),
        (0, TypeError, "state is 0; expected"),
    ]:
        with pytest.raises(error, match=message):
            elmo.encode(["a", "b", "c"], state=state)
        with pytest.raises(error, match=message):
            elmo.forward(np.full((3, 1, 50), 9), state=state)
    broken = elmo.zero_state(1)
    broken.cell[0, 0, 0, 0] = np.nan
    with pytest.raises(ValueError, match="state holds NaN or infinity"):
        elmo.encode(["강"], state=broken)
    with pytest.raises(ValueError, match=r"state and warmup were both given: .* leave one out"):
        elmo.encode(["a"], state=elmo.zero_state(1), warmup=1)
    for size in (0, -1, 2.0, "3", None):
        with pytest.raises((ValueError, TypeError), match=r"batch_size=.*: use a whole number, at least 1"):
            elmo.zero_state(size)


# The cache.


def test_the_cache_changes_nothing(elmo, params, sentences):
    expected = elmo.encode(sentences, batch_size=8)
    cached = ElmoEncoder(CONFIG, params)
    for words in (WORDS, WORDS[:3], ["elsewhere"], WORDS * 2, tuple(WORDS), VOCABULARY):
        cached.cache(words)  # in place of those before
        close(cached.encode(sentences, batch_size=8).layers, expected.layers)
        close(cached.encode([["<S>", "강"]]).layers, elmo.encode([["<S>", "강"]]).layers)


def test_cached_words_are_not_computed(params, monkeypatch):
    elmo = ElmoEncoder(CONFIG, params)
    elmo.cache(["강가의", "은행"])
    expected = elmo.encode([["강가의", "은행"]])
    monkeypatch.setattr("bert_elmo_jax.families.elmo.forward.token_vectors", None)
    assert np.array_equal(elmo.encode([["강가의", "은행"]]).layers, expected.layers)
    with pytest.raises(TypeError, match="not callable"):
        elmo.encode(["새로운"])


def test_memory_while_caching_is_that_of_the_table(params, monkeypatch):
    monkeypatch.setattr("bert_elmo_jax.families.elmo.forward.MANY", 256)
    elmo, words = ElmoEncoder(CONFIG, params), [f"word{n}" for n in range(8192)]
    elmo.cache(words[:300])
    tracemalloc.start()
    elmo.cache(words, progress=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # 8,192 vectors are 0.3 MB, their dictionary is 0.4 MB; all characters together would be 1.6 MB, twice over.
    assert peak < 2e6


@pytest.mark.usefixtures("as_users_run")
def test_wrong_words_to_cache_are_refused(elmo):
    for words, message in [
        ([], "cache was given no words: the list is empty"),
        ("강가의", "cache takes a list of words or a WordVocabulary; it was given '강가의'"),
        (None, "it was given None"),
        (5, "it was given 5"),
        ({"강": 3}, "it was given {'강': 3}"),
        (["강", ""], "the list of words to cache holds an empty word, word 1 of 2"),
        (["강", None], "the list of words to cache holds None as word 1"),
        ([["강"]], r"the list of words to cache holds \['강'\] as word 0"),
        (["a\udfff"], r"the list of words to cache holds a lone surrogate, U\+DFFF at character 1 of word 0"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            elmo.cache(words)


# Mixing.


def test_layers_are_mixed_by_the_weights_as_they_are(elmo, sentences):
    encoding = elmo.encode(sentences[:4])
    assert np.array_equal(elmo.mix(encoding), encoding.last)
    expected = 2 * (0.5 * encoding.layers[0] - encoding.layers[1] + 3 * encoding.layers[2])
    for weights in ([0.5, -1, 3], np.array([0.5, -1, 3]), jnp.array([0.5, -1, 3]), (0.5, -1.0, np.float32(3))):
        mixed = elmo.mix(encoding, weights=weights, gamma=2)
        assert mixed.dtype == np.float32
        close(mixed, expected)
    close(elmo.mix(jnp.asarray(encoding.layers), weights=[0.5, -1, 3], gamma=np.float32(2)), expected)
    assert not elmo.mix(encoding)[encoding.mask == 0].any()


@pytest.mark.usefixtures("as_users_run")
def test_wrong_mixtures_are_refused(elmo):
    encoding = elmo.encode(["강가의 은행"])
    for weights in ([1], [0, 0, 0, 1], 1, [[0, 0, 1]]):
        with pytest.raises(ValueError, match=r"weights=.*: this model has 3 layers .*; give 3 numbers"):
            elmo.mix(encoding, weights=weights)
    for wrong in ({"weights": [np.nan, 0, 1]}, {"weights": [1, 1, np.inf]}, {"gamma": np.nan}):
        with pytest.raises(ValueError, match=r"weights=.*, gamma=.*: expected finite numbers"):
            elmo.mix(encoding, **wrong)
    for layers in (encoding.last, encoding.layers[:2], encoding.words, None):
        with pytest.raises(ValueError, match=r"layers of shape .* were given; expected the result of encode"):
            elmo.mix(layers)
    config = dataclasses.replace(CONFIG, num_layers=3)
    four = ElmoEncoder(config, random_params(config))
    with pytest.raises(ValueError, match=r"layers of shape \(3, 1, 2, 16\)"):
        four.mix(encoding)


# Speed.


@pytest.mark.long
def test_compilations_are_few():
    config = dataclasses.replace(CONFIG, cell_size=8, num_highways=0, skip_connections=False)  # used by no other test
    elmo, coins = ElmoEncoder(config, fresh(config, 2)), np.random.default_rng(1)
    words = [*WORDS, *(f"word{n}" * (1 + n % 6) for n in range(3000))]
    many = [coins.choice(words, n).tolist() for n in coins.integers(1, 45, 150)]
    before = read._cache_size(), token_vectors._cache_size()
    for texts in (many, many[:1], many[:2], many[:13], many[3:90]):
        elmo.encode(texts, batch_size=16)
    # Two sizes of table for each of 7 widths, and a few heights; 6 numbers of words by 4 lengths at most.
    assert 5 < read._cache_size() - before[0] <= 18
    assert 4 < token_vectors._cache_size() - before[1] <= 24


def test_a_word_is_computed_once(params, monkeypatch):
    elmo, shapes = ElmoEncoder(CONFIG, params), []

    def computed(config, params, characters):
        shapes.append(characters.shape)
        return token_vectors(config, params, characters)

    monkeypatch.setattr("bert_elmo_jax.families.elmo.forward.token_vectors", computed)
    elmo.encode([["the", "bank"] * 30] * 64, batch_size=16)
    assert shapes == [(8, 16), (8, 16)]  # the marks, once for all; and two words for all batches
    elmo.encode([["the", "x" * 60]])
    assert shapes[2:] == [(8, 50)]


# From a folder.


@pytest.mark.usefixtures("as_users_run")
def test_fingerprints_tell_models_apart(golden, elmo, by_words, goldens, params):
    assert isinstance(golden, ElmoEncoder) and isinstance(load(goldens / "bert_tiny"), PieceEncoder)
    names = [golden.fingerprint, elmo.fingerprint, by_words.fingerprint]
    names.append(ElmoEncoder(WORD_CONFIG, by_words.params).fingerprint)
    names.append(load(goldens / "elmo_tiny", dtype="bfloat16").fingerprint)
    names.append(ElmoEncoder(dataclasses.replace(CONFIG, proj_clip=1.0), params).fingerprint)
    assert len(set(names)) == 6
    assert load(goldens / "elmo_tiny").fingerprint == golden.fingerprint
    assert ElmoEncoder(dataclasses.replace(CONFIG, dropout=0.5), params).fingerprint == elmo.fingerprint
    for options in ({"attention": "fused"}, {"attention": "reference"}, {"lowercase": True}):
        with pytest.raises(ValueError, match="leave"):
            load(goldens / "elmo_tiny", **options)


def test_an_encoding_can_be_made_by_hand():
    encoding = ElmoEncoded(np.ones((3, 2, 4, 6), np.float32), np.array([[1, 1, 0, 0], [1, 1, 1, 0]], np.int32))
    assert [part.layers.shape for part in encoding] == [(3, 1, 2, 6), (3, 1, 3, 6)]
    assert [part.mask.sum() for part in encoding] == [2, 3]


def test_a_batch_equals_its_sentences_one_by_one_to_the_last_bit(goldens):
    """The weights are so large that a difference in the last bit of a sum would show."""
    elmo = load(goldens / "elmo_tiny")
    sentences = [["배", *(f"w{(7 * n + k) % 30}" for k in range(n))] for n in (0, 8, 2, 19, 6)]
    together = elmo.encode(sentences)
    for n, words in enumerate(sentences):
        assert np.array_equal(together.layers[:, n, : len(words)], elmo.encode([words]).layers[:, 0])
    backwards = elmo.encode(sentences[::-1], batch_size=2)
    assert np.array_equal(backwards.layers[:, ::-1], together.layers)
