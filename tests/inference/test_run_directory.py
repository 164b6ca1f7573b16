import json
import re
import shutil

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.inference import write_run_directory
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.inference.run_directory import read_run_directory
from bert_elmo_jax.train.checkpoint import save_params


@pytest.fixture(scope="module")
def encoder(goldens):
    return load(goldens / "bert_tiny")


@pytest.fixture(scope="module")
def written(tmp_path_factory, encoder):
    folder = tmp_path_factory.mktemp("runs") / "run"
    write_run_directory(folder, encoder.config, encoder.params, encoder.tokenizer, run={})
    return folder


@pytest.fixture
def run(tmp_path, written):
    return shutil.copytree(written, tmp_path / "run")


def edit(run, **fields):
    file = run / "model.json"
    model_json = json.loads(file.read_text(encoding="utf-8"))
    model_json["config"] |= fields.pop("config_fields", {})
    file.write_text(json.dumps(model_json | fields), encoding="utf-8")


NUM_LAYERS = ["missing (16): ", "encoder/layer_3/attention/query/kernel", "encoder/layer_3/feed_forward/norm/bias"]
NOT_FITTING = [
    ({"num_layers": 4}, NUM_LAYERS),
    ({"num_layers": 2}, ["unknown (16): encoder/layer_2/", "encoder/layer_2/feed_forward/norm/scale"]),
    ({"hidden_size": 32}, ["mis-shaped (57):", "encoder/pooler/kernel [64, 64], expected [32, 32]"]),
    ({"vocab_size": 300}, ["mis-shaped (2):", "encoder/embeddings/word [200, 64]", "mlm/bias [200], expected [300]"]),
]
WRONG = [  # fields of model.json, and the message
    ({"heads": ["mlm"]}, r"unknown \(2\): nsp/bias, nsp/kernel"),
    ({"heads": ["mlm", "nsp", "span"]}, r"missing \(2\): span/kernel, span/bias"),
    ({"heads": ["mlm", "nsp", "tag"]}, "the field classes lacks the number of classes of the head 'tag'"),
    ({"heads": ["mlm", "crf"]}, "no head 'crf' is known; there are mlm, nsp, classify"),
    ({"pooler": False}, r"unknown \(2\): encoder/pooler/bias, encoder/pooler/kernel"),
    ({"heads": "mlm"}, "heads is 'mlm'; expected a list of strings"),
    ({"heads": [1]}, r"heads is \[1\]; expected a list of strings"),
    ({"heads": None}, "heads is None; expected a list of strings"),
    ({"pooler": 1}, "pooler is 1; expected true or false"),
    ({"classes": {"tag": "3"}}, "classes is {'tag': '3'}; expected an object of whole numbers"),
    ({"labels": [1]}, r"labels is \[1\]; expected a list of strings or null"),
    ({"problem_type": 3}, "problem_type is 3; expected a string or null"),
    ({"tokenizer": "vocab.txt"}, "tokenizer is 'vocab.txt'; expected an object or null"),
    ({"config": [1]}, r"config is \[1\]; expected an object"),
    ({"config": None}, "config is None; expected an object"),
    ({"config": {}}, "the config lacks vocab_size, hidden_size"),
    ({"family": 1}, "family is 1; expected a string"),
    ({"family": "gpx"}, "family 'gpx' is not known to this version; it knows bert, elmo"),
    ({"config_fields": {"hidden_size": "64"}}, "hidden_size is '64'; expected a whole number"),
    ({"config_fields": {"hidden_size": 64.0}}, "hidden_size is 64.0; expected a whole number"),
    ({"config_fields": {"num_layers": True}}, "num_layers is True; expected a whole number"),
    ({"config_fields": {"dropout": None}}, "dropout is None; expected a number"),
    ({"config_fields": {"scan": 0}}, "scan is 0; expected true or false"),
    ({"config_fields": {"activation": 3}}, "activation is 3; expected a string"),
    ({"config_fields": {"num_heads": 5}}, r"model\.json: hidden_size 64 cannot be split evenly"),
    ({"config_fields": {"num_layer": 3}}, "no field 'num_layer' in a BERT's config; did you mean num_layers"),
]
DAMAGED = ["", "[]", "null", "{}", '{"family"', "\ud55c".encode("cp949")]


def test_model_json_is_checked(run):
    sound = (run / "model.json").read_bytes()
    for fields, names in NOT_FITTING:
        (run / "model.json").write_bytes(sound)
        edit(run, config_fields=fields)
        with pytest.raises(ValueError, match="parameters do not fit the configuration") as caught:
            load(run)
        assert all(name in str(caught.value) for name in names)
    for fields, message in WRONG:
        (run / "model.json").write_bytes(sound)
        edit(run, **fields)
        with pytest.raises(ValueError, match=message):
            load(run)
    expected = r"model\.json( should hold a JSON object| is not JSON|: line 1 is not UTF-8| has no field)"
    for content in DAMAGED:
        (run / "model.json").write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(ValueError, match=expected):
            load(run)


def test_a_null_tokenizer_and_a_lost_one(run):
    edit(run, tokenizer=None)
    assert load(run).encode(["[MASK]"]).last.shape == (1, 3, 64)
    shutil.rmtree(run / "tokenizer")
    with pytest.raises(ValueError, match="has no tokenizer"):
        load(run).encode(["[MASK]"])
    edit(run, tokenizer={"kind": "wordpiece", "fingerprint": "0"})
    with pytest.raises(ValueError, match="is another tokenizer than this model was written with"):
        load(run)


def test_an_unfinished_run_is_called_so(run, tmp_path):
    (run / "model.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"has checkpoints/ but no model\.json, which is written last"):
        load(run)
    with pytest.raises(FileNotFoundError, match="holds no weights"):
        load(tmp_path)


def test_options_that_a_run_knows_and_long_paths_are_refused(run):
    for options in ({"lowercase": False}, {"format": "google"}):
        [name] = options
        with pytest.raises(ValueError, match=f"is a run directory, which knows this: leave out {name}="):
            load(run, **options)
    with pytest.raises(ValueError, match="leave out format='google', classifier='tag'"):
        read_model(run, format="google", classifier="tag")
    with pytest.raises(FileNotFoundError, match=r"^x{57}… is too long to be a path"):
        load("x" * 5000)


HEADS = [  # head, its classes, labels and problem
    ("classify", 3, ["좋다", "나쁘다", "모르겠다"], "multi_label_classification"),
    ("classify", 1, ["score"], "regression"),
    ("tag", 2, ["O", "B"], None),
    ("span", 2, None, None),
]


def test_every_head_comes_back_with_its_fields(tmp_path, encoder):
    width = encoder.config.hidden_size
    for number, (head, classes, labels, problem) in enumerate(HEADS):
        folder = tmp_path / str(number)
        head_params = {"kernel": np.ones((width, classes), np.float32), "bias": np.zeros(classes, np.float32)}
        params = {"encoder": encoder.params["encoder"], head: head_params}
        write_run_directory(folder, encoder.config, params, None, run={}, labels=labels, problem_type=problem)
        again = read_run_directory(folder)
        assert (again.labels, again.problem_type) == (labels, problem)
        heads = {head: classes} if head in ("classify", "tag") else {}
        assert json.loads((folder / "model.json").read_text(encoding="utf-8"))["classes"] == heads
        assert jax.tree.all(jax.tree.map(np.array_equal, dict(again.params), jax.tree.map(np.asarray, params)))
        assert read_model(folder).report.heads == (head,)


def test_an_encoder_without_heads_comes_back(tmp_path, encoder):
    params = {name: part for name, part in encoder.params["encoder"].items() if name != "pooler"}
    write_run_directory(tmp_path, encoder.config, {"encoder": params}, None, run={})
    assert load(tmp_path).heads == ()
    assert "pooler" not in load(tmp_path).params["encoder"]


def test_parameters_that_do_not_fit_are_not_written(tmp_path, encoder):
    params = {**encoder.params, "nsp": {"kernel": np.zeros((64, 3))}, "crf": {}}
    with pytest.raises(ValueError, match="the parameters: no head 'crf' is known"):
        write_run_directory(tmp_path / "a", encoder.config, params, None, run={})
    del params["crf"]
    with pytest.raises(ValueError, match=re.escape("missing (1): nsp/bias\nmis-shaped (1): nsp/kernel [64, 3]")):
        write_run_directory(tmp_path / "a", encoder.config, params, None, run={})
    assert not (tmp_path / "a").exists()


def test_a_damaged_checkpoint_is_named(run):
    data = max((p for p in (run / "checkpoints").rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    flipped = bytearray(data.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    data.write_bytes(flipped)
    with pytest.raises(ValueError, match=r"checkpoints/0.* is damaged: .* has changed"):
        load(run)
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(FileNotFoundError, match="has no checkpoint"):
        load(run)


def test_parameters_that_are_no_numbers_are_named(tmp_path, encoder):
    params = {**encoder.params, "nsp": {"kernel": np.full((64, 2), np.nan), "bias": np.zeros(2)}}
    write_run_directory(tmp_path, encoder.config, params, None, run={})
    with pytest.raises(
        ValueError, match="holds NaN or infinity in nsp/kernel; the file is damaged or training diverged"
    ):
        load(tmp_path)


def test_a_checkpoint_is_named_by_its_folder(run, encoder):
    """A run directory means its newest checkpoint; a step selects another, and a missing step is an error."""
    later = jax.tree.map(lambda x: np.asarray(x) + 1.0, dict(encoder.params))
    save_params(run, 5, later)
    names = {"": 5, "checkpoints/0": 0, "checkpoints/5": 5}
    for name, step in names.items():
        stored = read_model(run / name)
        assert stored.report.source == f"{run}, step {step}"
        expected = later if step else encoder.params
        np.testing.assert_array_equal(stored.params["encoder"]["pooler"]["bias"], expected["encoder"]["pooler"]["bias"])
        assert stored.tokenizer.fingerprint == encoder.tokenizer.fingerprint
    with pytest.raises(FileNotFoundError, match="has no checkpoint of step 7; it has 0, 5"):
        load(run / "checkpoints" / "7")
