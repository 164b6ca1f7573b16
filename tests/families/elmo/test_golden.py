"""Our ELMo against AllenNLP on PyTorch: the same weights, the same words, every layer and every gradient."""

import functools
import json
import runpy
from pathlib import Path

import h5py
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.model import Elmo, zero_state
from bert_elmo_jax.files import read_json
from bert_elmo_jax.nn import scalar_mix
from bert_elmo_jax.text.characters import boundary_characters

from ..close_outputs import assert_close

pytestmark = pytest.mark.usefixtures("strict_dtypes")
ORACLE = runpy.run_path(str(Path(__file__).with_name("elmo_oracle.py")))
BATCHES = 4


def read_weights(path, config):
    """Return the file's weights in our tree, independently of bert_elmo_jax.weights on purpose."""
    with h5py.File(path) as file:
        get = lambda name: file[name][()]  # noqa: E731
        dense = lambda prefix, w, b: {"kernel": get(f"{prefix}/{w}"), "bias": get(f"{prefix}/{b}")}  # noqa: E731
        token = {"embedding": get("char_embed"), "projection": dense("CNN_proj", "W_proj", "b_proj")}
        for n in range(len(config.filters)):
            token[f"conv_{n}"] = {"kernel": get(f"CNN/W_cnn_{n}")[0], "bias": get(f"CNN/b_cnn_{n}")}
        for n in range(config.num_highways):
            token[f"highway_{n}"] = {
                part: dense(f"CNN_high_{n}", f"W_{part}", f"b_{part}") for part in ("carry", "transform")
            }
        tree = {"token": token, "forward": {}, "backward": {}}
        for d, direction in enumerate(("forward", "backward")):
            for n in range(config.num_layers):
                cell = file[f"RNN_{d}/RNN/MultiRNNCell/Cell{n}/LSTMCell"]
                kernel = cell["W_0"][()]
                tree[direction][f"layer_{n}"] = {
                    "input_kernel": kernel[: config.width], "state_kernel": kernel[config.width :],
                    "bias": cell["B"][()], "projection": cell["W_P_0"][()],
                }  # fmt: skip
    return tree


@pytest.fixture(scope="module")
def golden(goldens):
    folder = goldens / "elmo_tiny"
    config = ElmoConfig.from_options(read_json(folder / "options.json"))
    return config, read_weights(folder / "weights.hdf5", config), np.load(folder / "outputs.npz")


def batch_of(ids):
    """Return distinct words, places among them, and lengths from AllenNLP's ids, with the marks of begin and end."""
    bos, eos = boundary_characters(ids.shape[-1])
    lengths = (ids[:, :, 0] > 0).sum(1) + 2
    rows = np.zeros((len(ids), ids.shape[1] + 2, ids.shape[2]), np.int32)
    rows[:, 1:-1] = ids
    rows[:, 0] = bos
    rows[np.arange(len(ids)), lengths - 1] = eos
    distinct, places = np.unique(rows.reshape(-1, rows.shape[-1]), axis=0, return_inverse=True)
    return places.reshape(rows.shape[:2]).astype(np.int32), lengths.astype(np.int32), distinct[None]


@pytest.fixture(scope="module")
def exact(goldens, golden):
    """Return the layers of each batch and row in float64, with carried state, as an exact reference."""
    config, params, _ = golden
    params, state, batches = jax.tree.map(np.float64, params), None, []
    for sentences in json.loads((goldens / "elmo_tiny" / "sentences.json").read_text(encoding="utf-8")):
        layers, state = ORACLE["encode"](params, config, sentences, state)
        batches.append(layers)
    return batches


def test_every_layer_of_four_batches_with_the_state_carried_on(golden, exact):
    """The difference to AllenNLP is at most 1e-5, plus AllenNLP's own float32 error.

    The weights are so large that a rounding grows from step to step, and with the state from batch to batch: from 2e-6
    of the largest value in the first batch to 3e-5 in the last. There, two programs cannot agree any better than that.
    """
    config, params, outputs = golden
    elmo = jax.jit(Elmo(config).apply)
    state = zero_state(config, 3)
    for number in range(BATCHES):
        words, lengths, characters = batch_of(outputs[f"{number}/char_ids"])
        output = elmo({"params": params}, words, lengths, characters=characters, state=state)
        state = output.state
        mask = np.arange(words.shape[1])[None, :] < lengths[:, None]
        np.testing.assert_array_equal(mask, outputs[f"{number}/mask_with_bos_eos"])
        assert_close(np.asarray(output.token)[mask], outputs[f"{number}/token_embedding"][mask])
        np.testing.assert_array_equal(output.last, output.layers[-1])
        for layer, ours in enumerate(np.asarray(output.layers)):
            theirs = outputs[f"{number}/layer_{layer}"]
            right = np.concatenate([row[layer] for row in exact[number]])
            largest, rounding = np.abs(right).max(), np.abs(theirs[mask] - right).max()
            assert rounding <= (1e-5 if number < 2 else 5e-5) * largest
            assert np.abs(ours - theirs)[mask].max() <= 1e-5 * largest + (0 if number < 2 else 4 * rounding)
            assert not ours[~mask].any()


def test_both_mixtures_the_loss_and_every_gradient(golden):
    """The tolerance includes the error of AllenNLP's own gradients, 0.7e-5 of the largest one in float64."""
    config, params, outputs = golden
    words, lengths, characters = batch_of(outputs["0/char_ids"])
    real = outputs["mix/mask"]
    mixes = [
        {"weights": jnp.asarray(w, jnp.float32), "gamma": jnp.asarray(g, jnp.float32)}
        for w, g in zip(outputs["mix/scalar_parameters"], outputs["mix/gamma"], strict=True)
    ]

    @functools.partial(jax.value_and_grad, has_aux=True)
    def loss(both):
        params, mixes = both
        layers = Elmo(config).apply({"params": params}, words, lengths, characters=characters).layers
        mixed = [scalar_mix(layers, **mix)[:, 1:-1] for mix in mixes]
        weight = outputs["mix/weight"] * real[..., None].astype(np.float32)
        return sum((i + 1) * (m * weight).sum() for i, m in enumerate(mixed)), mixed

    (value, mixed), (gradients, of_mixes) = jax.jit(loss)((params, mixes))
    for k, ours in enumerate(mixed):
        assert_close(np.asarray(ours)[real], outputs[f"mix/{k}"][real])
    np.testing.assert_allclose(value, outputs["mix/loss"], rtol=1e-5)

    ours = {}
    for k, gradient in enumerate(of_mixes):
        for part in ("weights", "gamma"):
            ours[f"scalar_mix_{k}.{part}"] = np.atleast_1d(gradient[part])
    for direction in ("forward", "backward"):
        for n in range(config.num_layers):
            layer, name = gradients[direction][f"layer_{n}"], f"{direction}_layer_{n}"
            ours[f"{name}.input_linearity.weight"] = in_their_order(layer["input_kernel"]).T
            ours[f"{name}.state_linearity.weight"] = in_their_order(layer["state_kernel"]).T
            ours[f"{name}.state_linearity.bias"] = in_their_order(layer["bias"])
            ours[f"{name}.state_projection.weight"] = np.asarray(layer["projection"]).T
    theirs = {n.removeprefix("grad/"): outputs[n] for n in outputs if n.startswith("grad/")}
    assert sorted(ours) == sorted(theirs)
    largest = max(np.abs(g).max() for n, g in theirs.items() if "layer" in n)
    for name, gradient in theirs.items():
        if "mix" in name:
            assert_close(ours[name], gradient)
        else:
            assert np.abs(ours[name] - gradient).max() <= 1.7e-5 * largest, name


def in_their_order(array):
    """i, j, f, o as i, f, j, o."""
    i, j, f, o = np.split(np.asarray(array), 4, axis=-1)
    return np.concatenate([i, f, j, o], axis=-1)
