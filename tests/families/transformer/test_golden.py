"""Our Transformer against Marian of transformers on PyTorch: every output and every gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.transformer.marian import layer_names
from bert_elmo_jax.families.transformer.model import batch_logits
from bert_elmo_jax.weights.parameter_tree import flatten

from ..close_outputs import assert_close

# No strict dtypes: the encoder is loaded as users load it.


@pytest.fixture(scope="module")
def golden(goldens):
    folder = goldens / "transformer_tiny"
    return load(folder), np.load(folder / "inputs.npz"), np.load(folder / "outputs.npz")


def pair_batch(inputs):
    """Return the golden's inputs as a pair batch."""
    target = inputs["target_in"].astype(np.int32)
    return {
        "source_tokens": inputs["source"].astype(np.int32),
        "source_segments": inputs["source_mask"].astype(np.int32),
        "source_positions": np.broadcast_to(np.arange(24, dtype=np.int32), inputs["source"].shape),
        "target_in": target,
        "target_out": inputs["target_out"].astype(np.int32),
        "target_segments": np.ones_like(target),
        "target_positions": np.broadcast_to(np.arange(20, dtype=np.int32), target.shape),
    }


def test_layers_maps_and_logits(golden):
    model, inputs, outputs = golden
    source = inputs["source_mask"] == 1
    output = model.forward(source=inputs["source"], source_mask=inputs["source_mask"], target=inputs["target_in"])
    for ours, theirs in zip(output.encoder_layers, outputs["encoder_hidden_states"], strict=True):
        assert_close(ours, theirs, source)
    everywhere = np.ones_like(inputs["target_in"], bool)
    for ours, theirs in zip(output.decoder_layers, outputs["decoder_hidden_states"], strict=True):
        assert_close(ours, theirs, everywhere)
    rows = np.broadcast_to(source[None, :, None, :], outputs["encoder_attentions"].shape[:-1])
    assert_close(output.encoder_attentions, outputs["encoder_attentions"], rows)
    assert_close(output.cross_attentions, outputs["cross_attentions"], np.ones(outputs["cross_attentions"].shape, bool))
    assert_close(output.logits, outputs["logits"], everywhere)
    assert output.decoder_attentions.shape == (2, 4, 4, 20, 20)


def test_loss_and_every_gradient(golden):
    model, inputs, outputs = golden
    batch = pair_batch(inputs)
    real = batch["target_out"] != model.config.pad_id

    def loss(params):
        logs = jax.nn.log_softmax(batch_logits(model.config, params, batch))
        chosen = jnp.take_along_axis(logs, batch["target_out"][..., None], -1)[..., 0]
        smoothed = 0.9 * chosen + 0.1 * logs.mean(-1)
        return -(smoothed * real).sum() / real.sum()

    value, gradients = jax.jit(jax.value_and_grad(loss))(model.params)
    assert float(value) == pytest.approx(float(outputs["loss_smoothing_01"]), rel=1e-5)
    theirs = {name.removeprefix("grad/"): outputs[name] for name in outputs.files if name.startswith("grad/")}
    names = {path: f"model.{name}" for path, name in layer_names(model.config).items()}
    names["encoder/embeddings/word"] = "model.shared.weight"
    ours = flatten(gradients)
    assert not np.abs(ours.pop("decoder/output_bias")).any()  # a constant
    assert ours.keys() == names.keys() and set(names.values()) == theirs.keys()
    largest = max(np.abs(gradient).max() for gradient in theirs.values())
    for path, gradient in ours.items():
        expected = theirs[names[path]].T if path.endswith("/kernel") else theirs[names[path]]
        assert np.abs(np.asarray(gradient) - expected).max() <= 1e-5 * largest, path
