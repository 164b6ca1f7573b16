"""Our GPT-2 and GPT-1 against transformers on PyTorch: every output and every gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

from bert_elmo_jax import load
from bert_elmo_jax.families.gpt.huggingface import GPT2_WEIGHTS, read_weights, write
from bert_elmo_jax.weights.parameter_tree import flatten

# No strict dtypes: the model is loaded as users load it.


@pytest.fixture(scope="module")
def gpt2(goldens):
    folder = goldens / "gpt2_tiny"
    return load(folder), dict(np.load(folder / "inputs.npz")), dict(np.load(folder / "outputs.npz"))


@pytest.fixture(scope="module")
def gpt1(goldens):
    return load(goldens / "gpt_tiny"), dict(np.load(goldens / "gpt_tiny" / "golden.npz"))


def assert_close(ours, theirs, real):
    """Check that the error at real positions is at most 1e-5 of the largest value."""
    assert ours.shape == theirs.shape
    assert np.abs(np.asarray(ours) - theirs)[real].max() <= 1e-5 * np.abs(theirs[real]).max()


def next_piece_loss(model, tokens, segments, labels):
    """Return the loss as transformers computes it: labels are shifted by one, and -100 is not counted."""
    targets = labels[:, 1:]

    def loss(params):
        module, head = model.family.build(model.config), model.family.head("lm", model.config)
        last = module.apply({"params": params["encoder"]}, tokens, None, None, segments).last
        logits = head.apply({}, last, params["encoder"]["embeddings"]["word"])[:, :-1]
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), np.maximum(targets, 0)[..., None], -1)[..., 0]
        return -(chosen * (targets >= 0)).sum() / (targets >= 0).sum()

    return loss


def test_layers_maps_and_logits_of_gpt2(gpt2):
    model, inputs, outputs = gpt2
    real = inputs["attention_mask"] == 1
    assert not real.all()
    output = model.forward(tokens=inputs["input_ids"], mask=inputs["attention_mask"])
    for ours, theirs in zip(output.layers, outputs["hidden_states"], strict=True):
        assert_close(ours, theirs, real)
    rows = np.broadcast_to(real[None, :, None, :], outputs["attentions"].shape[:-1])
    assert_close(output.attentions, outputs["attentions"], rows)
    assert_close(output.logits, outputs["logits"], real)
    np.testing.assert_array_equal(output.last, output.layers[-1])  # after the final norm
    assert output.head == "lm" and output.mlm_logits is output.nsp_logits is output.pooled is None


def test_loss_and_every_gradient_of_gpt2(gpt2):
    model, inputs, outputs = gpt2
    segments = inputs["attention_mask"].astype(np.int32)
    loss = next_piece_loss(model, inputs["input_ids"].astype(np.int32), segments, inputs["labels"])
    value, gradients = jax.jit(jax.value_and_grad(loss))(model.params)
    assert float(value) == pytest.approx(float(outputs["loss"]), rel=1e-5)
    ours = flatten(gradients)
    names = {path: f"grad/transformer.{name}" for path, name in GPT2_WEIGHTS.names(3).items()}
    largest = max(np.abs(value).max() for name, value in outputs.items() if name.startswith("grad/"))
    seen = set()
    for path, gradient in ours.items():
        name, part = names[path], None
        for number, which in enumerate(("query", "key", "value")):
            if f".c_attn.{which}" in name:
                name, part = name.replace(f".{which}", ""), number
        wanted = outputs[name] if part is None else np.split(outputs[name], 3, axis=-1)[part]
        seen.add(name)
        assert np.abs(np.asarray(gradient) - wanted).max() <= 1e-5 * largest, path
    assert seen == {name for name in outputs if name.startswith("grad/")}


def test_layers_logits_and_loss_of_gpt1(gpt1):
    model, golden = gpt1
    tokens = golden["input_ids"].astype(np.int32)
    output = model.forward(tokens=tokens)
    everywhere = np.ones(tokens.shape, bool)
    for ours, theirs in zip(output.layers, golden["hidden_states"], strict=True):
        assert_close(ours, theirs, everywhere)
    assert_close(output.logits, golden["logits"], everywhere)
    value = next_piece_loss(model, tokens, None, tokens)(model.params)
    assert float(value) == pytest.approx(float(golden["loss"]), rel=1e-5)


@pytest.mark.parametrize("name", ["gpt2_tiny", "gpt_tiny"])
def test_written_the_tensors_are_the_same(goldens, tmp_path, name):
    model = load(goldens / name)
    write(tmp_path / "out", model.params, model.config)
    stored, again = (load_file(path / "model.safetensors") for path in (goldens / name, tmp_path / "out"))
    assert stored.keys() == again.keys()
    for tensor in stored:
        np.testing.assert_array_equal(again[tensor], stored[tensor])
    assert load(tmp_path / "out").config == model.config
    assert not read_weights(tmp_path / "out")[1].skipped


def test_a_text_longer_than_the_model(gpt1):
    model, _ = gpt1
    with pytest.raises(ValueError, match="rows of 41 tokens were given to a model with 40 positions"):
        model.forward(tokens=np.zeros((1, 41), np.int32))


def test_a_folder_without_a_tokenizer_takes_ids_only(gpt1):
    model, _ = gpt1
    with pytest.raises(ValueError, match=r"has no tokenizer.*forward\(\) takes ids"):
        model.encode(["a"])


@pytest.mark.parametrize("fixture", ["gpt1", "gpt2"])
def test_a_piece_sees_none_after_it(fixture, request):
    model = request.getfixturevalue(fixture)[0]
    tokens = np.arange(24, dtype=np.int32).reshape(2, 12)
    changed = tokens.copy()
    changed[:, 7:] += 30
    ours, theirs = (np.asarray(model.forward(tokens=ids).logits) for ids in (tokens, changed))
    np.testing.assert_array_equal(ours[:, :7], theirs[:, :7])
    assert np.abs(ours[:, 7:] - theirs[:, 7:]).max() > 0.1
