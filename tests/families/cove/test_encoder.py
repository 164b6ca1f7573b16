"""Sentences in, layers out: word vectors from a file, unknown words, batches, fine-tuning, and refused inputs."""

import shutil

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.inference.word_encoder import word_encoder

from .conftest import draw_tensors, run_lstm, save_lstm, write_vectors

WORDS = ["the", "bank", "Bank", "river", "은행", "New"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a CoVe of odd sizes with word vectors as (model, tensors, vectors by word)."""
    path, tensors = tmp_path_factory.mktemp("cove"), draw_tensors(5, 4, 2)
    vectors = write_vectors(path / "glove.tiny.txt", WORDS, 5)
    return load(save_lstm(path, tensors)), tensors, vectors


def test_layers_of_sentences(folder):
    cove, tensors, vectors = folder
    sentences = [["the", "river", "unheard", "bank"], ["은행"], ["Bank", "THE"]]
    encoding = cove.encode(sentences)
    rows = np.zeros((3, 4, 5), np.float32)
    for n, words in enumerate(sentences):
        for t, word in enumerate(words):
            rows[n, t] = vectors.get(word, 0)  # "unheard" and "THE" are zero: case counts
    assert (encoding.vectors == rows).all()
    for ours, theirs in zip(encoding.layers[1:], run_lstm(tensors, rows, [4, 1, 2], 2), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
    assert (encoding.beside == np.concatenate([encoding.vectors, encoding.last], -1)).all()
    assert repr(encoding) == "CoveEncoded(3 texts, vectors [3, 4, 5], last [3, 4, 8])"


def test_word_vectors_wider_than_both_directions(tmp_path):
    save_lstm(tmp_path, draw_tensors(9, 2, 1))
    write_vectors(tmp_path / "a.vec", WORDS, 9)
    cove = load(tmp_path)
    assert cove.width == 9 and [layer.shape[-1] for layer in cove.encode(["the bank"]).layers] == [9, 4]
    [layers] = cove.word_layers([["the", "bank"]], [0, 1])
    assert layers.shape == (2, 2, 9) and not layers[1, :, 4:].any() and layers[1, :, :4].all()


def test_one_fingerprint_for_equal_numbers(folder, tmp_path):
    cove, tensors, _ = folder
    assert load(cove.source).fingerprint == cove.fingerprint
    other = save_lstm(tmp_path / "other", tensors)
    without = load(other).fingerprint
    write_vectors(other / "vectors.txt", WORDS, 5, seed=9)
    assert len({cove.fingerprint, without, load(other).fingerprint}) == 3
    write_vectors(other / "vectors.txt", WORDS, 6)
    with pytest.raises(ValueError, match=r"has vectors of 6 numbers, a CoVe here reads 5: they do not belong together"):
        load(other)


@pytest.mark.usefixtures("as_users_run")
def test_without_word_vectors(goldens, tmp_path):
    shutil.copy(goldens / "cove_tiny" / "wmtlstm.pth", tmp_path)
    cove = load(tmp_path / "wmtlstm.pth")
    message = r"has no word vectors, .*a file of vectors of 24 numbers .*forward\(vectors=…\) works"
    for call in (lambda: cove.encode(["a"]), lambda: cove.check(["a"]), lambda: word_encoder(str(tmp_path))):
        with pytest.raises(ValueError, match=message):
            call()
    shutil.copy(goldens / "cove_tiny" / "vectors.txt", tmp_path / "glove.840B.300d.txt")
    assert load(tmp_path / "wmtlstm.pth").encode(["the bank"]).last.shape == (1, 2, 48)
    shutil.copy(goldens / "cove_tiny" / "vectors.txt", tmp_path / "b.vec")
    with pytest.raises(ValueError, match=r"2 files of word vectors, 2 of them with vectors of 24 numbers: b.vec, gl"):
        load(tmp_path)


NAN = np.where(np.arange(30).reshape(2, 3, 5) == 17, np.nan, 1.0)


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    ("vectors", "lengths", "message"),
    [
        (np.zeros((2, 3, 6)), None, "vectors has 6 numbers per word; this model reads vectors of 5"),
        (np.zeros((2, 5)), None, r"the shape \(2, 5\); expected \[rows, words, 5\]"),
        (np.zeros((0, 3, 5)), None, "at least one of each"),
        ([[[1.0] * 5], [[1.0] * 4]], None, "rows of different lengths, or no numbers"),
        (np.zeros((2, 3, 5)), [3], r"lengths is \[3\]; expected 2 whole numbers"),
        (np.zeros((2, 3, 5)), [3.0, 1.0], "expected 2 whole numbers"),
        (np.zeros((2, 3, 5)), [3, 4], "lengths holds 3 to 4; each is 0 to 3, the words of a row"),
        (np.zeros((2, 3, 5)), [3, -1], "lengths holds -1 to 3"),
        (NAN, None, "NaN or infinity at row 1, word 0"),
    ],
)
def test_rows_that_are_refused(folder, vectors, lengths, message):
    with pytest.raises(ValueError, match=message):
        folder[0].forward(vectors=vectors, lengths=lengths)


def test_padding_is_not_read(folder):
    """NaN after the end of a row does no harm, and a row without words is zero."""
    output = folder[0].forward(vectors=NAN, lengths=[3, 0])
    assert all(np.isfinite(layer).all() for layer in output.layers) and not output.last[1].any()
