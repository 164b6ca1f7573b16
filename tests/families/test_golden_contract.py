"""Frozen models of transformers on PyTorch: our layers, maps, logits, gradients and files equal theirs.

`bert/` and `modernbert/` have golden tests of their own, with names of tensors that do not come from the package.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

from bert_elmo_jax import load
from bert_elmo_jax.families.albert.formats import WEIGHTS as ALBERT
from bert_elmo_jax.families.distilbert.formats import WEIGHTS as DISTILBERT
from bert_elmo_jax.families.electra.formats import WEIGHTS as ELECTRA
from bert_elmo_jax.families.eurobert.formats import WEIGHTS as EUROBERT
from bert_elmo_jax.families.gpt.huggingface import GPT1_WEIGHTS, GPT2_WEIGHTS
from bert_elmo_jax.families.mpnet.formats import WEIGHTS as MPNET
from bert_elmo_jax.families.roberta.formats import WEIGHTS as ROBERTA
from bert_elmo_jax.losses import binary_cross_entropy, cross_entropy
from bert_elmo_jax.weights.parameter_tree import flatten

from .close_outputs import assert_close

# No strict dtypes: the models are loaded as users load them.
FOLDERS = {
    "distilbert_tiny": (DISTILBERT, "mlm"),
    "roberta_tiny": (ROBERTA, "mlm"),
    "electra_tiny/generator": (ELECTRA, "mlm"),
    "electra_tiny/discriminator": (ELECTRA, "replaced"),
    "mpnet_tiny": (MPNET, "mlm"),
    "albert_tiny/pretraining": (ALBERT, "mlm"),
    "albert_tiny/mlm": (ALBERT, "mlm"),
    "eurobert_tiny/mlm": (EUROBERT, "mlm"),
    "gpt2_tiny": (GPT2_WEIGHTS, "lm"),
    "gpt_tiny": (GPT1_WEIGHTS, "lm"),
}


class Golden(NamedTuple):
    """A model, the name of its head, the map of its tensors, and the frozen inputs and outputs."""

    folder: str
    model: object
    head: str
    weights: object
    inputs: dict
    outputs: dict

    @property
    def mask(self):
        return self.inputs.get("attention_mask", np.ones_like(self.inputs["input_ids"]))


@pytest.fixture(scope="module", params=FOLDERS)
def golden(request, goldens):
    folder, (weights, head) = goldens / request.param, FOLDERS[request.param]
    if request.param == "gpt_tiny":
        outputs = dict(np.load(folder / "golden.npz"))
        inputs = {"input_ids": outputs["input_ids"], "labels": outputs["input_ids"]}
        return Golden(request.param, load(folder), head, weights, inputs, outputs)
    arrays = folder if (folder / "inputs.npz").exists() else folder.parent
    of_folder = folder if (folder / "outputs.npz").exists() else arrays
    inputs, outputs = (dict(np.load(path)) for path in (arrays / "inputs.npz", of_folder / "outputs.npz"))
    if of_folder != folder:  # two models with the same inputs
        outputs = {name.removeprefix(f"{folder.name}/"): array for name, array in outputs.items()
                   if name.startswith(f"{folder.name}/")}  # fmt: skip
        inputs["labels"] = inputs[f"{folder.name}/labels"]
    inputs, outputs = (
        {name.removeprefix("mlm_"): array for name, array in arrays.items()} for arrays in (inputs, outputs)
    )
    return Golden(request.param, load(folder), head, weights, inputs, outputs)


def test_layers_maps_and_logits(golden):
    real, outputs = golden.mask == 1, golden.outputs
    output = golden.model.forward(golden.inputs["input_ids"], golden.inputs.get("token_type_ids"), golden.mask)
    assert_close(output.logits, outputs["logits"], real)
    for ours, theirs in zip(output.layers, np.asarray(outputs.get("hidden_states", output.layers)), strict=True):
        assert_close(ours, theirs, real)
    if "attentions" in outputs:
        maps = outputs["attentions"]
        rows = np.broadcast_to(real[None, : maps.shape[1], None, :], maps.shape[:-1])
        assert_close(output.attentions[: maps.shape[0], : maps.shape[1]], maps, rows)
    np.testing.assert_array_equal(output.last, output.layers[-1])  # a GPT-2's after its final norm
    assert output.head == golden.head
    for ours, theirs in ((output.nsp_logits, "sop_logits"), (output.pooled, "pooled")):
        assert (ours is None) == (theirs not in outputs)
        if ours is not None:
            assert_close(ours, outputs[theirs], slice(None))
    assert (output.mlm_logits is None) == (golden.head != "mlm")


def tensor_of(golden, path):
    """Return their gradient for one of our parameters, or None if it was not stored."""
    prefix = golden.weights.prefix if path.startswith("encoder/") else ""
    name, part = prefix + golden.weights.names(golden.model.config)[path], None
    for number, query_key_value in enumerate(("query", "key", "value")):  # one tensor in GPT-2
        if f".c_attn.{query_key_value}" in name:
            name, part = name.replace(f".{query_key_value}", ""), number
    theirs = golden.outputs.get(f"grad/{name}")
    if theirs is None:
        return name, None
    if part is not None:
        return name, np.split(theirs, 3, axis=-1)[part]
    return name, theirs.T if path.endswith("/kernel") and golden.head != "lm" else theirs


def test_loss_and_every_gradient(golden):
    model, head = golden.model, golden.head
    tokens, segments = (array.astype(np.int32) for array in (golden.inputs["input_ids"], golden.mask))
    types = golden.inputs.get("token_type_ids")
    labels = golden.inputs["labels"].astype(np.int32)

    def loss(params):
        module = model.family.build(model.config, pooler="nsp" in params)
        output = module.apply({"params": params["encoder"]}, tokens, types, None, segments)
        last = output.last
        words = params["encoder"]["embeddings"]["word"]
        logits = model.family.head(head, model.config).apply({"params": params.get(head, {})}, last, words)
        if head == "replaced":
            total, weight = binary_cross_entropy(logits, jnp.asarray(labels == 1), jnp.asarray(segments))
        else:  # transformers shifts the labels of language models by one; -100 is not counted
            logits, targets = (logits[:, :-1], labels[:, 1:]) if head == "lm" else (logits, labels)
            total, weight = cross_entropy(logits, jnp.asarray(targets), jnp.asarray(targets >= 0, jnp.float32))
        if "nsp" in params:
            order = model.family.head("nsp", model.config).apply({"params": params["nsp"]}, output.pooled)
            further, count = cross_entropy(
                order, jnp.asarray(golden.inputs["sop_labels"], np.int32), jnp.ones(len(order))
            )
            return total / weight + further / count
        return total / weight

    value, gradients = jax.jit(jax.value_and_grad(loss))(model.params)
    assert float(value) == pytest.approx(float(golden.outputs["loss"]), rel=1e-5)
    stored = {name.removeprefix("grad/") for name in golden.outputs if name.startswith("grad/")}
    assert (len(stored) >= 12) == (golden.folder not in ("gpt_tiny", "albert_tiny/mlm"))
    largest, compared = max((np.abs(golden.outputs[f"grad/{name}"]).max() for name in stored), default=0), set()
    for path, gradient in flatten(gradients).items():
        name, theirs = tensor_of(golden, path)
        if theirs is not None:
            compared.add(name)
            assert np.abs(np.asarray(gradient) - theirs).max() <= 1e-5 * largest, path
        else:
            assert golden.folder.startswith(("electra_tiny", "gpt_tiny", "albert_tiny/mlm")), (
                f"no gradient of {name} is stored"
            )
    assert compared == stored


@pytest.mark.parametrize("name", [*FOLDERS, "bert_tiny", "modernbert_tiny", "transformer_tiny"])
def test_written_the_tensors_are_the_same(goldens, tmp_path, name):
    model = load(goldens / name)
    [form] = [form for form in model.family.formats.values() if form.write is not None and form.files(goldens / name)]
    form.write(tmp_path / "out", model.params, model.config)
    stored, again = (load_file(path / "model.safetensors") for path in (goldens / name, tmp_path / "out"))
    assert stored.keys() == again.keys()
    for tensor in stored:
        np.testing.assert_array_equal(again[tensor], stored[tensor])
    assert load(tmp_path / "out").config == model.config
    assert not form.read_weights(tmp_path / "out")[1].skipped


def test_fill_mask(golden):
    model, mask = golden.model, "<mask>" if golden.folder in ("roberta_tiny", "mpnet_tiny") else "[MASK]"
    if golden.head == "mlm" and model.reads is not None:
        guesses = model.fill_mask(f"The {mask} and the {mask}", top=2)
        assert [guess.mask for guess in guesses] == [0, 0, 1, 1]
        ids = model.tokenizer.encode(f"The {mask} and the {mask}").ids
        logits = model.forward(ids[None]).logits[0, np.flatnonzero(ids == model.tokenizer.mask_id)]
        assert [guess.piece for guess in guesses[::2]] == [model.tokenizer.tokens[i] for i in np.argmax(logits, -1)]
    elif golden.head == "replaced":
        with pytest.raises(ValueError, match="has no masked-language-model head; it has: replaced"):
            model.fill_mask(mask)
