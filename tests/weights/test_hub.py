"""Hub names against a made-up cache, without a network."""

import sys
import types

import pytest

from bert_elmo_jax.inference.read_model import read_weights
from bert_elmo_jax.weights.hub import hub_cache, resolve

COMMIT = "a" * 40


@pytest.fixture
def cache(tmp_path, monkeypatch, goldens):
    """Return a cache with one model, linked to its blobs as by the hub's client."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    model = tmp_path / "hub" / "models--our-org--bert-tiny"
    for folder in ("blobs", "refs", f"snapshots/{COMMIT}"):
        (model / folder).mkdir(parents=True)
    (model / "refs" / "main").write_text(COMMIT)
    for number, name in enumerate(("config.json", "model.safetensors", "vocab.txt")):
        (model / "blobs" / str(number)).write_bytes((goldens / "bert_tiny" / name).read_bytes())
        (model / "snapshots" / COMMIT / name).symlink_to(f"../../blobs/{number}")
    return model


@pytest.fixture
def client(monkeypatch):
    """Replace the hub's client by one that records its calls and behaves as configured."""
    calls = []
    module = types.ModuleType("huggingface_hub")

    def snapshot_download(name, **options):
        calls.append((name, options))
        return str(module.answer(name, **options))

    def offline(name, **options):
        raise ConnectionError("the network cannot be reached\nand more of it")

    module.snapshot_download, module.answer, module.calls = snapshot_download, offline, calls
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    return module


def test_an_existing_path_wins(tmp_path, monkeypatch, cache, client, goldens):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "our-org" / "bert-tiny").mkdir(parents=True)
    assert resolve("our-org/bert-tiny").resolve() == tmp_path / "our-org" / "bert-tiny"
    prefix = goldens / "bert_tiny_tf" / "bert_model.ckpt"
    assert resolve(prefix) == prefix and not client.calls


def test_a_name_in_the_cache(cache, client):
    path = resolve("our-org/bert-tiny")
    assert path == cache / "snapshots" / COMMIT and not client.calls
    params, config, _ = read_weights(path)
    assert config.num_layers == 3 and "mlm" in params


def test_revisions(cache, client):
    assert resolve("our-org/bert-tiny", revision=COMMIT) == cache / "snapshots" / COMMIT
    (cache / "refs" / "v1.0").write_text(COMMIT + "\n")
    assert resolve("our-org/bert-tiny", revision="v1.0") == cache / "snapshots" / COMMIT
    (cache / "refs" / "pr").mkdir()
    (cache / "refs" / "pr" / "1").write_text(COMMIT)
    assert resolve("our-org/bert-tiny", revision="pr/1") == cache / "snapshots" / COMMIT
    with pytest.raises(
        FileNotFoundError, match=r"no our-org/bert-tiny \(revision v2\) with weights in the hub's cache"
    ):
        resolve("our-org/bert-tiny", revision="v2")


@pytest.mark.parametrize("evil", ["../../../secret", "..", "/etc", COMMIT + "/../.."])
def test_references_that_lead_elsewhere(cache, client, evil):
    (cache / "refs" / "main").write_text(evil)
    with pytest.raises(FileNotFoundError, match="with weights in the hub's cache"):
        resolve("our-org/bert-tiny")
    with pytest.raises(FileNotFoundError, match="with weights in the hub's cache"):
        resolve("our-org/bert-tiny", revision=evil)


@pytest.mark.parametrize(
    "name", ["./our-org/bert-tiny", "/absent/model", "a/b/c", "../x", "org/..", "모델/x", "모델", "a//b", "a b"]
)
def test_what_is_no_hub_name(cache, client, name, monkeypatch, tmp_path):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(FileNotFoundError, match="does not exist and is not a hub name"):
        resolve(name)
    assert not client.calls


def test_offline_says_where_it_looked(cache, client):
    with pytest.raises(FileNotFoundError) as problem:
        resolve("google-bert/bert-base-uncased")
    text = str(problem.value)
    assert "there is no path google-bert/bert-base-uncased" in text and str(cache.parent) in text
    assert "the download failed (the network cannot be reached)" in text and "and more" not in text


def test_a_misspelt_folder(cache, client, tmp_path, monkeypatch):
    """The name may also be a hub name, so the hub is asked first."""
    (tmp_path / "runs" / "reviews").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"the download failed .*; did you mean runs/reviews\?$"):
        resolve("runs/review")
    with pytest.raises(FileNotFoundError, match=r"is not a hub name .*; did you mean runs/reviews\?$"):
        resolve("./runs/review")


def test_no_client(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert resolve("our-org/bert-tiny").name == COMMIT
    with pytest.raises(ImportError, match=r"pip install -e '\.\[hub\]'"):
        resolve("our-org/other")


def test_fetching_prefers_safetensors(cache, client):
    client.answer = lambda name, **options: cache / "snapshots" / COMMIT
    assert resolve("our-org/new") == cache / "snapshots" / COMMIT
    ((name, options),) = client.calls
    assert name == "our-org/new" and options["cache_dir"] == cache.parent and options["revision"] == "main"
    assert "model.safetensors" in options["allow_patterns"] and "config.json" in options["allow_patterns"]
    assert not any("bin" in pattern or pattern[0] == "*" for pattern in options["allow_patterns"])


def test_fetching_falls_back_to_pickles(cache, client, tmp_path):
    fetched = tmp_path / "fetched"
    fetched.mkdir()

    def answer(name, *, allow_patterns, **options):
        if "pytorch_model.bin" in allow_patterns:
            (fetched / "pytorch_model.bin").touch()
        return fetched

    client.answer = answer
    assert resolve("our-org/new") == fetched and len(client.calls) == 2


def test_a_snapshot_without_weights_is_completed(cache, client):
    snapshot = cache / "snapshots" / COMMIT
    (snapshot / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="with weights in the hub's cache"):
        resolve("our-org/bert-tiny")
    client.answer = lambda name, **options: snapshot
    with pytest.raises(FileNotFoundError, match=r"our-org/bert-tiny on the hub has none of model.safetensors"):
        resolve("our-org/bert-tiny")


def test_where_the_cache_is(monkeypatch, tmp_path):
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert hub_cache() == tmp_path / ".cache" / "huggingface" / "hub"
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert str(hub_cache()) == "/x/huggingface/hub"
    monkeypatch.setenv("HF_HOME", "/h")
    assert str(hub_cache()) == "/h/hub"
    monkeypatch.setenv("HF_HUB_CACHE", "/c")
    assert str(hub_cache()) == "/c"


def test_example_of_hub_cache():
    assert hub_cache().name == "hub"
