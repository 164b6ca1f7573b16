"""Hub names, against a stand-in for the hub's client that has the models of a local folder."""

import fnmatch
import hashlib
import inspect
import json
import os
import shutil
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.heads.sentence_head import SentenceHead
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.weights import hub
from bert_elmo_jax.weights.hub import hub_cache, resolve

COMMIT = "a" * 40
NAME = "our-org/model"


class Hub:
    """The client's two functions that are used, over models in a folder; it lays out the cache as the client does."""

    def __init__(self, cache: Path):
        self.cache, self.models, self.online, self.calls = cache, {}, True, []

    def files(self, name, allow_patterns, ignore_patterns):
        files = [path.relative_to(self.models[name]).as_posix() for path in self.models[name].rglob("*")]

        def matches(file, patterns):
            return any(fnmatch.fnmatch(file, pattern) for pattern in patterns or ())

        chosen = [file for file in files if matches(file, allow_patterns) and not matches(file, ignore_patterns)]
        return [file for file in chosen if (self.models[name] / file).is_file()]

    def snapshot_download(self, name, *, revision, cache_dir, token, allow_patterns, ignore_patterns, local_files_only):
        self.calls.append({"name": name, "revision": revision, "token": token, "offline": local_files_only})
        assert Path(cache_dir) == self.cache
        model = self.cache / f"models--{name.replace('/', '--')}"
        snapshot, tree = model / "snapshots" / COMMIT, model / "trees" / f"{COMMIT}.json"
        if local_files_only or not self.online:
            if not snapshot.is_dir() or revision not in ("main", COMMIT):
                raise huggingface_hub.errors.LocalEntryNotFoundError("the network cannot be reached\nand more of it")
            if tree.is_file():
                files = self.files(name, allow_patterns, ignore_patterns)
                if missing := [file for file in files if not (snapshot / file).is_file()]:
                    raise huggingface_hub.errors.IncompleteSnapshotError(f"{missing} are missing", str(snapshot))
            return str(snapshot)
        tree.parent.mkdir(parents=True, exist_ok=True)
        tree.touch()
        snapshot.mkdir(parents=True, exist_ok=True)
        for file in self.files(name, allow_patterns, ignore_patterns):
            self.add(name, file)
        return str(snapshot)

    def add(self, name, file):
        """Put one file into the cache, as programs do that download file by file."""
        model = self.cache / f"models--{name.replace('/', '--')}"
        content = (self.models[name] / file).read_bytes()
        blob, link = model / "blobs" / hashlib.sha256(content).hexdigest(), model / "snapshots" / COMMIT / file
        for path in (blob, link):
            path.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        if not link.is_symlink():
            link.symlink_to(os.path.relpath(blob, link.parent))
        return link

    def get_cached_repo_tree(self, name, *, revision, cache_dir):
        tree = Path(cache_dir) / f"models--{name.replace('/', '--')}" / "trees" / f"{revision}.json"
        if not tree.is_file():
            raise huggingface_hub.errors.CachedRepoTreeNotFoundError("no list of files")
        return [tree]


@pytest.fixture
def client(tmp_path, monkeypatch, goldens):
    """Replace the hub's client with a stand-in that has one model, not downloaded yet."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    client = Hub(tmp_path / "hub")
    client.models[NAME] = shutil.copytree(goldens / "bert_tiny", tmp_path / "there" / "bert")
    for name in ("snapshot_download", "get_cached_repo_tree"):
        monkeypatch.setattr(huggingface_hub, name, getattr(client, name))
    return client


@pytest.fixture
def sentence_model(client, goldens, tmp_path):
    """Put a model on the hub that pools its first piece."""
    encoder = load(goldens / "bert_tiny")
    encoder.sentence_head = SentenceHead(("cls",), ("normalize",))
    client.models[NAME] = tmp_path / "there" / "sentences"
    encoder.save_sentences(client.models[NAME])
    (client.models[NAME] / "2_Normalize" / "config.json").unlink()
    return encoder.sentences(["[MASK] [MASK]", "[MASK]"])


def downloaded(client):
    snapshot = client.cache / "models--our-org--model" / "snapshots" / COMMIT
    return sorted(path.relative_to(snapshot).as_posix() for path in client.cache.rglob("*") if path.is_symlink())


def test_an_existing_path_wins(tmp_path, monkeypatch, client, goldens):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "our-org" / "model").mkdir(parents=True)
    assert resolve(NAME).resolve() == tmp_path / "our-org" / "model"
    prefix = goldens / "bert_tiny_tf" / "bert_model.ckpt"
    assert resolve(prefix) == prefix and not client.calls
    with pytest.raises(ValueError, match="is a local path; revision and token belong to a hub name"):
        resolve(prefix, revision="main")


def test_a_sentence_model_has_its_own_pooling(client, sentence_model):
    encoder = load(NAME)
    assert encoder.sentence_head == SentenceHead(("cls",), ("normalize",), max_length=encoder.config.max_positions)
    assert np.array_equal(encoder.sentences(["[MASK] [MASK]", "[MASK]"]), sentence_model)
    assert {"modules.json", "1_Pooling/config.json", "config_sentence_transformers.json"} <= set(downloaded(client))


def add_without_pooling(client):
    for file in ("config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"):
        client.add(NAME, file)


def test_a_cache_without_the_pooling_is_completed(client, sentence_model):
    add_without_pooling(client)
    (client.cache / "models--our-org--model" / "refs").mkdir()
    assert np.array_equal(load(NAME).sentences(["[MASK] [MASK]", "[MASK]"]), sentence_model)


def test_a_cache_without_the_pooling_says_so_offline(client, sentence_model, caplog):
    add_without_pooling(client)
    client.online = False
    assert load(NAME).num_layers == 3
    [record] = caplog.records
    assert "our-org/model: the hub cannot be asked, so its cache is used" in record.getMessage()
    assert "its modules.json is missing there" in record.getMessage()


def test_traces_of_a_pooling_without_its_description(client, sentence_model):
    folder = client.models[NAME]
    (folder / "modules.json").unlink()
    encoder = load(folder)
    assert encoder.encode(["[MASK]"]).last.shape == (1, 3, 64)
    traces = "config_sentence_transformers.json and sentence_bert_config.json and 1_Pooling"
    with pytest.raises(ValueError, match=f"sentences has {traces}, but not the mo"):
        encoder.sentences(["[MASK]"])
    with pytest.raises(ValueError, match=r"or choose with `model.sentence_head = SentenceHead\(\(\"mean\",\)\)`"):
        encoder.save_sentences(folder.with_name("again"))
    with pytest.raises(ValueError, match=r"so the pooling of its vectors would be lost: copy modules\.json"):
        convert(str(folder), folder.with_name("converted"))
    encoder.sentence_head = SentenceHead(("cls",))
    assert encoder.sentences(["[MASK]"]).shape == (1, 64)


def test_pickles_only_for_parts_without_safetensors(client, tmp_path):
    folder = client.models[NAME] = tmp_path / "there" / "parts"
    for file in (
        "README.md", "config.json", "model.safetensors", "pytorch_model.bin", "tf_model.h5", "flax_model.msgpack",
        "onnx/model.onnx", "onnx/config.json", "openvino/openvino_model.xml", "source.spm", "sentencepiece.bpe.model",
        "checkpoint-500/model.safetensors", "1_Pooling/config.json", "2_Dense/config.json", "2_Dense/pytorch_model.bin",
        "3_Dense/config.json", "3_Dense/model.safetensors", "3_Dense/pytorch_model.bin",
    ):  # fmt: skip
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(file)
    parts = ["", "1_Pooling", "2_Dense", "3_Dense"]
    kinds = ["Transformer", "Pooling", "Dense", "Dense"]
    modules = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in zip(parts, kinds)]
    (folder / "modules.json").write_text(json.dumps(modules))
    resolve(NAME)
    assert downloaded(client) == [
        "1_Pooling/config.json", "2_Dense/config.json", "2_Dense/pytorch_model.bin", "3_Dense/config.json",
        "3_Dense/model.safetensors", "config.json", "model.safetensors", "modules.json", "sentencepiece.bpe.model",
        "source.spm",
    ]  # fmt: skip


def test_other_weights_where_there_is_nothing_better(client):
    folder = client.models[NAME]
    (folder / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"our-org/model on the hub has none of model.safetensors"):
        resolve(NAME)
    shutil.rmtree(client.cache)
    for names in (
        {"pytorch_model.bin"}, {"pytorch_model.bin.index.json", "pytorch_model-00001-of-00001.bin"},
        {"flax_model.msgpack"}, {"tf_model.h5.index.json", "tf_model-00001-of-00001.h5"},
    ):  # fmt: skip
        for name in names:
            (folder / name).touch()
        assert names <= {path.name for path in resolve(NAME).iterdir()}
        shutil.rmtree(client.cache)
        for name in names:
            (folder / name).unlink()


def test_a_complete_cache_needs_no_network(client):
    first = resolve(NAME)
    assert [call["offline"] for call in client.calls] == [True, False]
    client.calls.clear()
    assert resolve(NAME) == first == client.cache / "models--our-org--model" / "snapshots" / COMMIT
    assert [call["offline"] for call in client.calls] == [True]
    assert load(NAME).num_layers == 3


def test_revision_and_token_reach_the_client(client):
    resolve(NAME, revision=COMMIT, token="secret")
    load(NAME, revision=COMMIT, token="secret")
    assert all(call["revision"] == COMMIT and call["token"] == "secret" for call in client.calls)
    client.online = False
    with pytest.raises(FileNotFoundError, match=r"no our-org/model \(revision v2\) with weights in the hub's cache"):
        load(NAME, revision="v2")


def test_invalid_revisions_and_names(as_users_run, client, monkeypatch, tmp_path):
    for revision in ("../../../secret", "..", "/etc", COMMIT + "/../..", "", 3):
        with pytest.raises(ValueError, match="expected a branch, a tag or a commit of our-org/model"):
            resolve(NAME, revision=revision)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    for name in ("./our-org/model", "/absent/model", "a/b/c", "../x", "org/..", "모델/x", "모델", "a//b", "a b"):
        with pytest.raises(FileNotFoundError, match="does not exist and is not a hub name"):
            resolve(name)
    assert not client.calls


def test_an_incomplete_snapshot_offline(client, sentence_model, caplog):
    resolve(NAME)
    model = client.cache / "models--our-org--model" / "snapshots" / COMMIT
    client.online = False
    (model / "config_sentence_transformers.json").unlink()
    assert resolve(NAME) == model
    [record] = caplog.records
    assert "is used, although files are missing: ['config_sentence_transformers.json']" in record.getMessage()
    (model / "modules.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"the download failed \(.*modules.json.* are missing\)"):
        resolve(NAME)


def test_offline_says_where_it_looked_and_suggests_folders(client, tmp_path, monkeypatch):
    """The name of a folder may also be a hub name, so the hub is asked first."""
    client.online = False
    with pytest.raises(FileNotFoundError, match="there is no path google-bert/bert-base-uncased") as problem:
        resolve("google-bert/bert-base-uncased")
    text = str(problem.value)
    assert "the download failed (the network cannot be reached)" in text and "and more" not in text
    assert str(client.cache) in text
    (tmp_path / "runs" / "reviews").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"the download failed .*; did you mean runs/reviews\?$"):
        resolve("runs/review")
    with pytest.raises(FileNotFoundError, match=r"is not a hub name .*; did you mean runs/reviews\?$"):
        resolve("./runs/review")


def test_links_out_of_the_cache_are_refused(client, tmp_path):
    vocabulary = resolve(NAME) / "vocab.txt"
    vocabulary.unlink()
    vocabulary.symlink_to("/etc/hostname")
    with pytest.raises(ValueError, match=r"vocab\.txt is a link to /etc/hostname, outside the folder of the model"):
        load(NAME)


@pytest.mark.parametrize(
    "layout", ["cls_prompts", "max_dense", "mean_normalize", "sqrt_and_last", "transformer_in_subfolder",
               "weightedmean_without_prompt"]
)  # fmt: skip
def test_released_layouts(client, layout):
    folder = Path(__file__).parents[3] / "shared" / "goldens" / "sentence_folders" / layout
    if not folder.is_dir():
        pytest.skip("the layouts are not part of the repository")
    client.models[NAME] = folder
    texts = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["texts"]
    expected = np.load(folder / "expected.npz")["embeddings"]
    np.testing.assert_allclose(load(NAME).sentences(texts, overflow="truncate"), expected, atol=1e-5)


def test_where_the_cache_is(monkeypatch, tmp_path):
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert hub_cache() == tmp_path / ".cache" / "huggingface" / "hub"
    for variable, value, expected in (
        ("XDG_CACHE_HOME", "/x", "/x/huggingface/hub"),
        ("HF_HOME", "/h", "/h/hub"),
        ("HF_HUB_CACHE", "/c", "/c"),
    ):
        monkeypatch.setenv(variable, value)
        assert str(hub_cache()) == expected


def test_the_real_client_takes_these_arguments():
    names = inspect.signature(huggingface_hub.snapshot_download).parameters
    assert {"revision", "cache_dir", "token", "allow_patterns", "ignore_patterns", "local_files_only"} <= set(names)
    assert hub.READ and callable(huggingface_hub.get_cached_repo_tree)
