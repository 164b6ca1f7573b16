"""Broken models: `load` refuses them, or reports them in one line, before it builds anything large."""

import json
import re
import shutil

import h5py
import numpy as np
import pytest
from safetensors.numpy import save_file

from bert_elmo_jax import load
from bert_elmo_jax.families.awd_lstm.fastai import find_names
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.train.run_guard import same_run
from bert_elmo_jax.weights.huggingface_files import read_safetensors

from .test_task_model import write

DEEP = '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"


def test_invalid_paths(as_users_run):
    for path, error, message in (
        (None, TypeError, "a path or a hub name is expected, but None was given"),
        (3, TypeError, "a path or a hub name is expected, but 3 was given"),
        ("", ValueError, "a path or a hub name is expected, but an empty text was given"),
        ("  ", ValueError, "an empty text was given"),
        ("~nobody_at_all/x", FileNotFoundError, "there is no user nobody_at_all with a home folder"),
    ):
        with pytest.raises(error, match=message):
            load(path)


@pytest.fixture(scope="module")
def copied(goldens, tmp_path_factory):
    """Return a function that copies a frozen model, or a run of a task, into a folder."""
    run = write(tmp_path_factory.mktemp("run") / "model", "sst2", labels=("a", "b"))

    def copy(name, folder):
        return shutil.copytree(run if name == "run" else goldens / name, folder)

    return copy


def change(file, keys, value):
    content = json.loads(file.read_text(encoding="utf-8"))
    inner = content
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    file.write_text(json.dumps(content), encoding="utf-8")


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
def test_more_layers_than_tensors(golden, file, keys, copied, tmp_path):
    """Their names alone would take gigabytes."""
    copied(golden, tmp_path / "model")
    for layers in (10**9, 9_999):
        change(tmp_path / "model" / file, keys, layers)
        with pytest.raises(
            ValueError, match=rf"do not fit: the configuration has {layers:,} layers|at most 10|from 1 to"
        ):
            load(tmp_path / "model")


def test_large_numbers_of_layers_and_characters(copied, tmp_path):
    names = ("0.rnns.0.module.weight_ih_l0", "0.rnns.999999999.module.weight_ih_l0", "0.encoder.weight")
    save_file({name: np.zeros((2, 2), np.float32) for name in names}, tmp_path / "a.safetensors")
    with pytest.raises(ValueError, match="has 1,000,000,000 layers, the file 3 tensors"):
        find_names(read_safetensors(tmp_path / "a.safetensors"), "a.safetensors")
    copied("elmo_tiny", tmp_path / "elmo")
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


def test_a_vocabulary_that_is_cut_short(goldens, tmp_path, caplog):
    """Many released models have a few unused embeddings."""
    shutil.copytree(goldens / "bert_tiny", tmp_path / "bert")
    vocabulary = tmp_path / "bert" / "vocab.txt"
    pieces = vocabulary.read_text(encoding="utf-8").splitlines()
    assert len(pieces) == 200
    for count, warns in ((100, True), (127, True), (190, False), (200, False)):
        vocabulary.write_text("\n".join(pieces[:count]) + "\n", encoding="utf-8")
        caplog.clear()
        load(tmp_path / "bert")
        expected = f"the tokenizer has {count} pieces, the model embeddings for 200; if its file is cut short"
        assert [expected in record.getMessage() for record in caplog.records] == [True] * warns


def test_links_to_nothing(goldens, tmp_path):
    shutil.copy(goldens / "bert_tiny" / "config.json", tmp_path)
    (tmp_path / "model.safetensors").symlink_to("/blobs/3f2a")
    expected = "1 of these are links to files that do not exist (model.safetensors to /blobs/3f2a): copy the files "
    with pytest.raises(FileNotFoundError, match=re.escape(expected + "themselves.") + "$"):
        load(tmp_path)


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
def test_json_that_is_nested_too_deeply(golden, file, copied, tmp_path):
    copied(golden, tmp_path / "model")
    (tmp_path / "model" / file).write_text(DEEP)
    with pytest.raises(ValueError, match=r"nested too deeply|is not (a )?JSON|is damaged"):
        same_run(tmp_path / "model", {}) if file == "run.json" else load(tmp_path / "model")


# A model cannot lead to files outside its folder.


def link(folder, name):
    (folder / name).unlink()
    (folder / name).symlink_to("/etc/passwd")


def list_a_shard_outside(folder):
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    index = {"weight_map": {"bert.pooler.dense.weight": "../outside.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def store_numbers_outside(folder):
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        shape = file["char_embed"].shape
        del file["char_embed"]
        file.create_dataset("char_embed", shape=shape, dtype="f4", external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)])


def list_a_file_of_a_checkpoint_outside(folder):
    change(folder / "checkpoints" / "0" / "files.json", ("../../../../etc/passwd",), [1, "0" * 64])


@pytest.mark.parametrize(
    ("golden", "harm", "message"),
    [
        ("bert_tiny", lambda folder: link(folder, "vocab.txt"), r"vocab\.txt is a link to /etc/passwd, outside the f"),
        ("bert_tiny", list_a_shard_outside, r"lists files outside its folder, which is refused: '\.\./outside"),
        ("elmo_tiny", store_numbers_outside, "the numbers of char_embed are stored in /etc/passwd"),
        ("run", list_a_file_of_a_checkpoint_outside, "files.json is not a list of files"),
        ("run", lambda folder: link(folder, "tokenizer/vocab.txt"), r"tokenizer/vocab\.txt is a link to /etc/passwd"),
    ],
)
def test_files_outside_a_models_folder(goldens, tmp_path, golden, harm, message):
    folder = tmp_path / "parent" / "model"
    if golden == "run":
        convert(str(goldens / "bert_tiny"), folder, to_format="run")
    else:
        shutil.copytree(goldens / golden, folder)
    harm(folder)
    with pytest.raises((ValueError, OSError), match=message):
        load(folder)
    with pytest.raises((ValueError, OSError), match=message):
        convert(str(folder), tmp_path / "converted", to_format="run")
    assert not (tmp_path / "converted").exists()


def test_paths_in_a_tokenizers_settings_are_not_followed(goldens, tmp_path):
    shutil.copytree(goldens / "bert_tiny", tmp_path / "bert")
    names = ("vocab_file", "tokenizer_file", "name_or_path", "special_tokens_map_file")
    (tmp_path / "bert" / "tokenizer_config.json").write_text(json.dumps(dict.fromkeys(names, "/etc/passwd")))
    assert load(tmp_path / "bert").tokenizer.fingerprint == load(goldens / "bert_tiny").tokenizer.fingerprint
