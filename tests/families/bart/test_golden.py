"""Our BART against transformers on PyTorch: every output, every gradient, and every text that it writes."""

import dataclasses
import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.bart.huggingface import weight_file
from bert_elmo_jax.families.bart.model import denoising_logits
from bert_elmo_jax.families.init_params import init_task_params
from bert_elmo_jax.heads.task_head import TaskHead
from bert_elmo_jax.losses import cross_entropy
from bert_elmo_jax.weights.parameter_tree import flatten

from ..close_outputs import assert_close

# No strict dtypes: the encoder is loaded as users load it.
DROPOUT = jax.random.key(3)


@pytest.fixture(scope="module")
def golden(goldens):
    folder = goldens / "bart_tiny"
    return load(folder), np.load(folder / "inputs.npz"), np.load(folder / "outputs.npz")


def test_layers_maps_and_logits(golden):
    model, inputs, outputs = golden
    real = inputs["source_mask"] == 1
    our_output = model.forward(tokens=inputs["source"], mask=inputs["source_mask"], target=inputs["decoder_input"])
    for ours, theirs in zip(our_output.layers, outputs["encoder_hidden_states"], strict=True):
        assert_close(ours, theirs, real)
    everywhere = np.ones_like(inputs["decoder_input"], bool)
    for ours, theirs in zip(our_output.decoder_layers, outputs["decoder_hidden_states"], strict=True):
        assert_close(ours, theirs, everywhere)
    rows = np.broadcast_to(real[None, :, None, :], outputs["encoder_attentions"].shape[:-1])
    assert_close(our_output.attentions, outputs["encoder_attentions"], rows)
    for name in ("cross_attentions", "decoder_attentions"):
        assert_close(getattr(our_output, name), outputs[name], np.ones(outputs[name].shape, bool))
    assert_close(our_output.logits, outputs["logits"], everywhere)


def test_loss_and_every_gradient(golden):
    model, inputs, outputs = golden
    labels = inputs["labels"].astype(np.int32)
    batch = {"source_tokens": inputs["source"], "source_segments": inputs["source_mask"],
             "target_in": inputs["decoder_input"]}  # fmt: skip
    batch = {name: array.astype(np.int32) for name, array in batch.items()}
    batch |= dict.fromkeys(("source_positions", "target_positions", "target_segments"))

    def loss(params):
        logits = denoising_logits(model.config, params, batch)
        total, weight = cross_entropy(logits, jnp.asarray(labels), jnp.asarray(labels >= 0, jnp.float32))
        return total / weight

    value, gradients = jax.jit(jax.value_and_grad(loss))(model.params)
    assert float(value) == pytest.approx(float(outputs["loss"]), rel=1e-5)
    theirs = {name.removeprefix("grad/"): outputs[name] for name in outputs.files if name.startswith("grad/")}
    names = {path: f"model.{name}" for path, name in weight_file(model.config).names(model.config).items()}
    ours = flatten(gradients)
    assert not np.abs(ours.pop("encoder/decoder/output_bias")).any()  # a constant
    assert {names[path] for path in ours} == theirs.keys()
    largest = max(np.abs(gradient).max() for gradient in theirs.values())
    for path, gradient in ours.items():
        expected = theirs[names[path]].T if path.endswith("/kernel") else theirs[names[path]]
        assert np.abs(np.asarray(gradient) - expected).max() <= 1e-5 * largest, path


RULES = ("greedy", "beam", "greedy_unforced", "released", "summary")


@pytest.mark.parametrize("rule", [*RULES[2:], *(pytest.param(rule, marks=pytest.mark.long) for rule in RULES[:2])])
def test_texts_by_the_rules_of_the_folder(golden, goldens, tmp_path, rule):
    """The rules in `generation_config.json` apply without any argument."""
    shutil.copytree(goldens / "bart_tiny", tmp_path / "model")
    changes = json.loads((goldens / "bart_tiny" / "generation_rules.json").read_text())[rule]
    file = tmp_path / "model" / "generation_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    model, inputs, expected = load(tmp_path / "model"), golden[1], np.load(goldens / "bart_tiny" / "generation.npz")
    sources = [row[mask == 1].tolist() for row, mask in zip(inputs["source"], inputs["source_mask"])]
    written = model.generate(source=sources, n_best=changes.get("num_return_sequences", 1))
    for n, texts in enumerate(written):
        sequences = expected[f"{n}/{rule}/sequences"].tolist()
        assert [[2, *text.ids] for text in texts] == [without_padding(sequence) for sequence in sequences]
        if f"{n}/{rule}/scores" in expected:
            np.testing.assert_allclose([text.score for text in texts], expected[f"{n}/{rule}/scores"], rtol=1e-5)


@pytest.mark.parametrize("beams", [1, 2])
def test_an_end_that_is_forced_into_the_last_place_is_no_end(golden, beams):
    model, inputs, _ = golden
    sources = [row[mask == 1].tolist() for row, mask in zip(inputs["source"], inputs["source_mask"])]
    texts = [text for [text] in model.generate(source=sources, max_new=4, min_new=3, beams=beams)]
    assert all(len(text.ids) == 4 and text.ids[-1] == model.config.forced_end_id for text in texts)
    assert not any(text.finished for text in texts)


def without_padding(sequence):
    """Return a sequence up to its second end: it begins with the first."""
    return sequence[: 2 + sequence[1:].index(2)] if 2 in sequence[1:] else sequence


def test_arguments_replace_the_rules_of_the_folder(golden, goldens):
    model, inputs, _ = golden
    expected = np.load(goldens / "bart_tiny" / "generation.npz")
    sources = [row[mask == 1].tolist() for row, mask in zip(inputs["source"], inputs["source_mask"])]
    options = {"no_repeat_ngram_size": 0, "early_stopping": False}
    written = model.generate(source=sources, max_new=19, beams=4, length_penalty=0.6, n_best=3, **options)
    for n, texts in enumerate(written):
        assert [[2, *text.ids] for text in texts] == [
            without_padding(sequence) for sequence in expected[f"{n}/beam/sequences"].tolist()
        ]
    drawn = model.generate(source=sources[:1], temperature=1.0, max_new=5)  # draws have one beam
    assert len(drawn[0][0].ids) <= 5


def test_a_classifier_gives_its_pooled_vectors_and_logits(golden):
    model, _, _ = golden
    head = TaskHead("classification", num_labels=3)
    params = init_task_params(model.family, model.config, head, jax.random.key(0))
    classifier = type(model)(model.config, params, None)
    tokens = np.array([[0, 9, 8, 2], [0, 7, 2, 1]])
    output = classifier.forward(tokens=tokens, mask=np.array([[1, 1, 1, 1], [1, 1, 1, 0]]))
    kernel, bias = (np.asarray(params["classify"][name]) for name in ("kernel", "bias"))
    np.testing.assert_allclose(output.logits, np.asarray(output.pooled) @ kernel + bias, atol=1e-5)
    config = dataclasses.replace(model.config, dropout=0.5)
    module = model.family.build(config, pooler=True)
    pooled = module.apply({"params": params["encoder"]}, tokens, lengths=np.array([4, 3]), rngs={"dropout": DROPOUT})
    np.testing.assert_allclose(pooled.pooled, output.pooled, atol=1e-5)  # deterministic in spite of a key
    assert output.logits.shape == (2, 3) and output.layers.shape[:2] == (model.config.num_layers + 1, 2)
