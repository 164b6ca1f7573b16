"""CoVe's encoder and decoder against torch."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.cove.config import CoveConfig
from bert_elmo_jax.families.cove.decoder import decode, read_source, score_words
from bert_elmo_jax.families.cove.model import Cove, CoveOutput

from .conftest import draw_tensors, run_lstm, save_lstm

ORDER = (0, 2, 1, 3)  # torch's gates i, f, g, o as i, g, f, o


def convert(golden):
    """Return the golden's decoder as our parameters."""

    def gates(array):
        return np.concatenate([np.split(array, 4)[gate] for gate in ORDER])

    bias = gates(golden["decoder/bias_ih"] + golden["decoder/bias_hh"])
    size = len(bias) // 4
    bias[2 * size : 3 * size] -= 1
    return {
        "layer_0": {
            "input_kernel": gates(golden["decoder/weight_ih"]).T,
            "state_kernel": gates(golden["decoder/weight_hh"]).T,
            "bias": bias,
        },
        "attention": golden["decoder/W1"],
        "combine": golden["decoder/W2"].T,
        "output": {"kernel": golden["decoder/W_out"].T, "bias": np.zeros(30, np.float32)},
    }


def test_layers_are_those_of_torch(goldens, golden):
    output = load(goldens / "cove_tiny" / "wmtlstm.pth").forward(vectors=golden["vectors"], lengths=golden["lengths"])
    assert len(output.layers) == 3
    for n in (0, 1):
        np.testing.assert_allclose(output.layers[n - 2], golden[f"layer_{n}"], rtol=0, atol=1e-5)
    real = output.mask[:, :, None] == 1
    assert (output.layers[0] == np.where(real, golden["vectors"], 0)).all()
    assert output.mask.sum(1).tolist() == golden["lengths"].tolist()


def test_last_states_are_those_of_torch(goldens, golden):
    cove = load(goldens / "cove_tiny")
    apply = jax.jit(Cove(cove.config).apply)
    output = apply({"params": cove.params["encoder"]}, golden["vectors"], golden["lengths"])
    for ours, theirs in ((output.hidden, golden["last_h"]), (output.cells, golden["last_c"])):
        # Torch: layer 0 forward, layer 0 backward, layer 1 forward, …
        both = theirs.reshape(2, 2, 4, 24).transpose(0, 2, 1, 3).reshape(2, 4, 48)
        np.testing.assert_allclose(ours, both, rtol=0, atol=1e-5)


def test_six_steps_of_the_decoder_are_those_of_torch(golden):
    config = CoveConfig(vector_size=24, lstm_size=24, vocab_size=30, decoder_layers=1, target_size=24, dropout=0.0)
    params = convert(golden)
    zeros = jnp.zeros((2, 4, 48))  # the golden starts from zero, not from the encoder's last state
    output = CoveOutput((jnp.asarray(golden["layer_1"]),), zeros, zeros)
    memory = read_source(config, params, output, jnp.asarray(golden["lengths"]))
    run = jax.jit(functools.partial(decode, config))
    contexts, shares, after = run(params, memory, golden["decoder_inputs"])
    np.testing.assert_allclose(score_words(config, params, contexts), golden["scores"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(shares, golden["alignments"], rtol=0, atol=1e-6)
    # Step by step, as text is written, it is the same.
    for t in range(6):
        context, _, memory = run(params, memory, golden["decoder_inputs"][:, t : t + 1])
        np.testing.assert_allclose(context[:, 0], contexts[:, t], rtol=0, atol=1e-6)
    np.testing.assert_allclose(memory["cell"], after["cell"], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("vector_size", "lstm_size", "layers", "biases"), [(5, 4, 1, True), (12, 3, 3, True), (4, 3, 2, False)]
)
def test_other_sizes_and_depths(tmp_path, vector_size, lstm_size, layers, biases):
    tensors = draw_tensors(vector_size, lstm_size, layers)
    tensors = {name: array for name, array in tensors.items() if biases or name.startswith("weight")}
    rng, lengths = np.random.default_rng(5), [7, 1, 4]
    vectors = rng.normal(size=(3, 7, vector_size)).astype(np.float32)
    our_layers = load(save_lstm(tmp_path, tensors)).forward(vectors=vectors, lengths=lengths).layers
    assert len(our_layers) == layers + 1
    for ours, theirs in zip(our_layers[1:], run_lstm(tensors, vectors, lengths, layers), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


def test_gradients_are_finite_differences(tmp_path):
    cove = load(save_lstm(tmp_path, draw_tensors(3, 2, 2)))
    vectors = np.random.default_rng(3).normal(size=(2, 4, 3)).astype(np.float32)
    weight = np.random.default_rng(4).normal(size=(2, 4, 4)).astype(np.float32)

    @jax.jit
    def value_and_slopes(both):
        def value(both):
            output = Cove(cove.config).apply({"params": both[0]}, both[1], jnp.array([4, 2]))
            return (output.last * weight).sum()

        return jax.value_and_grad(value)(both)

    inputs, rng, step = (cove.params["encoder"], vectors), np.random.default_rng(6), np.float32(1e-2)
    _, grads = value_and_slopes(inputs)
    way = jax.tree.map(lambda x: rng.normal(size=x.shape).astype(np.float32), inputs)
    slope = sum(float((np.asarray(a) * b).sum()) for a, b in zip(jax.tree.leaves(grads), jax.tree.leaves(way)))
    ahead, _ = value_and_slopes(jax.tree.map(lambda x, d: x + step * d, inputs, way))
    back, _ = value_and_slopes(jax.tree.map(lambda x, d: x - step * d, inputs, way))
    assert slope == pytest.approx(float(ahead - back) / (2 * step), rel=2e-3)
    assert not grads[1][1, 2:].any()
