"""Adapters of peft, read and written; the goldens are made by tests/goldens/make_peft.py."""

import json
import re
import shutil

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bert_elmo_jax import load
from bert_elmo_jax.families import find_family
from bert_elmo_jax.families.peft_files import CONFIG, WEIGHTS, read_adapter, write_adapter
from bert_elmo_jax.heads import Classify
from bert_elmo_jax.inference import save_adapter
from bert_elmo_jax.inference.adapter_files import join_trained
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.optim import count_params, list_adapters, lora
from bert_elmo_jax.weights.parameter_tree import flatten

from ..conftest import GOLDENS

MODELS = {
    "peft_bert": "bert_tiny",
    "peft_bert_words": "bert_tiny",
    "peft_gpt2": "gpt2_tiny",
    "peft_modernbert": "modernbert_tiny",
}


@pytest.mark.parametrize("name", MODELS)
def test_an_adapter_of_peft_gives_its_numbers(name):
    encoder = load(GOLDENS / MODELS[name], adapter=GOLDENS / name)
    with np.load(GOLDENS / name / "outputs.npz") as file:
        outputs = dict(file)
    mask = outputs["attention_mask"].astype(bool)
    inputs = {"tokens": outputs["input_ids"].astype(np.int32), "segments": mask.astype(np.int32)}
    result = encoder.module.apply(encoder.variables, **inputs)
    np.testing.assert_allclose(np.asarray(result.last)[mask], outputs["last"][mask], rtol=1e-5, atol=1e-5)
    plain = load(GOLDENS / MODELS[name])
    assert np.abs(np.asarray(plain.module.apply(plain.variables, **inputs).last) - outputs["last"])[mask].max() > 0.1
    if "logits" in outputs:
        logits = Classify(2).apply({"params": encoder.params["classify"]}, result.pooled)
        np.testing.assert_allclose(logits, outputs["logits"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_a_written_adapter_is_read_again(name, tmp_path):
    encoder = load(GOLDENS / MODELS[name])
    family = find_family(encoder.config)
    adapter = read_adapter(GOLDENS / name, family, encoder.config)
    params = join_trained(encoder.params, {**adapter.parts, "adapters": adapter.adapters}, adapter.merge)
    write_adapter(tmp_path / "same", family, encoder.config, adapter.adapters, adapter.merge, adapter.parts, params)
    again = read_adapter(tmp_path / "same", family, encoder.config)
    expected, loaded = (
        flatten(one.merge(encoder.params, one.adapters) | {"parts": one.parts}) for one in (adapter, again)
    )
    assert expected.keys() == loaded.keys()
    for path, value in expected.items():
        np.testing.assert_allclose(loaded[path], value, atol=1e-5, err_msg=path)
    theirs, ours = (load_file(folder / WEIGHTS) for folder in (GOLDENS / name, tmp_path / "same"))
    # A GPT without a head is written as one inside of a model with a head.
    assert theirs.keys() == {key.replace(".transformer.", ".") for key in ours}


def test_layers_that_a_file_joins_are_written_as_one(tmp_path):
    encoder = load(GOLDENS / "modernbert_tiny")
    adapters, merge = lora(encoder.params, 2, ["attention/query", "attention/value"])
    for _, pair in list_adapters(adapters):
        pair["up"] = pair["up"] + 0.1
    save_adapter(tmp_path / "adapter", encoder, adapters, merge)
    fields = json.loads((tmp_path / "adapter" / CONFIG).read_text(encoding="utf-8"))
    assert set(fields["rank_pattern"].values()) == {4}
    merged = load(GOLDENS / "modernbert_tiny", adapter=tmp_path / "adapter").params
    for path, value in flatten(merge(encoder.params, adapters)).items():
        np.testing.assert_allclose(flatten(merged)[path], value, atol=1e-5, err_msg=path)
    assert sum(file.stat().st_size for file in (tmp_path / "adapter").iterdir()) < 20 * count_params(adapters)


@pytest.mark.parametrize("targets", [["query"], ["query", "pooler"]])
@pytest.mark.parametrize("model", ["roberta_nli3", "electra_regression"])
def test_a_classifier_of_two_layers_is_written_in_full(model, targets, tmp_path):
    source = GOLDENS / "released_heads" / model
    released = load(source)
    adapters, merge = lora(released.params, 2, targets)
    for _, pair in list_adapters(adapters):
        pair["up"] = pair["up"] + 0.1
    head = jax.tree.map(lambda leaf: np.asarray(leaf) + 1, released.params["classify"])
    save_adapter(tmp_path / "adapter", released, adapters, merge, {"classify": head})
    fields = json.loads((tmp_path / "adapter" / CONFIG).read_text(encoding="utf-8"))
    assert fields["modules_to_save"] == ["classifier"]
    tensors = load_file(tmp_path / "adapter" / WEIGHTS)
    assert {name for name in tensors if ".classifier." in name} == {
        f"base_model.model.classifier.{layer}.{kind}" for layer in ("dense", "out_proj") for kind in ("weight", "bias")
    }
    expected = flatten(join_trained(released.params, {"classify": head, "adapters": adapters}, merge))
    merged = flatten(load(source, adapter=tmp_path / "adapter").params)
    for path, value in expected.items():
        np.testing.assert_allclose(merged[path], value, atol=1e-6, err_msg=path)
    # Earlier versions wrote only the last layer.
    changed_tensors(lambda t: {name: x for name, x in t.items() if "classifier.dense" not in name})(
        tmp_path / "adapter"
    )
    older = flatten(load(source, adapter=tmp_path / "adapter").params)
    np.testing.assert_array_equal(older["classify/kernel"], head["kernel"])
    np.testing.assert_array_equal(older["encoder/pooler/kernel"], flatten(released.params)["encoder/pooler/kernel"])


SAVED = "base_model.model.bert.encoder.layer.1.output.dense"


def test_a_saved_module_in_a_layer_leaves_the_others_as_they_are(tmp_path):
    shutil.copytree(GOLDENS / "peft_bert", tmp_path / "adapter")
    kernel = np.full((64, 160), 0.01, np.float32)
    saved = {f"{SAVED}.weight": kernel, f"{SAVED}.bias": np.zeros(64, np.float32)}
    changed_tensors(lambda t: t | saved)(tmp_path / "adapter")
    merged, plain = (
        flatten(load(GOLDENS / "bert_tiny", adapter=tmp_path / name).params)
        for name in ("adapter", GOLDENS / "peft_bert")
    )
    path = "encoder/layer_1/feed_forward/down/kernel"
    np.testing.assert_array_equal(merged[path], kernel.T)
    assert merged.keys() == plain.keys()
    assert {name for name in plain if (merged[name] != plain[name]).any()} == {path, path.replace("kernel", "bias")}


@pytest.mark.parametrize(
    ("base", "outputs", "labels"),
    [
        ("bert_tiny", 3, ("LABEL_0", "LABEL_1", "LABEL_2")),
        ("released_heads/bert_multilabel", 2, ("LABEL_0", "LABEL_1")),
    ],
)
def test_a_head_of_another_size_has_labels_of_its_own(base, outputs, labels, tmp_path):
    encoder = load(GOLDENS / base)
    width = encoder.config.hidden_size
    head = {"kernel": np.ones((width, outputs), np.float32), "bias": np.zeros(outputs, np.float32)}
    save_adapter(tmp_path / "adapter", encoder, *lora(encoder.params, rank=2), {"classify": head})
    task = load(GOLDENS / base, adapter=tmp_path / "adapter").task
    assert (task.kind, task.labels, task.multi_label) == ("classification", labels, False)


def write_theirs(folder, tensors, **fields):
    """Write an adapter of rank 2 as peft does; `tensors` have names without the beginning that all have."""
    folder.mkdir()
    save_file({f"base_model.model.{name}": np.asarray(x, np.float32) for name, x in tensors.items()}, folder / WEIGHTS)
    fields = {"peft_type": "LORA", "r": 2, "lora_alpha": 6, **fields}
    (folder / CONFIG).write_text(json.dumps(fields), encoding="utf-8")
    return folder


def random_pair(module, inputs, outputs, seed=0):
    """Return the tensors of an adapter of one layer, and what it adds to our kernel."""
    random = np.random.default_rng(seed)
    down, up = random.normal(size=(2, inputs)), random.normal(size=(outputs, 2))
    return {f"{module}.lora_A.weight": down, f"{module}.lora_B.weight": up}, 3 * (up @ down).T


def changes_of(model, adapter):
    """Return what an adapter added to each parameter that it changed."""
    plain, merged = flatten(load(model).params), flatten(load(model, adapter=adapter).params)
    changes = {path: np.asarray(value) - plain.get(path, 0) for path, value in merged.items()}
    return {path: change for path, change in changes.items() if np.any(change)}


def test_a_head_is_adapted_too(tmp_path):
    tensors, change = random_pair("cls.predictions.transform.dense", 64, 64)
    [(path, added)] = changes_of(GOLDENS / "bert_tiny", write_theirs(tmp_path / "theirs", tensors)).items()
    assert path == "mlm/dense/kernel"
    np.testing.assert_allclose(added, change, atol=1e-5)
    encoder = load(GOLDENS / "bert_tiny")
    adapter = read_adapter(tmp_path / "theirs", find_family(encoder.config), encoder.config)
    queries = lora(encoder.params, 2, ["query"]).adapters
    both, merge = {**queries, **adapter.adapters}, lora(encoder.params, 2, ["query"], alpha=6.0).merge
    written = load_file(save_adapter(tmp_path / "ours", encoder, both, merge) / WEIGHTS)
    # All names are those of a model with the head, whose encoder has a prefix.
    assert {name.split(".")[2] for name in written} == {"bert", "cls"}
    name = "base_model.model.cls.predictions.transform.dense.lora_A.weight"
    np.testing.assert_allclose(written[name], tensors["cls.predictions.transform.dense.lora_A.weight"], atol=1e-6)


def test_a_classifier_outside_of_modules_to_save_is_adapted(tmp_path):
    encoder = load(GOLDENS / "bart_tiny")
    head, pooler = ({"kernel": np.ones((24, n), np.float32), "bias": np.zeros(n, np.float32)} for n in (3, 24))
    params = {"encoder": {**encoder.params["encoder"], "pooler": pooler}, "classify": head}
    tensors, change = random_pair("classification_head.out_proj", 24, 3)
    dense, dense_change = random_pair("classification_head.dense", 24, 24, seed=1)
    folder = write_theirs(tmp_path / "theirs", tensors | dense, task_type="SEQ_CLS")
    adapter = read_adapter(folder, find_family(encoder.config), encoder.config, heads=params)
    joined = join_trained(params, {**adapter.parts, "adapters": adapter.adapters}, adapter.merge)
    np.testing.assert_allclose(joined["classify"]["kernel"], 1 + change, atol=1e-5)
    np.testing.assert_allclose(joined["encoder"]["pooler"]["kernel"], 1 + dense_change, atol=1e-5)


MODERNBERT = GOLDENS / "modernbert_tiny"  # one module of its file is `mlm/dense` and `encoder/pooler/dense`


def test_a_module_that_two_parts_share_is_adapted_in_both(tmp_path):
    tensors, change = random_pair("head.dense", 48, 48)
    changes = changes_of(MODERNBERT, write_theirs(tmp_path / "theirs", tensors))
    assert changes.keys() == {"mlm/dense/kernel", "encoder/pooler/dense/kernel"}
    for added in changes.values():
        np.testing.assert_allclose(added, change, atol=1e-5)
    encoder = load(MODERNBERT)
    adapter = read_adapter(tmp_path / "theirs", find_family(encoder.config), encoder.config)
    written = load_file(save_adapter(tmp_path / "ours", encoder, adapter.adapters, adapter.merge) / WEIGHTS)
    assert written.keys() == {f"base_model.model.{name}" for name in tensors}
    adapter.adapters["mlm"]["dense"]["up"] = adapter.adapters["mlm"]["dense"]["up"] + 1
    with pytest.raises(ValueError, match=r"two layers have the name head\.dense in the file, with other adapters"):
        save_adapter(tmp_path / "two", encoder, adapter.adapters, adapter.merge)


def test_such_a_module_is_the_poolers_in_a_classifier(tmp_path):
    tensors, change = random_pair("head.dense", 48, 48)
    tensors |= {"classifier.weight": np.ones((3, 48)), "classifier.bias": np.ones(3)}
    changes = changes_of(MODERNBERT, write_theirs(tmp_path / "theirs", tensors, task_type="SEQ_CLS"))
    assert changes.keys() == {"encoder/pooler/dense/kernel", "classify/kernel", "classify/bias"}
    np.testing.assert_allclose(changes["encoder/pooler/dense/kernel"], change, atol=1e-5)


def test_saved_norms_and_the_table_below_an_adapter_are_read(tmp_path):
    random = np.random.default_rng(1)
    table, scale, bias = random.normal(size=(200, 64)), random.normal(size=64), random.normal(size=64)
    down, up = random.normal(size=(2, 200)), random.normal(size=(64, 2))
    words, norm = "embeddings.word_embeddings", "encoder.layer.1.attention.output.LayerNorm"
    tensors = {f"{words}.base_layer.weight": table, f"{words}.lora_embedding_A": down, f"{words}.lora_embedding_B": up}
    tensors |= {f"{norm}.weight": scale, f"{norm}.bias": bias}
    params = flatten(load(GOLDENS / "bert_tiny", adapter=write_theirs(tmp_path / "theirs", tensors)).params)
    np.testing.assert_allclose(params["encoder/embeddings/word"], table + 3 * (up @ down).T, atol=1e-5)
    np.testing.assert_allclose(params["encoder/layer_1/attention/norm/scale"], scale, atol=1e-6)
    np.testing.assert_allclose(params["encoder/layer_1/attention/norm/bias"], bias, atol=1e-6)


def test_saved_modules_are_read_as_the_file_stores_them(tmp_path):
    random = np.random.default_rng(1)
    kernel, bias = random.normal(size=(48, 144)), random.normal(size=144)  # GPT-2 has them as [in, out]
    tensors, _ = random_pair("h.1.attn.c_attn", 48, 144)
    tensors |= {"h.0.attn.c_attn.weight": kernel, "h.0.attn.c_attn.bias": bias}
    params = flatten(load(GOLDENS / "gpt2_tiny", adapter=write_theirs(tmp_path / "theirs", tensors)).params)
    for number, name in enumerate(("query", "key", "value")):
        columns = slice(48 * number, 48 * (number + 1))
        np.testing.assert_allclose(params[f"encoder/layer_0/attention/{name}/kernel"], kernel[:, columns], atol=1e-6)
        np.testing.assert_allclose(params[f"encoder/layer_0/attention/{name}/bias"], bias[columns], atol=1e-6)
    encoder = load(GOLDENS / "gpt2_tiny")
    part = {
        "encoder": {"layer_0": {"attention": {"query": encoder.params["encoder"]["layer_0"]["attention"]["query"]}}}
    }
    with pytest.raises(ValueError, match="the part encoder/layer_0/attention/query has no name in files"):
        save_adapter(tmp_path / "ours", encoder, *lora(encoder.params, 2, ["value"]), part)


@pytest.mark.parametrize(("model", "head"), [("bert_tiny", "mlm"), ("gpt2_tiny", "lm")])
def test_an_adapter_of_the_table_of_a_tied_head_warns(model, head, tmp_path, caplog):
    encoder = load(GOLDENS / model)
    folder = save_adapter(tmp_path / "adapter", encoder, *lora(encoder.params, 2, ["embeddings/word"]))
    load(GOLDENS / model, adapter=folder)
    assert len(caplog.messages) == 2
    for message in caplog.messages:
        assert f"which the head {head} of the model reads, too: its logits are those of peft's merge" in message
    caplog.clear()
    classifier = {"kernel": np.ones((encoder.width, 2), np.float32)}
    if model == "bert_tiny":
        classifier["bias"] = np.zeros(2, np.float32)
    adapters, merge = lora(encoder.params, 2, ["embeddings/word"])
    save_adapter(tmp_path / "task", encoder, adapters, merge, {"classify": classifier})
    load(GOLDENS / model, adapter=tmp_path / "task")
    load(GOLDENS / model, adapter=save_adapter(tmp_path / "query", encoder, *lora(encoder.params, 2, ["query"])))
    assert not any("the table of words" in message for message in caplog.messages)


def test_an_adapter_of_a_barts_table_of_pieces_is_refused(tmp_path):
    encoder = load(GOLDENS / "bart_tiny")
    with pytest.raises(ValueError, match="the layer encoder/embeddings/word has no name in files of transformers"):
        save_adapter(tmp_path / "ours", encoder, *lora(encoder.params, 2, ["embeddings/word"]))
    pair = {"shared.lora_embedding_A": np.ones((2, 310)), "shared.lora_embedding_B": np.ones((24, 2))}
    for name, tensors, message in (
        ("pair", pair, "has an adapter for shared, and the model has no such table, or transformers reads only copies"),
        ("table", {"shared.weight": np.ones((310, 24))}, "holds shared.weight, for which the model has no place"),
    ):
        folder = write_theirs(tmp_path / name, {f"model.{module}": x for module, x in tensors.items()})
        with pytest.raises(ValueError, match=message.replace("shared", "model.shared")):
            load(GOLDENS / "bart_tiny", adapter=folder)


DEBERTA = GOLDENS / "deberta_v1_tiny" / "mlm"  # three heads; a file has their queries, keys and values head by head


def add_to_stored(source, adapter, target):
    """Write a model with an adapter added to its tensors as the file has them; return its parameters."""
    fields = json.loads((adapter / CONFIG).read_text(encoding="utf-8"))
    shutil.copytree(source, target)
    tensors, pairs = load_file(source / "model.safetensors"), load_file(adapter / WEIGHTS)
    for name in [name.removesuffix(".lora_A.weight") for name in pairs if name.endswith(".lora_A.weight")]:
        down, up = pairs[f"{name}.lora_A.weight"], pairs[f"{name}.lora_B.weight"]
        module = name.removeprefix("base_model.model.")
        rank = fields["rank_pattern"].get(module.removeprefix("deberta."), fields["r"])
        alpha = fields["alpha_pattern"].get(module.removeprefix("deberta."), fields["lora_alpha"] or 8)
        [key] = [key for key in tensors if key.endswith(f"{module}.weight")]
        tensors[key] = tensors[key] + np.float32(alpha / rank) * up @ down
    save_file(tensors, target / "model.safetensors", {"format": "pt"})
    return flatten(load(target).params)


def test_rows_that_lie_head_by_head_are_read_and_written_as_the_file_has_them(tmp_path):
    random = np.random.default_rng(0)
    module = "base_model.model.deberta.encoder.layer.1.attention.self.in_proj"
    tensors = {
        f"{module}.lora_A.weight": random.normal(size=(2, 24)).astype(np.float32),
        f"{module}.lora_B.weight": random.normal(size=(72, 2)).astype(np.float32),
    }
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    save_file(tensors, theirs / WEIGHTS)
    fields = {"peft_type": "LORA", "r": 2, "lora_alpha": None, "rank_pattern": {}, "alpha_pattern": {}}
    (theirs / CONFIG).write_text(json.dumps(fields), encoding="utf-8")
    merged = flatten(load(DEBERTA, adapter=theirs).params)
    for path, value in add_to_stored(DEBERTA, theirs, tmp_path / "merged").items():
        np.testing.assert_allclose(merged[path], value, atol=1e-5, err_msg=path)
    encoder = load(DEBERTA)
    adapter = read_adapter(theirs, find_family(encoder.config), encoder.config)
    save_adapter(tmp_path / "ours", encoder, adapter.adapters, adapter.merge)
    written = load_file(tmp_path / "ours" / WEIGHTS)
    for kind in ("lora_A", "lora_B"):
        [name] = [name for name in written if name.endswith(f"in_proj.{kind}.weight")]
        np.testing.assert_array_equal(written[name], tensors[f"{module}.{kind}.weight"])


def test_adapters_of_some_parts_are_written_head_by_head(tmp_path):
    encoder = load(DEBERTA)
    adapters, merge = lora(encoder.params, 2, ["query", "value"])
    for number, (_, pair) in enumerate(list_adapters(adapters)):
        pair["up"] = pair["up"] + 0.1 * (number + np.arange(24, dtype=np.float32)[None])
    save_adapter(tmp_path / "adapter", encoder, adapters, merge)
    stored = add_to_stored(DEBERTA, tmp_path / "adapter", tmp_path / "merged")
    for path, value in flatten(merge(encoder.params, adapters)).items():
        np.testing.assert_allclose(stored[path], value, atol=1e-4, err_msg=path)


def changed_config(**fields):
    def change(folder):
        path = folder / CONFIG
        path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **fields}), encoding="utf-8")

    return change


def changed_tensors(function):
    def change(folder):
        tensors = load_file(folder / WEIGHTS)
        save_file(function(tensors), folder / WEIGHTS)

    return change


QUERY = "base_model.model.bert.encoder.layer.0.attention.self.query"
NORM = "base_model.model.bert.encoder.layer.0.output.LayerNorm"
TABLE = "base_model.model.bert.embeddings.word_embeddings"
REFUSED = {
    "DoRA": (changed_config(use_dora=True), "use_dora=True is not supported: merge the adapter with peft"),
    "a bias": (changed_config(bias="lora_only"), "bias='lora_only' is not supported"),
    "another kind": (changed_config(peft_type="IA3"), "peft_type='IA3' is not supported"),
    "PiSSA": (changed_config(init_lora_weights="pissa"), "changed the weights below the adapter"),
    "OLoRA, as peft reads it": (changed_config(init_lora_weights="OLoRA"), "'OLoRA' changed the weights below"),
    "LoRA-GA": (changed_config(init_lora_weights="lora_ga"), "'lora_ga' changed the weights below the adapter"),
    "no rank": (changed_config(r=None), "r=None; expected a whole number"),
    "a rank of another type": (changed_config(r="8"), "r is '8'; expected a whole number from 1"),
    "an alpha of another type": (changed_config(lora_alpha=[1]), "lora_alpha is .1.; expected a finite number"),
    "a pattern without end": (changed_config(alpha_pattern={"(a+)+$": 1}), "names and simple patterns are supported"),
    "a slow pattern": (changed_config(alpha_pattern={".*" * 18 + "z": 1}), "names and simple patterns are supported"),
    "many patterns": (
        changed_config(rank_pattern={f"k{n}": 1 for n in range(3000)}),
        "rank_pattern has 3,000 patterns",
    ),
    "flags in a pattern": (changed_config(alpha_pattern={"(?i)query": 1}), "which is no pattern"),
    "a pattern without a value": (changed_config(alpha_pattern={"query": None}), "has no value for 'query'"),
    "another rank": (changed_config(r=7), "have rank 4, and adapter_config.json says 7"),
    "another rank of a layer": (changed_config(rank_pattern={"layer.0.attention.self.query": 3}), "rank 4, .* says 3"),
    "a saved module under two names": (
        changed_tensors(
            lambda t: (
                t
                | {
                    f"base_model.model.bert.pooler.dense.{scope}weight": np.zeros((64, 64), "f4")
                    for scope in ("", "modules_to_save.")
                }
            )
        ),
        "has the weight of bert.pooler.dense twice, under two names",
    ),
    "no pattern": (changed_config(alpha_pattern={"(": 1}), "which is no pattern"),
    "no weights": (lambda folder: (folder / WEIGHTS).unlink(), "has no adapter_model.safetensors"),
    "no config": (lambda folder: (folder / CONFIG).unlink(), "holds no adapter: there is no adapter_config.json"),
    "half a pair": (
        changed_tensors(lambda t: {name: x for name, x in t.items() if name != f"{QUERY}.lora_A.weight"}),
        "only one of the two matrices of bert.encoder.layer.0.attention.self.query",
    ),
    "no alpha": (changed_config(lora_alpha=0), "lora_alpha is 0, so the adapter would change nothing"),
    "one dimension": (
        changed_tensors(lambda t: t | {f"{QUERY}.lora_A.weight": np.zeros(4, np.float32)}),
        "self.query are .4. and .*; expected .rank, in. and .out, rank.",
    ),
    "NaN": (
        changed_tensors(lambda t: t | {f"{QUERY}.lora_B.weight": t[f"{QUERY}.lora_B.weight"] * np.float32("nan")}),
        "adapter holds NaN or infinity in encoder/layer_0/attention/query/kernel",
    ),
    "int8": (
        changed_tensors(lambda t: t | {f"{QUERY}.lora_A.weight": t[f"{QUERY}.lora_A.weight"].astype(np.int8)}),
        "numbers of the type int8; expected floats",
    ),
    "two names": (
        changed_tensors(lambda t: t | {f"{QUERY}.lora_A.default.weight": t[f"{QUERY}.lora_A.weight"]}),
        "lora_A of bert.encoder.layer.0.attention.self.query twice, under two names",
    ),
    "another width": (
        changed_tensors(lambda t: t | {f"{QUERY}.lora_A.weight": np.zeros((4, 32), np.float32)}),
        "the adapter of encoder/layer_0/attention/query is for a matrix of 32 x 64 .* and the model's is 64 x 64",
    ),
    "a deeper model": (
        changed_tensors(lambda t: {name.replace("layer.2.", "layer.7."): x for name, x in t.items()}),
        "has an adapter for bert.encoder.layer.7.attention",
    ),
    "a saved module without its bias": (
        changed_tensors(lambda t: t | {f"{SAVED}.weight": np.zeros((64, 160), "f4")}),
        "encoder.layer.1.output.dense has no bias; kernel and bias are needed",
    ),
    "a saved module of another width": (
        changed_tensors(
            lambda t: t | {f"{SAVED}.weight": np.zeros((64, 128), "f4"), f"{SAVED}.bias": np.zeros(64, "f4")}
        ),
        "the kernel of encoder.layer.1.output.dense is 128 x 64, and the model's is 160 x 64: it is of another model",
    ),
    "a saved module of a deeper model": (
        changed_tensors(lambda t: t | {SAVED.replace("layer.1", "layer.7") + ".bias": np.zeros(64, "f4")}),
        "holds bert.encoder.layer.7.output.dense.bias, for which the model has no place",
    ),
    "a saved norm without its bias": (
        changed_tensors(lambda t: t | {f"{NORM}.weight": np.ones(64, "f4")}),
        "layer.0.output.LayerNorm has no bias; scale and bias are needed",
    ),
    "a saved table of a resized model": (
        changed_tensors(lambda t: t | {f"{TABLE}.weight": np.ones((203, 64), "f4")}),
        "the table of embeddings.word_embeddings is 203 x 64, .* 200 x 64: .*, or of one whose vocabulary was resized",
    ),
    "a saved table under two names": (
        changed_tensors(
            lambda t: t | {f"{TABLE}.{scope}weight": np.ones((200, 64), "f4") for scope in ("", "base_layer.")}
        ),
        "has the weight of bert.embeddings.word_embeddings twice, under two names",
    ),
    "a table that the model lacks": (
        changed_tensors(lambda t: {"base_model.model.wte.lora_embedding_A": np.zeros((4, 9), "f4")}),
        "has an adapter for wte, and the model has no such table",
    ),
    "embeddings": (
        changed_tensors(lambda t: {f"{QUERY}.lora_embedding_A": np.zeros((4, 9), "f4")}),
        "lora_embedding_A for bert.encoder.layer.0.attention.self.query, which is another kind of layer",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.usefixtures("as_users_run")
def test_adapters_that_do_not_fit_are_refused_in_one_line(case, tmp_path):
    change, message = REFUSED[case]
    shutil.copytree(GOLDENS / "peft_bert", tmp_path / "adapter")
    change(tmp_path / "adapter")
    with pytest.raises((ValueError, FileNotFoundError), match=message) as error:
        load(GOLDENS / "bert_tiny", adapter=tmp_path / "adapter")
    assert "\n" not in str(error.value)


def test_families_without_files_of_transformers_have_no_names(tmp_path):
    encoder = load(GOLDENS / "elmo_tiny")
    with pytest.raises(ValueError, match="has no files of transformers"):
        save_adapter(tmp_path, encoder, *lora(encoder.params, 1, ["projection"]))


def test_adapters_that_load_would_refuse_are_not_written(tmp_path):
    encoder, gpt = load(GOLDENS / "bert_tiny"), load(GOLDENS / "gpt2_tiny")
    adapters, merge = lora(encoder.params, rank=2)
    head = {"kernel": np.ones((gpt.width, 2), np.float32), "bias": np.ones(2, np.float32)}
    for model, adapter_tree, parts, message in (
        (encoder, lora(gpt.params, rank=2).adapters, {}, "it is of another model"),
        (encoder, lora(encoder.params, rank=4).adapters, {}, "has rank 4, and `merge` is for rank 2"),
        (encoder, {"adapters": adapters}, {}, r'give trained\["adapters"\]'),
        (
            gpt,
            lora(gpt.params, rank=2).adapters,
            {"classify": head},
            r"without a bias: make it with Classify\(…, use_b",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            save_adapter(tmp_path / "adapter", model, adapter_tree, merge, parts)
    assert not (tmp_path / "adapter").exists()


def test_an_adapter_is_not_taken_for_a_model():
    folder = str(GOLDENS / "peft_bert")
    with pytest.raises(FileNotFoundError, match=re.escape(f"load(MODEL, adapter={folder!r})")):
        load(folder)


def test_verify_checks_the_adapter_too(tmp_path):
    encoder = load(GOLDENS / "bert_tiny")
    convert(str(GOLDENS / "bert_tiny"), tmp_path / "model")
    folder = save_adapter(tmp_path / "adapter", encoder, *lora(encoder.params, rank=2))
    assert load(tmp_path / "model", adapter=folder, verify=True).family.name == "bert"
    content = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps({**content, "lora_alpha": 99}))
    with pytest.raises(ValueError, match=r"adapter is damaged: adapter_config\.json has changed"):
        load(tmp_path / "model", adapter=folder, verify=True)
    with pytest.raises(ValueError, match="has no SHA256SUMS"):
        load(tmp_path / "model", adapter=GOLDENS / "peft_bert", verify=True)
