"""Our ELECTRA against transformers on PyTorch: both networks, every output and every gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

from bert_elmo_jax import load
from bert_elmo_jax.families.electra.huggingface import WEIGHTS, read_weights, write
from bert_elmo_jax.losses import binary_cross_entropy, cross_entropy
from bert_elmo_jax.weights.parameter_tree import flatten

# No strict dtypes: the encoder is loaded as users load it.
TABLE = {ours: ("electra." if ours.startswith("encoder/") else "") + name for ours, name in WEIGHTS.names(3).items()}
HEADS = {"discriminator": "replaced", "generator": "mlm"}


@pytest.fixture(scope="module", params=HEADS)
def golden(request, goldens):
    folder, name = goldens / "electra_tiny", request.param
    inputs, outputs = np.load(folder / "inputs.npz"), np.load(folder / "outputs.npz")
    given = {key: inputs[key] for key in ("input_ids", "token_type_ids", "attention_mask")}
    theirs = {key.split("/", 1)[1]: outputs[key] for key in outputs.files if key.startswith(f"{name}/")}
    return load(folder / name), HEADS[name], given | {"labels": inputs[f"{name}/labels"]}, theirs


def assert_close(ours, theirs, real):
    """Check that the error at real positions is at most 1e-5 of the largest value."""
    assert ours.shape == theirs.shape
    assert np.abs(np.asarray(ours) - theirs)[real].max() <= 1e-5 * np.abs(theirs[real]).max()


def test_layers_maps_and_logits(golden):
    model, head, inputs, theirs = golden
    real = inputs["attention_mask"] == 1
    output = model.forward(inputs["input_ids"], inputs["token_type_ids"], inputs["attention_mask"])
    assert output.head == head and output.nsp_logits is output.pooled is None
    assert (output.mlm_logits is None) == (head == "replaced")
    assert_close(output.logits, theirs["logits"], real)
    for ours, wanted in zip(output.layers, theirs.get("hidden_states", output.layers), strict=True):
        assert_close(ours, wanted, real)
    if "attentions" in theirs:
        maps = theirs["attentions"]
        ours = output.attentions[: maps.shape[0], : maps.shape[1]]
        assert_close(ours, maps, np.broadcast_to(real[None, : maps.shape[1], None, :], maps.shape[:-1]))


def test_loss_and_every_gradient(golden):
    model, head, inputs, theirs = golden
    tokens, types, segments = (
        inputs[name].astype(np.int32) for name in ("input_ids", "token_type_ids", "attention_mask")
    )
    labels = inputs["labels"].astype(np.int32)

    def loss(params):
        module = model.family.build(model.config)
        last = module.apply({"params": params["encoder"]}, tokens, types, None, segments).last
        words = params["encoder"]["embeddings"]["word"]
        logits = model.family.head(head, model.config).apply({"params": params[head]}, last, words)
        if head == "mlm":
            total, weight = cross_entropy(logits, jnp.asarray(labels), jnp.asarray(labels >= 0).astype(jnp.float32))
        else:
            total, weight = binary_cross_entropy(logits, jnp.asarray(labels == 1), jnp.asarray(segments))
        return total / weight

    value, gradients = jax.jit(jax.value_and_grad(loss))(model.params)
    assert float(value) == pytest.approx(float(theirs["loss"]), rel=1e-5)
    wanted = {name.removeprefix("grad/"): value for name, value in theirs.items() if name.startswith("grad/")}
    ours = flatten(gradients)
    assert {TABLE[path] for path in ours} >= wanted.keys() and len(wanted) >= 12
    largest = max(np.abs(gradient).max() for gradient in wanted.values())
    for path, gradient in ours.items():
        if (name := TABLE[path]) in wanted:
            expected = wanted[name].T if path.endswith("/kernel") else wanted[name]
            assert np.abs(np.asarray(gradient) - expected).max() <= 1e-5 * largest, path


def test_written_the_tensors_are_the_same(golden, goldens, tmp_path):
    model, head, *_ = golden
    write(tmp_path / "out", model.params, model.config)
    folder = goldens / "electra_tiny" / {kind: name for name, kind in HEADS.items()}[head]
    stored, again = (load_file(path / "model.safetensors") for path in (folder, tmp_path / "out"))
    assert stored.keys() == again.keys()
    for name, tensor in stored.items():
        np.testing.assert_array_equal(again[name], tensor)
    assert load(tmp_path / "out").config == model.config
    assert not read_weights(tmp_path / "out")[1].skipped


def test_only_the_generator_fills_masks(golden):
    model, head, *_ = golden
    if head == "mlm":
        assert [guess.mask for guess in model.fill_mask("[MASK] [MASK]", top=2)] == [0, 0, 1, 1]
    else:
        with pytest.raises(ValueError, match="has no masked-language-model head; it has: replaced"):
            model.fill_mask("[MASK]")
