"""Broken models: `load` refuses them, or reports them in one line, before it builds anything large."""

import json
import shutil

import pytest

from bert_elmo_jax import load

from .test_task_model import write

DEEP = '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        (None, TypeError, "a path or a hub name is expected, but None was given"),
        (3, TypeError, "a path or a hub name is expected, but 3 was given"),
        ("", ValueError, "a path or a hub name is expected, but an empty text was given"),
        ("  ", ValueError, "an empty text was given"),
        ("~nobody_at_all/x", FileNotFoundError, "there is no user nobody_at_all with a home folder"),
    ],
)
def test_what_is_no_path(path, error, message, as_users_run):
    with pytest.raises(error, match=message):
        load(path)


def change(file, keys, value):
    content = json.loads(file.read_text(encoding="utf-8"))
    inner = content
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    file.write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize("layers", [10**9, 9_999])
@pytest.mark.parametrize(
    ("golden", "file", "keys"),
    [
        ("bert_tiny", "config.json", ("num_hidden_layers",)),
        ("bert_tiny_tf", "bert_config.json", ("num_hidden_layers",)),
        ("elmo_tiny", "options.json", ("lstm", "n_layers")),
        ("gpt_tiny", "config.json", ("n_layer",)),
        ("run", "model.json", ("config", "num_layers")),
    ],
)
def test_more_layers_than_tensors(golden, file, keys, layers, goldens, tmp_path):
    """Their names alone would take gigabytes."""
    if golden == "run":
        write(tmp_path / "model", "sst2", labels=("a", "b"))
    else:
        shutil.copytree(goldens / golden, tmp_path / "model")
    change(tmp_path / "model" / file, keys, layers)
    with pytest.raises(ValueError, match=rf"do not fit: the configuration has {layers:,} layers|at most 10,000"):
        load(tmp_path / "model")


def test_a_layer_number_of_a_tensor(tmp_path):
    import numpy as np
    from safetensors.numpy import save_file

    names = ("0.rnns.0.module.weight_ih_l0", "0.rnns.999999999.module.weight_ih_l0", "0.encoder.weight")
    from bert_elmo_jax.families.awd_lstm.fastai import find_names
    from bert_elmo_jax.weights.huggingface_files import read_safetensors

    save_file({name: np.zeros((2, 2), np.float32) for name in names}, tmp_path / "a.safetensors")
    with pytest.raises(ValueError, match="has 1,000,000,000 layers, the file 3 tensors"):
        find_names(read_safetensors(tmp_path / "a.safetensors"), "a.safetensors")


def test_characters_of_a_word(goldens, tmp_path):
    shutil.copytree(goldens / "elmo_tiny", tmp_path / "elmo")
    change(tmp_path / "elmo" / "options.json", ("char_cnn", "max_characters_per_token"), 10**11)
    with pytest.raises(ValueError, match="max_characters is 100,000,000,000; at most 10,000 are possible"):
        load(tmp_path / "elmo")


def test_fewer_layers_than_the_weights_have(goldens, tmp_path, caplog):
    shutil.copytree(goldens / "bert_tiny", tmp_path / "bert")
    change(tmp_path / "bert" / "config.json", ("num_hidden_layers",), 1)
    assert load(tmp_path / "bert").num_layers == 1
    [record] = caplog.records
    assert "has no place for 32 tensors of the file, which are left out: " in record.getMessage()
    assert "encoder.layer.1." in record.getMessage() and "\n" not in record.getMessage()
    caplog.clear()
    load(goldens / "bert_tiny")
    assert not caplog.records


@pytest.mark.parametrize(("kept", "said"), [(100, True), (127, True), (190, False), (200, False)])
def test_a_vocabulary_that_is_cut_short(kept, said, goldens, tmp_path, caplog):
    """Many released models have a few unused embeddings."""
    shutil.copytree(goldens / "bert_tiny", tmp_path / "bert")
    vocabulary = tmp_path / "bert" / "vocab.txt"
    pieces = vocabulary.read_text(encoding="utf-8").splitlines()
    assert len(pieces) == 200
    vocabulary.write_text("\n".join(pieces[:kept]) + "\n", encoding="utf-8")
    load(tmp_path / "bert")
    expected = f"the tokenizer has {kept} pieces, the model embeddings for 200; if its file is cut short"
    assert [expected in record.getMessage() for record in caplog.records] == [True] * said


def test_links_to_nothing(goldens, tmp_path):
    shutil.copy(goldens / "bert_tiny" / "config.json", tmp_path)
    (tmp_path / "model.safetensors").symlink_to("/blobs/3f2a")
    with pytest.raises(FileNotFoundError) as refused:
        load(tmp_path)
    assert str(refused.value).endswith(
        "1 of these are links to files that do not exist (model.safetensors to /blobs/3f2a): copy the files themselves."
    )


@pytest.mark.parametrize(
    ("golden", "file"),
    [
        ("bert_tiny", "config.json"),
        ("bert_tiny", "tokenizer_config.json"),
        ("bert_tiny_tf", "bert_config.json"),
        ("elmo_tiny", "options.json"),
        ("run", "model.json"),
        ("run", "run.json"),
        ("run", "checkpoints/0/files.json"),
    ],
)
def test_json_that_is_nested_too_deeply(golden, file, goldens, tmp_path):
    from bert_elmo_jax.train.run_guard import same_run

    if golden == "run":
        write(tmp_path / "model", "sst2", labels=("a", "b"))
    else:
        shutil.copytree(goldens / golden, tmp_path / "model")
    (tmp_path / "model" / file).write_text(DEEP)
    with pytest.raises(ValueError, match=r"nested too deeply|is not (a )?JSON|is damaged"):
        same_run(tmp_path / "model", {}) if file == "run.json" else load(tmp_path / "model")
