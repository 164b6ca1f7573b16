"""Our RoBERTa against transformers on PyTorch: every output and every gradient, and left padding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

from bert_elmo_jax import load
from bert_elmo_jax.families.roberta.huggingface import WEIGHTS, read_weights, write
from bert_elmo_jax.weights.parameter_tree import flatten

# No strict dtypes: the encoder is loaded as users load it.
TABLE = {ours: ("roberta." if ours.startswith("encoder/") else "") + name for ours, name in WEIGHTS.names(3).items()}


@pytest.fixture(scope="module")
def golden(goldens):
    folder = goldens / "roberta_tiny"
    return load(folder), np.load(folder / "inputs.npz"), np.load(folder / "outputs.npz")


def assert_close(ours, theirs, real):
    """Check that the error at real positions is at most 1e-5 of the largest value."""
    assert ours.shape == theirs.shape
    assert np.abs(np.asarray(ours) - theirs)[real].max() <= 1e-5 * np.abs(theirs[real]).max()


def test_layers_maps_and_logits(golden):
    model, inputs, outputs = golden
    real = inputs["attention_mask"] == 1
    output = model.forward(inputs["input_ids"], np.zeros_like(inputs["input_ids"]), inputs["attention_mask"])
    for ours, theirs in zip(output.layers, outputs["hidden_states"], strict=True):
        assert_close(ours, theirs, real)
    rows = np.broadcast_to(real[None, :, None, :], outputs["attentions"].shape[:-1])
    assert_close(output.attentions, outputs["attentions"], rows)
    assert_close(output.logits, outputs["logits"], real)
    assert output.logits is output.mlm_logits and output.nsp_logits is output.pooled is None


def test_padded_on_the_left_the_numbers_are_the_same(golden):
    model, inputs, outputs = golden
    shifts = 40 - inputs["attention_mask"].sum(1)
    ids, mask, logits = (
        np.stack([np.roll(row, shift, axis=0) for row, shift in zip(array, shifts)])
        for array in (inputs["input_ids"], inputs["attention_mask"], outputs["logits"])
    )
    assert mask[:, 0].sum() == 1  # three rows begin with padding
    assert_close(model.forward(ids, mask=mask).logits, logits, mask == 1)


def test_loss_and_every_gradient(golden):
    model, inputs, outputs = golden
    labels, segments = inputs["labels"], inputs["attention_mask"].astype(np.int32)
    tokens = inputs["input_ids"].astype(np.int32)

    def loss(params):
        module, head = model.family.build(model.config), model.family.head("mlm", model.config)
        last = module.apply({"params": params["encoder"]}, tokens, None, None, segments).last
        logits = head.apply({"params": params["mlm"]}, last, params["encoder"]["embeddings"]["word"])
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), np.maximum(labels, 0)[..., None], -1)[..., 0]
        return -(chosen * (labels >= 0)).sum() / (labels >= 0).sum()

    value, gradients = jax.jit(jax.value_and_grad(loss))(model.params)
    assert float(value) == pytest.approx(float(outputs["loss"]), rel=1e-5)
    theirs = {name.removeprefix("grad/"): outputs[name] for name in outputs.files if name.startswith("grad/")}
    ours = flatten(gradients)
    assert len(ours) == len(theirs)
    largest = max(np.abs(gradient).max() for gradient in theirs.values())
    for path, gradient in ours.items():
        wanted = theirs[TABLE[path]].T if path.endswith("/kernel") else theirs[TABLE[path]]
        assert np.abs(np.asarray(gradient) - wanted).max() <= 1e-5 * largest, path


def test_written_the_tensors_are_the_same(golden, goldens, tmp_path):
    model, *_ = golden
    write(tmp_path / "out", model.params, model.config)
    stored, again = (load_file(path / "model.safetensors") for path in (goldens / "roberta_tiny", tmp_path / "out"))
    assert stored.keys() == again.keys()
    for name, tensor in stored.items():
        np.testing.assert_array_equal(again[name], tensor)
    assert load(tmp_path / "out").config == model.config
    assert not read_weights(tmp_path / "out")[1].skipped


def test_packed_texts_have_the_vectors_of_padded_ones(golden):
    model, *_ = golden
    texts = ["The sea", ("a ship", "the harbour at night"), "배를 타고", ["two", "words"], "x"]
    packed = model.encode(texts)
    assert packed.last.shape[0] == 5 and model.work.positions < 5 * packed.last.shape[1]  # texts share rows
    for n, text in enumerate(texts):
        [encoding] = [packed.texts[n]]
        alone = model.forward(encoding.ids[None]).last[0]
        np.testing.assert_allclose(packed.last[n, : len(encoding)], alone, atol=2e-5)
        assert len(encoding) == len(model.encode([text]).texts[0])


def test_fill_mask(golden):
    model, *_ = golden
    guesses = model.fill_mask("The <mask> and the <mask>", top=2)
    assert [guess.mask for guess in guesses] == [0, 0, 1, 1]
    ids = model.tokenizer.encode("The <mask> and the <mask>").ids
    logits = model.forward(ids[None]).logits[0, np.flatnonzero(ids == model.tokenizer.mask_id)]
    assert [guess.piece for guess in guesses[::2]] == [model.tokenizer.tokens[i] for i in np.argmax(logits, axis=-1)]
