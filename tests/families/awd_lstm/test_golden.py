"""The language model and the classifier against fastai."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.awd_lstm.model import AwdLstm, score_words
from bert_elmo_jax.weights.parameter_tree import flatten
from bert_elmo_jax.weights.torch_lstm import GATES

from .conftest import save_tensors

WINDOWS = (0, 9, 18)  # each of eight words


@pytest.mark.parametrize("name", ["awd_lstm_tiny", "awd_lstm_tiny/lm.pth"])
def test_three_windows_with_carried_state(goldens, golden, name):
    lm, state = load(goldens / name), None
    for n, at in enumerate(WINDOWS):
        words = golden["tokens"][:, at : at + 8]
        output = lm.forward(words=words, state=state)
        state = output.state
        np.testing.assert_allclose(output.layers[-1], golden[f"{n}/last_layer"], rtol=0, atol=1e-5)
        np.testing.assert_allclose(output.logits, golden[f"{n}/logits"], rtol=0, atol=1e-5)
        chosen = jax.nn.log_softmax(output.logits)
        targets = golden["tokens"][:, at + 1 : at + 9]
        loss = -np.take_along_axis(np.asarray(chosen), targets[..., None], -1).mean()
        assert loss == pytest.approx(float(golden[f"{n}/loss"]), abs=1e-5)
    assert [layer.shape[-1] for layer in output.layers] == [24, 36, 36, 24]


def theirs(path, array):
    """Return one of our gradients as fastai has it."""
    array = np.asarray(array)
    if path.startswith("encoder/layer"):
        array = array.T
        parts = np.split(array, 4)
        return np.concatenate([parts[gate] for gate in GATES])
    return array


def test_gradients_of_the_first_window(goldens, golden):
    lm = load(goldens / "awd_lstm_tiny")
    words, targets = golden["tokens"][:, :8], golden["tokens"][:, 1:9]

    def loss(params):
        output = AwdLstm(lm.config).apply({"params": params["encoder"]}, words)
        scores = jax.nn.log_softmax(score_words(lm.config, params, output.last))
        return -jnp.take_along_axis(scores, jnp.asarray(targets)[..., None], -1).mean()

    gradients = {path: theirs(path, array) for path, array in flatten(jax.grad(loss)(dict(lm.params))).items()}
    expected = {"encoder/embeddings/word": "0.encoder.weight", "lm/bias": "1.decoder.bias"}
    for n in range(3):
        expected[f"encoder/layer_{n}/state_kernel"] = f"0.rnns.{n}.weight_hh_l0_raw"
        expected[f"encoder/layer_{n}/input_kernel"] = f"0.rnns.{n}.module.weight_ih_l0"
        expected[f"encoder/layer_{n}/bias"] = f"0.rnns.{n}.module.bias_ih_l0"
    assert set(gradients) == set(expected)
    for ours, name in expected.items():
        np.testing.assert_allclose(gradients[ours], golden[f"grad/{name}"], rtol=0, atol=1e-5, err_msg=ours)


def test_classifier_of_documents(tmp_path, golden, chunks):
    save_tensors(tmp_path, {n.removeprefix("classifier/"): a for n, a in golden.items() if n.startswith("classifier/")})
    model = load(tmp_path)
    assert model.config.classifier == (10, 3)
    documents, lengths = chunks["documents"], chunks["lengths"]
    rows = np.full_like(documents, 1)
    for row, document, length in zip(rows, documents, lengths):
        real = document[document != 1]
        assert len(real) == length
        row[:length] = real
    for part in (8, 5, 24, 100):
        class_logits = model.classify(words=rows, lengths=lengths, part=part)
        np.testing.assert_allclose(class_logits, chunks["logits"], rtol=0, atol=1e-5)
    for row, length, logits in zip(rows, lengths, chunks["logits"]):
        np.testing.assert_allclose(model.classify(words=row[None, :length])[0], logits, rtol=0, atol=1e-5)
    output = model.forward(words=rows, lengths=lengths)
    assert output.logits is None and output.last.shape == (4, 24, 24)
