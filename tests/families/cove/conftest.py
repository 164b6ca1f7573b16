"""The golden of torch's LSTM and of a decoder with attention, and similar files of other sizes."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from bert_elmo_jax.weights.torch_pickle import read_torch_pickle


@pytest.fixture(scope="package")
def golden(goldens):
    """Return the arrays of the golden by name."""
    with np.load(goldens / "cove_tiny" / "golden.npz") as file:
        return {name: file[name] for name in file}


@pytest.fixture(scope="package")
def tensors(goldens):
    """Return the tensors of the golden's file by their bare names."""
    stored = read_torch_pickle(goldens / "cove_tiny" / "wmtlstm.pth")
    return {name.removeprefix("rnn."): np.array(tensor.read()) for name, tensor in stored.items()}


def draw_tensors(vector_size, lstm_size, layers, seed=0):
    """Return random tensors of torch.nn.LSTM, in both directions."""
    rng, tensors = np.random.default_rng(seed), {}
    for n in range(layers):
        for end in (f"_l{n}", f"_l{n}_reverse"):
            inputs = 2 * lstm_size if n else vector_size
            tensors[f"weight_ih{end}"] = rng.normal(0, 0.4, (4 * lstm_size, inputs)).astype(np.float32)
            tensors[f"weight_hh{end}"] = rng.normal(0, 0.4, (4 * lstm_size, lstm_size)).astype(np.float32)
            for name in ("bias_ih", "bias_hh"):
                tensors[name + end] = rng.normal(0, 0.4, 4 * lstm_size).astype(np.float32)
    return tensors


def save_lstm(folder, tensors) -> Path:
    """Write tensors as a file that `load` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "wmtlstm.safetensors")
    return folder


def write_vectors(file, words, width, seed=1):
    """Write a text file of word vectors, and return them."""
    vectors = np.random.default_rng(seed).normal(size=(len(words), width)).round(3).astype(np.float32)
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in zip(words, vectors.tolist())]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return dict(zip(words, np.array([line.split(" ")[1:] for line in lines], np.float32)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def run_lstm(tensors, vectors, lengths, layers):
    """Return the layers of torch's LSTM, step by step in float64: the formulas of its documentation."""
    x = vectors.astype(np.float64)
    outputs = []
    for n in range(layers):
        size = tensors[f"weight_hh_l{n}"].shape[1]
        y = np.zeros((*x.shape[:2], 2 * size))
        for part, end in enumerate((f"_l{n}", f"_l{n}_reverse")):
            for row, length in enumerate(lengths):
                h = c = np.zeros(size)
                for t in range(length) if part == 0 else reversed(range(length)):
                    gates = tensors[f"weight_ih{end}"] @ x[row, t] + tensors[f"weight_hh{end}"] @ h
                    gates = gates + tensors.get(f"bias_ih{end}", 0) + tensors.get(f"bias_hh{end}", 0)
                    i, f, g, o = np.split(gates, 4)
                    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                    h = sigmoid(o) * np.tanh(c)
                    y[row, t, part * size : (part + 1) * size] = h
        outputs.append(y)
        x = y
    return outputs
