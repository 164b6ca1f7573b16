"""A flipped bit anywhere in a model that this project wrote is found, and a folder without hashes is refused."""

import hashlib
import shutil
import subprocess

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.files import SUMS, hash_file, read_sums, write_sums
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.inference.verify import verify_folder
from bert_elmo_jax.weights.digest import digest

MODELS = ("bert_tiny", "elmo_tiny", "cove_tiny", "awd_lstm_tiny")


def flip(file, place):
    data = bytearray(file.read_bytes())
    data[int(place * (len(data) - 1))] ^= 1
    file.write_bytes(bytes(data))


@pytest.fixture(scope="module", params=[(name, to) for name in MODELS for to in (None, "run")], ids=str)
def written(request, tmp_path_factory, goldens):
    name, to_format = request.param
    folder = tmp_path_factory.mktemp("written") / "model"
    _, report = convert(str(goldens / name), folder, to_format=to_format)
    return folder, report


def test_a_flipped_bit_in_each_file_is_found(written, tmp_path):
    folder, report = written
    assert digest(load(folder, verify=True).params) == report.digest
    files = [file.relative_to(folder) for file in folder.rglob("*") if file.is_file() and file.name != "run.json"]
    assert len(files) >= 3
    for file in files:
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        flip(copy / file, 0.7)
        with pytest.raises(ValueError) as error:
            load(copy, verify=True)
        assert file.name in str(error.value) or file.name in (SUMS, "files.json"), (file, str(error.value))


def test_files_that_are_missing_or_were_added(goldens, tmp_path):
    convert(str(goldens / "bert_tiny"), tmp_path / "model")
    (tmp_path / "model" / "README.md").write_text("mine")  # anybody's notes
    load(tmp_path / "model", verify=True)
    shutil.copy(goldens / "bert_tiny" / "model.safetensors", tmp_path / "model" / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"pytorch_model\.bin has no hash, so it cannot be verified"):
        load(tmp_path / "model", verify=True)
    (tmp_path / "model" / "pytorch_model.bin").unlink()
    (tmp_path / "model" / "vocab.txt").unlink()
    with pytest.raises(ValueError, match=r"vocab\.txt is missing"):
        load(tmp_path / "model", verify=True)


def test_a_foreign_folder_has_nothing_to_verify(goldens):
    for name in ("bert_tiny", "bert_tiny_tf", "elmo_tiny", "cove_tiny"):
        with pytest.raises(ValueError, match=f"has no {SUMS}, so there is nothing to verify"):
            load(goldens / name, verify=True)


def test_a_snapshot_of_the_hub_is_verified_by_the_names_of_its_blobs(goldens, tmp_path):
    cache, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / ("0" * 40)
    cache.mkdir()
    snapshot.mkdir(parents=True)
    for name in ("config.json", "vocab.txt", "model.safetensors"):
        source = goldens / "bert_tiny" / name
        content = source.read_bytes()
        # Only large files have their SHA-256 as a name; others have a hash of git.
        git = hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()
        blob = cache / (hash_file(source) if name == "model.safetensors" else git)
        shutil.copy(source, blob)
        (snapshot / name).symlink_to(blob)
    assert verify_folder(snapshot) == ["config.json", "model.safetensors", "vocab.txt"]
    load(snapshot, verify=True)
    for name in ("model.safetensors", "config.json"):
        flip((snapshot / name).resolve(), 0.9)
        with pytest.raises(ValueError, match=rf"{name} has changed: its hash is .*, the hub says"):
            load(snapshot, verify=True)
        flip((snapshot / name).resolve(), 0.9)
    (snapshot / "added_tokens.json").write_text("{}")
    with pytest.raises(ValueError, match=r"added_tokens\.json has no hash"):
        load(snapshot, verify=True)


def test_a_flipped_bit_of_the_weights_changes_the_digest(goldens, tmp_path):
    intact_folder, _ = tmp_path / "whole", shutil.copytree(goldens / "bert_tiny", tmp_path / "changed")
    before = convert(str(goldens / "bert_tiny"), intact_folder)[1].digest
    assert convert(str(intact_folder), tmp_path / "run", to_format="run", verify=True)[1].digest == before
    flip(tmp_path / "changed" / "model.safetensors", 0.9)
    assert convert(str(tmp_path / "changed"), tmp_path / "other")[1].digest != before


def test_sums_are_those_of_sha256sum(goldens, tmp_path):
    convert(str(goldens / "bert_tiny"), tmp_path / "model")
    if shutil.which("sha256sum"):
        done = subprocess.run(["sha256sum", "-c", SUMS], cwd=tmp_path / "model", capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout.count(": OK") == len(read_sums(tmp_path / "model")) == 4
    (tmp_path / "empty").mkdir()
    assert read_sums(tmp_path / "empty") is None
    assert write_sums(tmp_path / "empty").read_text() == ""
    for line in ("", "abc  config.json", f"{'0' * 64}  ../config.json", f"{'0' * 64}  /etc/passwd"):
        (tmp_path / SUMS).write_text(f"{line}\n")
        with pytest.raises(ValueError, match="line 1 is not a hash and the name of a file in its folder"):
            read_sums(tmp_path)


def test_digest_of_types_shapes_and_names():
    array = np.arange(6, dtype=np.float32)
    trees = [{"a": array}, {"b": array}, {"a": array.astype(np.float16)}, {"a": array.reshape(2, 3)}, {"a": array[:5]}]
    assert len({digest(tree) for tree in (*trees, {"a": array, "b": array[:0]}, {})}) == 7
    assert digest({"a": array.astype(">f4")}) == digest({"a": array})
    turned = np.asfortranarray(array.reshape(2, 3))
    assert digest({"a": turned}) == digest({"a": array.reshape(2, 3)})


def test_a_conversion_appears_at_once(goldens, tmp_path, monkeypatch):
    """A conversion fills a hidden folder first; one that a killed process has left does not block the next one."""
    (tmp_path / ".model.00000000.partial").mkdir()
    (tmp_path / ".model.00000000.partial" / "config.json").write_text("{}")
    (tmp_path / "model").mkdir()
    convert(str(goldens / "bert_tiny"), tmp_path / "model", to_format="run")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".model.00000000.partial", "model"]
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    convert(str(goldens / "bert_tiny"), ".")
    assert load(".", verify=True).config.hidden_size == 64

    def fail(*_):
        raise OSError(28, "No space left on device", "model.safetensors")

    monkeypatch.setattr("bert_elmo_jax.inference.convert.write_sums", fail)
    with pytest.raises(OSError, match="No space left"):
        convert(str(goldens / "bert_tiny"), tmp_path / "other")
    assert not list(tmp_path.glob("*other*"))
