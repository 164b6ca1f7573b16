"""Google's checkpoints of pretraining, classifiers and SQuAD, with optimiser state."""

import json

import numpy as np
import pytest

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.formats import WEIGHTS, is_prefix
from bert_elmo_jax.families.bert.google import checkpoint_prefix, names
from bert_elmo_jax.families.bert.google import read_weights as read_google
from bert_elmo_jax.inference.read_model import read_weights
from bert_elmo_jax.weights.parameter_tree import flatten

CONFIG = {
    "vocab_size": 11, "hidden_size": 4, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 6,
    "max_position_embeddings": 5,
}  # fmt: skip


def variables(parts=("encoder", "pooler")) -> dict[str, np.ndarray]:
    """Return Google's variables of a tiny model, in Google's shapes."""
    rng = np.random.default_rng(0)
    sizes = {"word": 11, "position": 5, "type": 2}
    tensors = {}
    for ours, theirs in names(BertConfig.from_json(CONFIG)).items():
        part = "pooler" if "/pooler/" in ours else ours.split("/")[0]
        if part not in parts:
            continue
        *_, owner, kind = ours.split("/")
        if owner == "embeddings":
            shape = (sizes[kind], 4)
        elif theirs.endswith("output_weights"):
            shape = ({"nsp": 2, "span": 2, "classify": 3}[part], 4)
        elif theirs.endswith("output_bias"):
            shape = ({"nsp": 2, "span": 2, "classify": 3, "mlm": 11}[part],)
        else:
            wide = {"up": (4, 6), "down": (6, 4)}.get(owner, (4, 4))
            shape = wide if kind == "kernel" else (wide[-1],)
        scope = "bert/" if ours.startswith("encoder/") else ""
        tensors[scope + theirs] = rng.normal(size=shape).astype(np.float32)
    return tensors


@pytest.fixture
def google(tmp_path, write_bundle):
    def write(tensors, name="bert_model.ckpt", **options):
        prefix = write_bundle(tmp_path / "google" / name, tensors, **options)
        (tmp_path / "google" / "bert_config.json").write_text(json.dumps(CONFIG))
        return prefix.parent

    return write


def test_the_golden_checkpoint_equals_the_hugging_face_folder(goldens):
    google, report = read_google(goldens / "bert_tiny_tf")
    hugging_face, _ = WEIGHTS.read_weights(goldens / "bert_tiny")
    a, b = flatten(google), flatten(hugging_face)
    assert a.keys() == b.keys()
    for path in a:
        np.testing.assert_array_equal(a[path], b[path], err_msg=path)
    assert len(report.skipped) == 3 and not report.unexpected
    assert report.skipped["bert/embeddings/LayerNorm/beta/adam_m"] == "optimiser state"


def test_by_prefix_by_index_and_by_folder(goldens):
    folder = goldens / "bert_tiny_tf"
    assert checkpoint_prefix(folder) == folder / "bert_model.ckpt" and is_prefix(folder / "bert_model.ckpt")
    for path in (folder, folder / "bert_model.ckpt", folder / "bert_model.ckpt.index"):
        params, config, report = read_weights(path)
        assert config.num_layers == 3 and report.heads == ("mlm", "nsp") and "encoder" in params


@pytest.mark.parametrize(("part", "head_names"), [("classify", "output_weights"), ("span", "cls/squad/output_weights")])
def test_fine_tuned_checkpoints(google, part, head_names):
    tensors = variables(("encoder", "pooler", part))
    params, report = read_google(google(tensors))
    assert report.heads == (part,) and not report.unexpected
    np.testing.assert_array_equal(params[part]["kernel"], tensors[head_names].T)


def test_top_level_weights_of_a_tagger(google):
    folder = google(variables(("encoder", "classify")))
    params, _ = read_google(folder, classifier="tag")
    assert params["tag"]["kernel"].shape == (4, 3) and "pooler" not in params["encoder"]


@pytest.mark.parametrize("scope", ["", "bert/", "module/bert/"])
def test_scopes(google, scope):
    tensors = {
        name.replace("bert/", scope, 1) if name.startswith("bert/") else scope.removesuffix("bert/") + name: value
        for name, value in variables(("encoder", "pooler", "mlm", "nsp")).items()
    }
    params, report = read_google(google(tensors))
    assert set(params) == {"encoder", "mlm", "nsp"} and not report.unexpected


def test_optimiser_state_is_skipped(google):
    tensors = variables(("encoder", "pooler", "classify"))
    names = ("adam_m", "adam_v", "Adam", "Adam_1", "lamb_m", "vr", "Momentum", "ExponentialMovingAverage")
    slots = {f"{name}/{slot}": np.zeros_like(value) for name, value in tensors.items() for slot in names}
    counters = {"global_step": np.array(3, np.int64), "beta1_power": np.array(0.9, np.float32)}
    counters["loss_scale"] = np.array(1, np.float32)
    params, report = read_google(google(tensors | slots | counters | {"extra/kernel": np.ones((2, 2), np.float32)}))
    assert set(report.skipped) == {*slots, *counters}
    assert report.unexpected == ["extra/kernel"] and set(params) == {"encoder", "classify"}
    assert len(str(report).splitlines()) < 6


def test_partitioned_embeddings(google):
    tensors = variables()
    params, _ = read_google(google(tensors, parts={"bert/embeddings/word_embeddings": [4, 4, 3]}, shards=2))
    np.testing.assert_array_equal(params["encoder"]["embeddings"]["word"], tensors["bert/embeddings/word_embeddings"])


def test_all_that_does_not_fit_is_named(google):
    tensors = variables(("encoder", "pooler", "nsp"))
    del tensors["bert/encoder/layer_1/intermediate/dense/bias"], tensors["cls/seq_relationship/output_bias"]
    tensors["bert/embeddings/position_embeddings"] = np.ones((6, 4), np.float32)
    with pytest.raises(ValueError) as problem:
        read_google(google(tensors))
    for text in ("bert/encoder/layer_1/intermediate/dense/bias", "cls/seq_relationship/output_bias",
                 "bert/embeddings/position_embeddings: [6, 4], expected [5, 4]"):  # fmt: skip
        assert text in str(problem.value)
    tensors = variables()
    tensors["bert/pooler/dense/bias"][0] = np.nan
    with pytest.raises(ValueError, match=r"hold NaN or infinity .*: bert/pooler/dense/bias"):
        read_google(google(tensors))
    with pytest.raises(ValueError, match="has no such encoder: no name ends with"):
        read_google(google({"model/layer/kernel/.ATTRIBUTES/VARIABLE_VALUE": np.ones((2, 2), np.float32)}))


def test_several_checkpoints(google):
    for step in (100, 200):
        folder = google(variables(), f"model.ckpt-{step}")
    with pytest.raises(ValueError, match=r"has 2 checkpoints, give the path of one: model.ckpt-100, model.ckpt-200"):
        read_google(folder)
    state = 'model_checkpoint_path: "/somewhere/else/model.ckpt-100"\nall_model_checkpoint_paths: "model.ckpt-200"\n'
    (folder / "checkpoint").write_text(state)
    assert checkpoint_prefix(folder).name == "model.ckpt-100"
    (folder / "checkpoint").write_text('model_checkpoint_path: "../../etc/passwd"\n')
    with pytest.raises(ValueError, match="has 2 checkpoints"):
        checkpoint_prefix(folder)


def test_no_checkpoint_and_no_configuration(tmp_path, google):
    with pytest.raises(FileNotFoundError, match=r"there is no file that ends with .index"):
        checkpoint_prefix(tmp_path)
    folder = google(variables())
    (folder / "bert_config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"bert_config.json does not exist; .* or give config="):
        read_google(folder)
    (folder / "bert_model.ckpt.index").unlink()
    with pytest.raises(FileNotFoundError, match=r"without it, bert_model.ckpt.data-00000-of-00001 cannot be read"):
        checkpoint_prefix(folder)


def test_names_in_both_formats():
    path = "encoder/layer_11/attention/output/kernel"
    assert WEIGHTS.names(BertConfig())[path] == "encoder.layer.11.attention.output.dense.weight"
    table = names(BertConfig())
    assert table[path] == "encoder/layer_11/attention/output/dense/kernel"
    assert table["encoder/embeddings/type"] == "embeddings/token_type_embeddings"
    assert table["encoder/layer_0/attention/norm/scale"] == "encoder/layer_0/attention/output/LayerNorm/gamma"
    assert table["mlm/norm/bias"] == "cls/predictions/transform/LayerNorm/beta"
    assert (table["mlm/bias"], table["span/bias"]) == ("cls/predictions/output_bias", "cls/squad/output_bias")
    assert (table["nsp/kernel"], table["classify/bias"]) == ("cls/seq_relationship/output_weights", "output_bias")
