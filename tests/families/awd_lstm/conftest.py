"""The golden of fastai's AWD-LSTM, similar files of other sizes, and the formulas of its layers."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file


@pytest.fixture(scope="package")
def golden(goldens):
    """Return the arrays of the golden by name."""
    with np.load(goldens / "awd_lstm_tiny" / "golden.npz") as file:
        return {name: file[name] for name in file}


@pytest.fixture(scope="package")
def chunks(goldens):
    """Return the arrays of the golden of the classifier by name."""
    with np.load(goldens / "awd_lstm_tiny" / "classifier_chunks.npz") as file:
        return {name: file[name] for name in file}


def draw_tensors(vocab_size, embedding_size, cell_size, layers, *, bias=True, tied=True, seed=0):
    """Return random tensors of a language model as fastai names them."""
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return rng.normal(0, 0.4, shape).astype(np.float32)

    words = draw(vocab_size, embedding_size)
    tensors = {"0.encoder.weight": words, "0.encoder_dp.emb.weight": words.copy()}
    for n in range(layers):
        size = embedding_size if n == layers - 1 else cell_size
        inputs = cell_size if n else embedding_size
        tensors[f"0.rnns.{n}.weight_hh_l0_raw"] = draw(4 * size, size)
        tensors[f"0.rnns.{n}.module.weight_ih_l0"] = draw(4 * size, inputs)
        for name in ("bias_ih_l0", "bias_hh_l0"):
            tensors[f"0.rnns.{n}.module.{name}"] = draw(4 * size)
    tensors["1.decoder.weight"] = words.copy() if tied else draw(vocab_size, embedding_size)
    if bias:
        tensors["1.decoder.bias"] = draw(vocab_size)
    return tensors


def save_tensors(folder, tensors) -> Path:
    """Write tensors as a file that `load` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "lm.safetensors")
    return folder


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def run_lm(tensors, words, layers):
    """Return the outputs of each layer and the logits, step by step in float64: the formulas of torch's LSTM."""
    x = tensors["0.encoder.weight"][words].astype(np.float64)
    outputs = [x]
    for n in range(layers):
        state, prefix = tensors[f"0.rnns.{n}.weight_hh_l0_raw"], f"0.rnns.{n}.module."
        h = c = np.zeros((len(words), state.shape[1]))
        y = []
        for t in range(words.shape[1]):
            gates = x[:, t] @ tensors[prefix + "weight_ih_l0"].T + h @ state.T
            gates = gates + tensors[prefix + "bias_ih_l0"] + tensors[prefix + "bias_hh_l0"]
            i, f, g, o = np.split(gates, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            y.append(h)
        x = np.stack(y, axis=1)
        outputs.append(x)
    return outputs, x @ tensors["1.decoder.weight"].T + tensors.get("1.decoder.bias", 0)
