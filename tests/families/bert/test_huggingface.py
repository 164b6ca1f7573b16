"""Hugging Face folders in all their variants, read and written."""

import json
import shutil

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bert_elmo_jax import load
from bert_elmo_jax.families.bert.formats import WEIGHTS
from bert_elmo_jax.weights.parameter_tree import flatten

from ..huggingface_models import Model, assert_same, random_params

read_config, read_weights, write = WEIGHTS.read_config, WEIGHTS.read_weights, WEIGHTS.write

HEADS = {  # a task's tree entry -> their names, classes
    "classify": ("classifier", "BertForSequenceClassification", 3),
    "choice": ("classifier", "BertForMultipleChoice", 1),
    "tag": ("classifier", "BertForTokenClassification", 5),
    "span": ("qa_outputs", "BertForQuestionAnswering", 2),
}


def with_head(theirs, head):
    rng = np.random.default_rng(1)
    name, _, classes = HEADS[head]
    tensors = {f"{name}.weight": rng.normal(size=(classes, 64)), f"{name}.bias": rng.normal(size=classes)}
    encoder = {name: value for name, value in theirs.items() if name.startswith("bert.")}
    return encoder | {name: value.astype(np.float32) for name, value in tensors.items()}


def renamed(tensors, old, new):
    return {name.replace(old, new): value for name, value in tensors.items()}


@pytest.fixture(scope="module")
def golden(goldens):
    return read_weights(goldens / "bert_tiny")


def test_every_tensor_of_the_golden_is_mapped(golden, theirs):
    params, report = golden
    assert set(report.mapped.values()) == set(theirs)
    assert not (report.skipped or report.unexpected or report.missing or report.misshaped)
    assert report.heads == ("mlm", "nsp") and set(params) == {"encoder", "mlm", "nsp"}
    flat = flatten(params)
    down, types = flat["encoder/layer_1/feed_forward/down/kernel"], flat["encoder/embeddings/type"]
    np.testing.assert_array_equal(down, theirs["bert.encoder.layer.1.output.dense.weight"].T)
    np.testing.assert_array_equal(types, theirs["bert.embeddings.token_type_embeddings.weight"])
    for path, value in flat.items():
        assert value.dtype == np.float32 and value.flags.c_contiguous and value.flags.owndata, path


@pytest.mark.parametrize("prefix", ["", "module.bert.", "bert.bert.", "모델.bert."])
def test_prefixes(hugging_face, theirs, golden, prefix):
    head_prefix = prefix.removesuffix("bert.")
    tensors = {
        prefix + name.removeprefix("bert.") if name.startswith("bert.") else head_prefix + name: value
        for name, value in theirs.items()
    }
    params, report = read_weights(hugging_face(tensors))
    assert_same(params, golden[0])
    assert not report.unexpected


def test_old_names_of_layer_norms(hugging_face, theirs, golden):
    old = renamed(renamed(theirs, "LayerNorm.weight", "LayerNorm.gamma"), "LayerNorm.bias", "LayerNorm.beta")
    params, report = read_weights(hugging_face(old))
    assert_same(params, golden[0])
    assert report.mapped["encoder/embeddings/norm/scale"] == "bert.embeddings.LayerNorm.gamma"
    both = theirs | {"bert.embeddings.LayerNorm.gamma": np.ones(64, np.float32)}
    with pytest.raises(ValueError, match="the same tensor under an old and a new name"):
        read_weights(hugging_face(both, "both"))


def test_position_ids_and_tied_weights_are_skipped_with_a_reason(hugging_face, theirs, golden):
    more = theirs | {
        "bert.embeddings.position_ids": np.arange(48)[None],
        "cls.predictions.decoder.weight": theirs["bert.embeddings.word_embeddings.weight"],
        "cls.predictions.decoder.bias": theirs["cls.predictions.bias"],
    }
    params, report = read_weights(hugging_face(more))
    assert_same(params, golden[0])
    assert set(report.skipped) == set(more) - set(theirs) and not report.unexpected
    assert "62 tensors mapped" in str(report) and "bert.embeddings.position_ids" in str(report)
    # The bias may be saved under the decoder's name alone.
    renamed_bias = renamed(theirs, "cls.predictions.bias", "cls.predictions.decoder.bias")
    params, report = read_weights(hugging_face(renamed_bias, "alone"))
    assert_same(params, golden[0])
    assert report.mapped["mlm/bias"] == "cls.predictions.decoder.bias" and not report.skipped


@pytest.mark.parametrize(
    ("name", "twin"), [("weight", "bert.embeddings.word_embeddings.weight"), ("bias", "cls.predictions.bias")]
)
def test_a_decoder_of_its_own_leaves_the_head_out_and_says_so(hugging_face, theirs, golden, name, twin):
    untied_tensor = theirs[twin].copy()
    untied_tensor.flat[-1] += 1e-3
    params, report = read_weights(hugging_face(theirs | {f"cls.predictions.decoder.{name}": untied_tensor}))
    assert_same(params, {key: golden[0][key] for key in ("encoder", "nsp")})
    assert report.heads == ("nsp",)
    assert len(report.skipped) == 6
    assert f"cls.predictions.decoder.{name} differs from its tied tensor" in report.skipped["cls.predictions.bias"]


@pytest.mark.parametrize("absent", ["cls.", "cls.predictions", "cls.seq_relationship", "bert.pooler"])
def test_absent_parts_are_absent(hugging_face, theirs, absent):
    params, report = read_weights(hugging_face({k: v for k, v in theirs.items() if not k.startswith(absent)}))
    left = {"cls.": {"encoder"}, "cls.predictions": {"encoder", "nsp"}, "cls.seq_relationship": {"encoder", "mlm"}}
    assert set(params) == left.get(absent, {"encoder", "mlm", "nsp"})
    assert ("pooler" in params["encoder"]) == (absent != "bert.pooler")
    assert not (report.missing or report.unexpected)


@pytest.mark.parametrize("head", HEADS)
def test_task_heads_by_architecture(hugging_face, theirs, head):
    name, architecture, classes = HEADS[head]
    tensors = with_head(theirs, head)
    params, report = read_weights(hugging_face(tensors, architectures=[architecture]))
    assert report.heads == (head,) and params[head]["bias"].shape == (classes,)
    np.testing.assert_array_equal(params[head]["kernel"], tensors[f"{name}.weight"].T)


def test_labels_and_problem_type_come_along(hugging_face, theirs):
    labels, kind = {"0": "부정", "1": "중립", "2": "긍정"}, "single_label_classification"
    fields = {"architectures": ["BertForSequenceClassification"], "id2label": labels, "problem_type": kind}
    _, report = read_weights(hugging_face(with_head(theirs, "classify"), **fields))
    assert report.extras["labels"] == ["부정", "중립", "긍정"]
    assert report.extras["num_labels"] == 3 and report.extras["problem_type"] == kind


def test_a_classifier_that_nothing_explains(hugging_face, theirs):
    folder = hugging_face(with_head(theirs, "tag"), architectures=None)
    params, report = read_weights(folder)
    assert set(params) == {"encoder"}
    assert set(report.skipped) == {"classifier.weight", "classifier.bias"}
    assert "classifier=classify|choice|tag" in report.skipped["classifier.bias"]
    params, report = read_weights(folder, classifier="tag")
    assert params["tag"]["kernel"].shape == (64, 5) and not report.skipped


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_other_floats_become_float32(hugging_face, theirs, golden, dtype):
    params, _ = read_weights(hugging_face({name: value.astype(dtype) for name, value in theirs.items()}))
    for path, value in flatten(params).items():
        np.testing.assert_array_equal(value, flatten(golden[0])[path].astype(dtype).astype(np.float32))


def test_all_missing_and_all_misshaped_tensors_are_named(hugging_face, theirs):
    tensors = {name: value.copy() for name, value in theirs.items()}
    gone = ["bert.encoder.layer.1.attention.self.key.bias", "cls.predictions.transform.dense.weight"]
    gone.append("bert.pooler.dense.bias")
    for name in gone:
        del tensors[name]
    tensors["bert.embeddings.position_embeddings.weight"] = np.ones((47, 64), np.float32)
    tensors["cls.seq_relationship.weight"] = tensors["cls.seq_relationship.weight"].T
    tensors["bert.encoder.layer.0.output.dense.weight"] = np.ones((64, 160), np.int8)
    with pytest.raises(ValueError) as problem:
        read_weights(hugging_face(tensors | {"adapter.weight": np.ones(1, np.float32)}))
    for part in (*gone, "bert.embeddings.position_embeddings.weight: [47, 64], expected [48, 64]", "missing (3)",
                 "cls.seq_relationship.weight: [64, 2], expected [2, 64]", "mis-shaped (3)", "adapter.weight",
                 "bert.encoder.layer.0.output.dense.weight: of int8, expected one of"):  # fmt: skip
        assert part in str(problem.value)


def test_nan_and_infinity_are_named(hugging_face, theirs):
    tensors = {name: value.copy() for name, value in theirs.items()}
    names = ["bert.encoder.layer.0.output.dense.bias", "cls.predictions.bias"]
    tensors[names[0]][3], tensors[names[1]][0] = np.nan, -np.inf
    with pytest.raises(ValueError, match=rf"2 tensors in .* NaN or infinity \(as float32\): {names[0]}, {names[1]}"):
        read_weights(hugging_face(tensors))


def test_another_configuration_and_other_models(hugging_face, theirs):
    for number, (fields, message) in enumerate([
        ({"num_hidden_layers": 4}, r"missing \(16\): bert.encoder.layer.3.attention"),
        ({"vocab_size": 199}, r"word_embeddings.weight: \[200, 64\], expected \[199, 64\]"),
        ({"num_attention_heads": 5}, "5"), ({"model_type": "roberta"}, "roberta"),
    ]):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            read_weights(hugging_face(theirs, str(number), **fields))
    _, report = read_weights(hugging_face(theirs, "fewer", num_hidden_layers=2))
    assert len(report.unexpected) == 16 and all("encoder.layer.2." in name for name in report.unexpected)
    with pytest.raises(ValueError, match="has 2 encoders"):
        read_weights(hugging_face(theirs | renamed(theirs, "bert.", "other.")))
    with pytest.raises(ValueError, match=r"has no such encoder: .* It has 1 tensors: lm_head"):
        read_weights(hugging_face({"lm_head": np.ones(2, np.float32)}, "none"))


def test_pickled_weights_equal_safetensors(tmp_path, goldens, theirs, golden, write_torch):
    shutil.copy(goldens / "bert_tiny" / "config.json", tmp_path)
    write_torch(tmp_path / "pytorch_model.bin", theirs)
    params, report = read_weights(tmp_path)
    assert_same(params, golden[0])
    assert "pytorch_model.bin" in report.source
    shutil.copy(goldens / "bert_tiny" / "model.safetensors", tmp_path)
    _, report = read_weights(tmp_path)
    assert report.source.endswith("model.safetensors (not read: pytorch_model.bin)")


def shard(folder, tensors, kind, save):
    names = sorted(tensors)
    parts = {f"{kind}-{number + 1:05d}-of-00003": names[number::3] for number in range(3)}
    suffix = "safetensors" if kind == "model" else "bin"
    for file, part in parts.items():
        save(folder / f"{file}.{suffix}", {name: tensors[name] for name in part})
    weight_map = {name: f"{file}.{suffix}" for file, part in parts.items() for name in part}
    index = folder / f"{kind}.{suffix}.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))
    return index


@pytest.mark.parametrize("kind", ["model", "pytorch_model"])
def test_shards(tmp_path, goldens, theirs, golden, write_torch, kind):
    shutil.copy(goldens / "bert_tiny" / "config.json", tmp_path)
    index = shard(
        tmp_path, theirs, kind, write_torch if kind == "pytorch_model" else lambda path, part: save_file(part, path)
    )
    params, report = read_weights(tmp_path)
    assert_same(params, golden[0])
    assert index.name in report.source
    places = json.loads(index.read_text())["weight_map"]
    for bad, message in [
        (places | {"x": "../secret.bin"}, r"lists files outside its folder, which is refused: '../secret.bin'"),
        (places | {"x": "/etc/passwd"}, "lists files outside its folder"),
        (places | {"x": next(iter(places.values()))}, "lists tensors that are not in their files: x in"),
        ({"x": 5}, "is not an index of weights|should hold a JSON object"),
    ]:
        index.write_text(json.dumps({"weight_map": bad}))
        with pytest.raises(ValueError, match=message):
            read_weights(tmp_path)
    index.write_text(json.dumps({"weight_map": places | {"x": "gone-1.bin", "y": "gone-2.bin"}}))
    with pytest.raises(FileNotFoundError, match=r"lists 5 files, but 2 of them are missing: gone-1.bin, gone-2.bin"):
        read_weights(tmp_path)
    index.write_text("[]")
    with pytest.raises(ValueError, match=r"is not an index of weights|should hold a JSON object"):
        read_weights(tmp_path)


def test_no_config_and_no_weights(tmp_path, goldens):
    with pytest.raises(FileNotFoundError, match=r"has no config.json, .* or give config="):
        read_weights(tmp_path)
    (tmp_path / "rust_model.ot").touch()
    with pytest.raises(FileNotFoundError, match=r"none of model.safetensors, .* exists \(rust_model.ot is not supp"):
        read_weights(tmp_path, config=read_config(goldens / "bert_tiny"))


@pytest.mark.parametrize("heads", [(), ("mlm", "nsp"), ("classify", "span", "mlm")], ids="+".join)
def test_written_and_read_again_is_the_same(golden, tmp_path, goldens, heads):
    """Parts of a model that no class of transformers has together; the others are in test_huggingface_contract.py."""
    config = read_config(goldens / "bert_tiny")
    params = random_params(Model(config, "", heads, pooler=bool(heads)))
    write(tmp_path / "out", params, config)
    read, report = read_weights(tmp_path / "out")
    assert_same(read, params)
    assert not (report.skipped or report.unexpected) and read_config(tmp_path / "out") == config
    stored = load_file(tmp_path / "out" / "model.safetensors")
    assert all(name.startswith("bert.") for name in stored if "encoder.layer" in name) == bool(heads)


def test_the_config_is_written_with_labels(golden, tmp_path, goldens):
    config = read_config(goldens / "bert_tiny")
    head = {"kernel": np.ones((64, 2), np.float32), "bias": np.zeros(2, np.float32)}
    params = {"encoder": golden[0]["encoder"], "classify": head}
    write(tmp_path, params, config, labels=["부정", "긍정"], problem_type="single_label_classification")
    written = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert written["architectures"] == ["BertForSequenceClassification"]
    assert written["id2label"] == {"0": "부정", "1": "긍정"}
    assert read_weights(tmp_path)[1].extras["labels"] == ["부정", "긍정"]
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(FileExistsError, match=r"already holds weights \(pytorch_model.bin\)"):
        write(tmp_path, golden[0], config)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda p: p.update(extra={"kernel": np.ones(1)}), {}, r"unknown \(1\): extra/kernel"),
        (lambda p: p["nsp"].pop("bias"), {}, r"missing \(1\): nsp/bias"),
        (lambda p: p["encoder"].pop("layer_1"), {}, r"missing \(16\): encoder/layer_1/attention/query/kernel"),
        (lambda p: p["nsp"].update(kernel=np.ones((2, 64))), {}, r"nsp/kernel \[2, 64\], expected \[64, 2\]"),
        (lambda p: p["encoder"].pop("pooler"), {}, "nsp cannot be written without its pooler"),
        (
            lambda p: p.update({h: {"kernel": np.ones((64, 1)), "bias": np.ones(1)} for h in ("tag", "choice")}),
            {},
            "choice and tag would have the same names",
        ),
        (lambda p: None, {"labels": ["a"]}, "1 labels were given for 0 classes"),
    ],
)
def test_invalid_parameters_are_not_written(golden, tmp_path, goldens, change, options, message):
    params = {name: dict(part) for name, part in golden[0].items()}
    change(params)
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "out", params, read_config(goldens / "bert_tiny"), **options)
    assert not (tmp_path / "out").exists()


def test_a_head_that_cannot_be_read_is_named(hugging_face, theirs, caplog):
    name, architecture, _ = HEADS["classify"]
    load(hugging_face(with_head(theirs, "classify"), architectures=["MyClassifier"]))
    assert f"{name}.weight, {name}.bias are left out: config.json names MyClassifier; " in caplog.text
    assert f"write {architecture} or" in caplog.text
    caplog.clear()
    decoder = theirs["bert.embeddings.word_embeddings.weight"] + 1
    load(hugging_face(theirs | {"cls.predictions.decoder.weight": decoder}, "untied"))
    assert "without its head of masked words, as cls.predictions.decoder.weight differs" in caplog.text
