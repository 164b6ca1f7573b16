"""Vectors of words, kept on disk: equal to the encoder's, even after interruptions."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from unicodedata import normalize

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.inference import kept_vectors
from bert_elmo_jax.inference.kept_vectors import VectorFolder, keep_vectors
from bert_elmo_jax.inference.word_layers import StaticVectors, choose_layers, word_layers

SENTENCES = [["강가의", "작은", "은행"], ["w1", "w2", "w3", "w4", "w5"], ["배"], ["w3"] * 9] * 3


@pytest.fixture(scope="module", params=["bert_tiny", "elmo_tiny"])
def encoder(request, goldens):
    return load(goldens / request.param)


@pytest.fixture(scope="module")
def elmo(goldens):
    return load(goldens / "elmo_tiny")


def test_layers_are_those_of_the_encoder(encoder, tmp_path):
    vectors = keep_vectors(encoder, SENTENCES, tmp_path, batch_size=2)
    assert vectors.layers == tuple(range(encoder.config.num_layers + 1))
    at = 0
    for words in SENTENCES:
        if "bert" in encoder.source:
            encoded = encoder.encode([words], layers="all")
            expected = np.stack([encoded.words("mean", layer)[0] for layer in encoded.layers])
        else:
            expected = encoder.encode([words]).layers[:, 0]
        for layer in vectors.layers:
            assert np.abs(vectors.layer(layer)[at : at + len(words)] - expected[layer]).max() < 1e-4
        at += len(words)
    assert vectors.rows == at


def test_spans_and_layers(encoder, tmp_path):
    spans = [[(0, 2), (2, 3)], [], [(0, 1)], [(0, 9)]] * 3
    span_vectors = VectorFolder(tmp_path, layers=[-1, 0]).compute(encoder, SENTENCES, spans)
    word_vectors = VectorFolder(tmp_path).compute(encoder, SENTENCES)
    last = encoder.config.num_layers
    assert span_vectors.layers == (last, 0)
    assert span_vectors.rows == 12
    assert np.allclose(span_vectors.layer(last)[0], word_vectors.layer(last)[:2].mean(axis=0), atol=1e-5)
    assert np.allclose(span_vectors.layer(0)[3], word_vectors.layer(0)[9:18].mean(axis=0), atol=1e-5)
    with pytest.raises(ValueError, match="no layer 1 among the kept layers"):
        span_vectors.layer(1)
    with pytest.raises(ValueError, match="there is no layer 9"):
        VectorFolder(tmp_path, layers=[9]).compute(encoder, SENTENCES)


def test_computed_once(elmo, tmp_path, monkeypatch):
    VectorFolder(tmp_path).compute(elmo, SENTENCES)
    call_sizes = []

    def counting(source, sentences, *args, **options):
        call_sizes.append(len(sentences := list(sentences)))
        return word_layers(source, sentences, *args, **options)

    monkeypatch.setattr(kept_vectors, "word_layers", counting)
    assert VectorFolder(tmp_path).compute(elmo, SENTENCES).rows == 54
    VectorFolder(tmp_path).compute(elmo, SENTENCES[1:])  # other words, other vectors
    VectorFolder(tmp_path, layers=[1]).compute(elmo, SENTENCES)
    assert call_sizes == [0, 11, 12]


def test_stopped_at_any_sentence_it_goes_on(elmo, tmp_path, monkeypatch):
    full_vectors = keep_vectors(elmo, SENTENCES, tmp_path / "whole", batch_size=1)

    def stopping(*args, **options):
        for n, values in enumerate(word_layers(*args, **options)):
            if n == 6:
                raise KeyboardInterrupt
            yield values

    monkeypatch.setattr(kept_vectors, "word_layers", stopping)
    with pytest.raises(KeyboardInterrupt):
        keep_vectors(elmo, SENTENCES, tmp_path / "part", batch_size=1)
    folder = tmp_path / "part"
    assert json.loads((folder / "vectors.json").read_text())["done"] == 4  # whole rounds
    with open(folder / "layer_01.f32", "ab") as file:
        file.write(b"torn by the stop")
    computed_sentences = []

    def counting(source, sentences, *args, **options):
        computed_sentences.extend(sentences := list(sentences))
        return word_layers(source, sentences, *args, **options)

    monkeypatch.setattr(kept_vectors, "word_layers", counting)
    part = keep_vectors(elmo, SENTENCES, tmp_path / "part", batch_size=1)
    assert len(computed_sentences) == 8
    for layer in full_vectors.layers:
        assert np.array_equal(part.layer(layer), full_vectors.layer(layer))


def test_another_run_is_writing(elmo, tmp_path):
    """The second run waits, says so, and finds all vectors finished."""
    with ThreadPoolExecutor() as pool:
        with kept_vectors._hold(tmp_path):
            second = pool.submit(waited, elmo, tmp_path)
            time.sleep(0.2)
            assert not second.done()
        message, vectors = second.result()
    assert "another run is writing" in message
    assert vectors.rows == 54


def waited(elmo, folder):
    with pytest.warns(UserWarning, match="waiting for it") as caught:
        vectors = keep_vectors(elmo, SENTENCES, folder)
    return str(caught[0].message), vectors


@pytest.mark.usefixtures("as_users_run")
def test_invalid_requests(elmo, tmp_path):
    for spans, message in (
        ([[]], "there is no word: give sentences"),
        ([[(0, 2)]], r"span \(0, 2\) of sentence 0, which has 1 words"),
        ([[], []], "1 sentences and 2 lists of spans"),
    ):
        with pytest.raises(ValueError, match=message):
            keep_vectors(elmo, [["배"]], tmp_path, spans=spans)
    with pytest.raises(TypeError, match="a str has no layers to look at: give an encoder"):
        choose_layers("runs/elmo")


def test_long_sentences_of_a_bert_are_read_in_windows(goldens, tmp_path):
    bert = load(goldens / "bert_tiny")
    words = ["w1"] * (2 * bert.config.max_positions)
    assert keep_vectors(bert, [words], tmp_path).rows == len(words)


def test_static_vectors(tmp_path):
    vectors = StaticVectors({"bank": np.ones(3), "배": np.zeros(3)}, "glove.txt")
    saved_vectors = keep_vectors(vectors, [["Bank", "of"], ["배"]], tmp_path)
    assert saved_vectors.layers == (0,)
    assert np.array_equal(saved_vectors.layer(0), [[1, 1, 1], [0, 0, 0], [0, 0, 0]])
    assert vectors.fingerprint != StaticVectors({"bank": np.ones(3)}).fingerprint
    for one, other in (("NFC", "NFD"), ("NFD", "NFC")):
        assert StaticVectors({normalize(one, "배"): np.ones(3)}).of([normalize(other, "배")]).all()
    for table, message in (
        ({}, "has no vector for any of the words"),
        ({"a": np.ones(2), "b": np.ones(3)}, "has vectors of the shapes"),
    ):
        with pytest.raises(ValueError, match=message):
            StaticVectors(table, "glove.txt")
