"""Sentences and ids in, layers out: batches, directions, fine-tuning, and refused inputs."""

import dataclasses
import pickle

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.awd_lstm.encoder import AwdLstmEncoder
from bert_elmo_jax.families.awd_lstm.model import State
from bert_elmo_jax.text import WordVocabulary

from .conftest import draw_tensors, run_lm, save_tensors

WORDS = ["<S>", "</S>", "<UNK>", "the", "bank", "Bank", "river", "은행"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return an AWD-LSTM of odd sizes with a vocabulary as (model, tensors)."""
    path, tensors = tmp_path_factory.mktemp("awd"), draw_tensors(len(WORDS), 5, 7, 2)
    WordVocabulary(WORDS).save(path)
    return load(save_tensors(path, tensors)), tensors


def test_layers_of_sentences(folder):
    lm, tensors = folder
    sentences = [["the", "river", "unheard", "bank"], ["은행"], ["Bank", "THE"]]
    encoding = lm.encode(sentences)
    for n, row in enumerate([[0, 3, 6, 2, 4], [0, 7], [0, 5, 2]]):
        layers, _ = run_lm(tensors, np.array([row]), 2)
        for ours, theirs in zip(encoding.layers, layers, strict=True):
            np.testing.assert_allclose(ours[n, : len(row) - 1], theirs[0, 1:], rtol=0, atol=1e-5)
            assert not ours[n, len(row) - 1 :].any()
    assert repr(encoding) == "AwdLstmEncoded(3 texts, last [3, 4, 5])"
    assert encoding.logits is None and encoding.state is None


def test_a_backward_model_reads_from_the_end(folder):
    forward, tensors = folder
    config = dataclasses.replace(forward.config, direction="backward")
    backward = AwdLstmEncoder(config, forward.params, forward.vocabulary)
    layers, _ = run_lm(tensors, np.array([[1, 4, 6, 3]]), 2)  # </S> bank river the
    encoding = backward.encode(["the river bank", "은행"])
    for ours, theirs in zip(encoding.layers, layers, strict=True):
        np.testing.assert_allclose(ours[0], theirs[0, :0:-1], rtol=0, atol=1e-5)
    batch = backward.word_batch([("the", "river", "bank"), ("은행",)], 2, 5)
    outputs = jax.jit(backward.word_function())(backward.params["encoder"], batch, None)
    np.testing.assert_allclose(outputs[2, :, :3, :5], encoding.last, rtol=0, atol=1e-6)
    assert forward.fingerprint != backward.fingerprint


def test_padding_is_not_read(folder):
    lm, _ = folder
    padded = lm.forward(words=[[3, 4, 99], [5, 6, 7]], lengths=[2, 3])
    short = lm.forward(words=[[3, 4]])
    np.testing.assert_allclose(padded.last[0, :2], short.last[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(padded.state.cell[1][0], short.state.cell[1][0], rtol=0, atol=1e-6)
    assert not padded.last[0, 2].any() and not padded.logits[0, 2].any()
    none = lm.forward(words=[[3], [4]], lengths=[0, 1], state=padded.state)
    assert (none.state.hidden[0][0] == padded.state.hidden[0][0]).all()


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    ("words", "lengths", "message"),
    [
        ([[1, 8]], None, "word id 8 at row 0, column 1 is outside 0 to 7; the model has embeddings for 8 words"),
        ([[1, -1]], None, "word id -1"),
        ([[0.5]], None, "words holds float64; expected whole numbers"),
        ([1, 2], None, r"words has shape \(2,\); expected \[batch, words\]"),
        ([[1], [2, 3]], None, "rows of different lengths"),
        ([[1, 2]], [3], "lengths holds 3 to 3; each is 0 to 2"),
        ([[1, 2]], [1, 1], "expected 1 whole numbers, one per row"),
    ],
)
def test_ids_that_are_refused(folder, words, lengths, message):
    with pytest.raises((ValueError, TypeError), match=message):
        folder[0].forward(words=words, lengths=lengths)


@pytest.mark.usefixtures("as_users_run")
def test_states_that_are_refused(folder, tmp_path):
    lm, words = folder[0], [[3, 4]]
    other = load(save_tensors(tmp_path, draw_tensors(8, 5, 7, 3))).zero_state(1)
    broken = jax.tree.map(lambda part: np.asarray(part) * np.float32(np.nan), lm.zero_state(1))
    for state, message in (
        (lm.zero_state(2), "state has 2 rows, and there are 1"),
        (other, "state belongs to another model"),
        (broken, "state holds NaN or infinity"),
        ([np.zeros(5)], r"expected the result of zero_state\(1\)"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            lm.forward(words=words, state=state)
    assert isinstance(lm.zero_state(1), State)


@pytest.mark.usefixtures("as_users_run")
def test_a_missing_classifier_and_another_vocabulary(folder, tmp_path):
    lm, _ = folder
    with pytest.raises(ValueError, match="has no classifier: load the file of a fastai text classifier"):
        lm.classify(words=[[1, 2]])
    save_tensors(tmp_path, draw_tensors(8, 5, 7, 2))
    (tmp_path / "itos.pkl").write_bytes(pickle.dumps(["xxunk", "the"]))
    with pytest.raises(ValueError, match="has 2 words, the model 8: they do not belong together"):
        load(tmp_path)
