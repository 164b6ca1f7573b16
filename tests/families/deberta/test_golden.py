"""DeBERTa against transformers: layers, maps, every head's logits, loss and gradients, tokenizers, files."""

import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bert_elmo_jax import load
from bert_elmo_jax.losses import cross_entropy
from bert_elmo_jax.text import load_tokenizer

from ..close_outputs import assert_close

MODELS = ["deberta_v3_tiny/mlm_legacy", "deberta_v3_tiny/mlm", "deberta_v3_tiny/classifier", "deberta_v3_tiny/tagger",
          "deberta_v3_tiny/qa", "deberta_v1_tiny/mlm", "deberta_v1_tiny/classifier"]  # fmt: skip
HEADS = {"mlm_legacy": "mlm", "mlm": "mlm", "classifier": "classify", "tagger": "tag", "qa": "span"}
MASKED = [name for name in MODELS if "/mlm" in name]


@pytest.fixture(scope="module", params=MODELS)
def golden(request, goldens):
    """Return a model's head, the model, and the frozen inputs and outputs."""
    folder = goldens / request.param
    inputs, outputs = (dict(np.load(file)) for file in (folder.parent / "inputs.npz", folder / "outputs.npz"))
    return HEADS[folder.name], load(folder), inputs, outputs


def test_all_outputs(golden):
    head, model, inputs, outputs = golden
    mask = inputs["attention_mask"]
    real, output = mask == 1, model.forward(inputs["input_ids"], inputs["token_type_ids"], mask)
    if head == "span":
        assert_close(output.logits[..., 0], outputs["start_logits"], real)
        assert_close(output.logits[..., 1], outputs["end_logits"], real)
    else:
        theirs = outputs["mlm_logits" if head == "mlm" else "logits"]
        assert_close(output.logits, theirs, real if theirs.ndim == 3 else slice(None))
    for ours, theirs in zip(output.layers, outputs.get("hidden_states", output.layers), strict=True):
        assert_close(ours, theirs, real)
    for ours, theirs in zip(output.attentions, outputs.get("attentions", output.attentions), strict=True):
        assert_close(ours, theirs, np.broadcast_to(real[:, None], theirs.shape[:-1]))
    if "pooled" in outputs:
        assert_close(output.pooled, outputs["pooled"])
    if "left/last_hidden_state" in outputs:
        left = inputs["left/attention_mask"]
        output = model.forward(inputs["left/input_ids"], mask=left)
        assert_close(output.last, outputs["left/last_hidden_state"], left == 1)
    if "short/first_8_ids_of_rows_0_and_1" in outputs:
        output = model.forward(inputs["input_ids"][:2, :8])
        assert_close(output.last, outputs["short/first_8_ids_of_rows_0_and_1"])


def head_loss(model, head, inputs):
    """Return the loss that transformers computes for a head, as a function of the parameters."""
    arrays = {name: jnp.asarray(array.astype(np.int32)) for name, array in inputs.items()}
    family, config = model.family, model.config

    def mean(logits, labels):
        total, weight = cross_entropy(logits, labels, (labels >= 0).astype(jnp.float32))
        return total / weight

    def loss(params):
        module = family.build(config, pooler=head == "classify")
        output = module.apply({"params": params["encoder"]}, arrays["input_ids"], None, None, arrays["attention_mask"])
        if head == "mlm":
            words = params["encoder"]["embeddings"]["word"]
            return mean(family.head("mlm", config).apply({"params": params["mlm"]}, output.last, words),
                        arrays["mlm_labels"])  # fmt: skip
        layer = params[head]
        logits = (output.pooled if head == "classify" else output.last) @ layer["kernel"] + layer["bias"][None]
        return mean(logits, arrays["classes" if head == "classify" else "tags"])

    return loss


# Not "qa": the loss of transformers counts the logits of padding, which differ.
TRAINED = [
    pytest.param(name, marks=[pytest.mark.long] * ("/mlm" not in name or "legacy" in name))
    for name in MODELS
    if "/qa" not in name
]


@pytest.mark.parametrize("golden", TRAINED, indirect=True)
def test_loss_and_gradients(golden, tmp_path):
    head, model, inputs, outputs = golden
    with jax.numpy_rank_promotion("allow"):
        loss = jax.jit(jax.value_and_grad(head_loss(model, head, inputs)))
        value, gradients = loss({name: model.params[name] for name in ("encoder", head)})
    assert float(value) == pytest.approx(float(outputs["loss"]), rel=1e-5)
    # Written like weights, gradients have transformers' names.
    model.family.formats["huggingface"].write(tmp_path / "out", jax.device_get(gradients), model.config)
    ours = load_file(tmp_path / "out" / "model.safetensors")
    theirs = {name.removeprefix("grad/"): array for name, array in outputs.items() if name.startswith("grad/")}
    largest = max(np.abs(array).max() for array in theirs.values())
    assert len(theirs) >= 5 and theirs.keys() <= ours.keys()
    for name, array in theirs.items():
        assert np.abs(ours[name] - array).max() <= 1e-5 * largest, name


@pytest.mark.parametrize("name", MODELS)
def test_written_the_tensors_are_the_same(goldens, tmp_path, name):
    model = load(goldens / name)
    model.family.formats["huggingface"].write(tmp_path / "out", model.params, model.config)
    stored, again = (load_file(path / "model.safetensors") for path in (goldens / name, tmp_path / "out"))
    assert stored.keys() == again.keys()
    for tensor in stored:
        np.testing.assert_array_equal(again[tensor], stored[tensor])
    assert load(tmp_path / "out").config == model.config


@pytest.fixture
def released(goldens, tmp_path):
    """Return a folder as version 3 is released: few fields, its own names, tensors that no model reads."""
    for name in ("spm.model", "tokenizer_config.json"):
        shutil.copy(goldens / "deberta_v3_tiny" / name, tmp_path)
    config = json.loads((goldens / "deberta_v3_tiny/classifier/config.json").read_text())
    config = {name: value for name, value in config.items() if name not in ("id2label", "label2id")}
    (tmp_path / "config.json").write_text(json.dumps(config))
    tensors = load_file(goldens / "deberta_v3_tiny/mlm/model.safetensors")
    tensors["mask_predictions.dense.weight"] = np.zeros((24, 24), np.float32)
    tensors["deberta.embeddings.position_embeddings.weight"] = np.zeros((24, 24), np.float32)
    save_file(tensors, tmp_path / "model.safetensors")
    return tmp_path


def test_a_released_folder_fills_masks(released, goldens, caplog):
    model = load(released)
    assert model.heads == ("mlm",) and not caplog.records
    ids = model.tokenizer.encode("The [MASK] had risen").ids
    assert ids.max() == model.tokenizer.mask_id == 260
    logits = model.forward(ids[None]).logits[0, list(ids).index(260), :261]
    assert model.fill_mask("The [MASK] had risen", top=1)[0].piece == model.tokenizer.tokens[int(np.argmax(logits))]
    np.testing.assert_array_equal(
        model.params["mlm"]["bias"], load(goldens / "deberta_v3_tiny/mlm").params["mlm"]["bias"]
    )


@pytest.mark.parametrize("name", ["deberta_v3_tiny", "deberta_v1_tiny"])
def test_tokenizers(goldens, tmp_path, name):
    tokenizer = load_tokenizer(goldens / name)
    tokenizer.save(tmp_path / "saved")
    again = load_tokenizer(tmp_path / "saved")
    assert tokenizer.fingerprint == again.fingerprint and again.tokens[again.mask_id] == "[MASK]"
    for entry in json.loads((goldens / name / "encodings.json").read_text("utf-8")):
        texts = entry["text"] if isinstance(entry["text"], list) else [entry["text"]]
        for encoding in (tokenizer.encode(*texts), again.encode(*texts)):
            assert encoding.ids.tolist() == entry["ids"]
            assert encoding.types.tolist() == entry["types"]
            if name == "deberta_v1_tiny":
                assert encoding.offsets.tolist() == entry["offsets"]
