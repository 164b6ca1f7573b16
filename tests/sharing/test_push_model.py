"""A model is shared with a card of its facts; the hub is faked."""

import json
import re
import shutil
import types
from pathlib import Path

import huggingface_hub
import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.exports.export_model import export_model
from bert_elmo_jax.files import read_json, write_json
from bert_elmo_jax.heads.features import Features
from bert_elmo_jax.heads.sentence_head import SentenceHead
from bert_elmo_jax.inference.save_model import save
from bert_elmo_jax.inference.verify import verify_folder
from bert_elmo_jax.sharing.model_card import Card, write_card
from bert_elmo_jax.sharing.push_model import describe, describe_export, push_model
from bert_elmo_jax.train.checkpoint import load_params, save_params

from ..inference.test_task_model import write

GOLDENS = Path("tests/goldens")
BERT = "tests/goldens/bert_tiny"
FROZEN = Path("tests/goldens/frozen_runs")
RESULT = {
    "step": 9, "score": "accuracy", "dev": {"accuracy": 0.875, "macro_f1": 0.86},
    "comparison": {
        "dev": {"size": "40 rows", "interval": [0.739, 0.945], "baselines": {"always 'good'": {"accuracy": 0.5}}},
    },
    "data": {"train": {"file": "/home/me/secret/train.csv", "fingerprint": "ab" * 32}},
}  # fmt: skip


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a run directory of a classifier, with the files that a training leaves."""
    encoder = load(BERT)
    head = {"kernel": np.ones((encoder.width, 2), np.float32), "bias": np.zeros(2, np.float32)}
    params = {"encoder": encoder.params["encoder"], "classify": head}
    folder = save(tmp_path / "run", encoder, params, labels=["bad", "good"])
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    (tmp_path / "hub" / "models--klue--bert-base" / "snapshots").mkdir(parents=True)
    write_json(folder / "result.json", RESULT)
    write_json(
        folder / "run.json", {"program": "finetune", "init": "klue/bert-base", "train": "/home/me/secret/train.csv"}
    )
    start = json.dumps({"seconds": 300, "processor": 600, "device": "1 × cpu"})
    (folder / "costs.jsonl").write_text(f"{start}\n{start}\n")  # it was resumed once
    return folder


class Hub:
    """The calls of the hub's client that an upload makes."""

    def __init__(self, fails=""):
        self.calls, self.fails = [], fails

    def whoami(self):
        return {"name": "me", "orgs": [{"name": "us"}]}

    def create_repo(self, name, **options):
        if self.fails:
            raise OSError(f"{self.fails}\nwith more lines")
        self.calls.append(("create_repo", name, options["private"]))

    def upload_folder(self, *, repo_id, folder_path, commit_message):
        self.calls.append(("upload", repo_id, sorted(file.name for file in Path(folder_path).iterdir())))
        return types.SimpleNamespace(commit_url=f"https://hub/{repo_id}")


@pytest.fixture
def hub(monkeypatch):
    fake = Hub()
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: "hf_x")
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: fake)
    return fake


def test_a_run_is_shared_in_the_form_of_others_with_all_that_is_known(run, hub, tmp_path):
    lines = []
    assert push_model(run, "us/reviews", license="apache-2.0", private=True, say=lines.append) is None
    (_, name, private), (_, _, files) = hub.calls
    assert (name, private, lines) == ("us/reviews", True, ["Uploaded: https://hub/us/reviews"])
    assert {"README.md", "SHA256SUMS", "config.json", "model.safetensors"} <= set(files)
    folder = push_model(run, "us/reviews", license="apache-2.0", output=tmp_path / "kept", say=lines.append)
    card = (folder / "README.md").read_text("utf-8")
    for text in (
        'license: "apache-2.0"', 'base_model: "klue/bert-base"', 'pipeline_tag: "text-classification"', "`bad`, `good`",
        "| dev | accuracy | 0.8750 | 0.7390–0.9450 | 40 rows |", "accuracy (always 'good') | 0.5000", "`train.csv`",
        "10.0 minutes on 1 × cpu, 20.0 minutes of processor time", "a little too good", "load('us/reviews')",
        "pip install git+https://github.com/OWNER/bert_elmo_jax\n",
    ):  # fmt: skip
        assert text in card
    assert "/home/me" not in card
    assert verify_folder(folder)
    assert load(folder).labels == ("bad", "good")


def test_a_card_hides_folders_and_buckets_and_names_no_base_model_that_was_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    (tmp_path / "models--klue--bert-base" / "snapshots").mkdir(parents=True)
    fields = {
        "init": "runs/base", "train": "data/acme_client/a.csv,s3://acme/b.csv", "tokenizer": "klue/bert-base",
        "lm": {"data": r"C:\Users\kim\texts"}, "vectors": "gs://acme", "text": "review",
    }  # fmt: skip
    data = {"dev": {"file": r"D:\acme\dev.csv"}, "train": {"file": "s3://acme/a.csv,~/b.csv"}}
    card = write_card(Card("me/reviews", "a BERT", run=fields, result={"data": data}, corpora={"acme/novels/": {}}))
    assert "base_model" not in card and not any(word in card for word in ("runs", "acme", "kim", "~"))
    for shown in ('"base"', '"a.csv,b.csv"', '"klue/bert-base"', '"texts"', "`dev.csv`", "`a.csv,b.csv`", "`novels`"):
        assert shown in card


def test_unknown_facts_are_named_in_both_languages(tmp_path):
    folder = push_model(BERT, "me/tiny", dry_run=True, output=tmp_path / "en", say=len)
    card = (folder / "README.md").read_text("utf-8")
    for text in (
        "No scores are known",
        "training data is not known",
        "was trained is not known",
        "licence is not stated",
    ):
        assert text in card
    korean = write_card(Card("me/tiny", "a BERT"), "ko")
    for text in ("점수는 알려져 있지 않습니다", "학습 데이터는 알려져", "라이선스가 명시되어 있지 않습니다"):
        assert text in korean


def test_of_an_export_only_its_own_files_are_shared(tmp_path):
    export_model(BERT, source := tmp_path / "out", to="stablehlo")
    exported = list_files(source)
    for name in ("lease.json", "__pycache__/run.cpython-311.pyc"):  # copied from a bucket, written by Python
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).touch()
    (source / "SHA256SUMS").rename(tmp_path / "sums")
    folder = push_model(source, "me/tiny", dry_run=True, output=tmp_path / "without_hashes", say=len)
    assert list_files(folder) == {*exported, "README.md"}
    (tmp_path / "sums").rename(source / "SHA256SUMS")
    (source / "my_texts.txt").touch()
    folder = push_model(source, "me/tiny", dry_run=True, say=len)
    assert folder == tmp_path / "out_hub" and list_files(folder) == {*exported, "README.md"}
    assert verify_folder(folder)
    (source / "run.py").unlink()
    with pytest.raises(ValueError, match=r"out lacks run\.py, listed in its SHA256SUMS: copy it again"):
        push_model(source, "me/tiny", dry_run=True, output=tmp_path / "other", say=len)


@pytest.mark.parametrize(
    ("name", "pipeline"),
    [
        ("bert_tiny", ""),
        ("rank", "text-ranking"),
        ("reranker", "text-ranking"),
        ("released_heads/roberta_nli3", "text-classification"),
        pytest.param("released_heads/electra_regression", "text-classification", marks=pytest.mark.long),
        pytest.param("released_heads/bert_ner", "token-classification", marks=pytest.mark.long),
        pytest.param("released_heads/distilbert_qa", "question-answering", marks=pytest.mark.long),
    ],
)
def test_the_card_of_an_export_has_the_task_labels_and_sizes_of_its_model(name, pipeline, tmp_path):
    source = write(tmp_path / "run", "rank") if name == "rank" else GOLDENS / name
    export_model(source, tmp_path / "out", to="stablehlo")
    card = describe_export(read_json(tmp_path / "out" / "export.json"), "me/x", "")
    expected = describe(source, "me/x", "")
    for field in ("kind", "labels", "parameters", "longest"):
        assert getattr(card, field) == getattr(expected, field), field
    text = write_card(card)
    assert f"This is an exported model with {card.parameters:,} parameters" in text
    assert (f'pipeline_tag: "{pipeline}"' in text) if pipeline else "pipeline_tag" not in text


def test_the_card_of_an_older_export_does_not_say_how_large_it_is():
    card = describe_export({"kind": "network", "labels": ["NOUN"]}, "me/x", "")
    english, korean = write_card(card), write_card(card, "ko")
    assert "This is an exported model, written by" in english and "파라미터" not in korean
    assert 'pipeline_tag: "token-classification"' in english and "Its labels: `NOUN`." in english


def test_an_int8_model_keeps_its_form(tmp_path):
    from bert_elmo_jax.inference.convert import convert

    convert(BERT, tmp_path / "small", dtype="int8")
    folder = push_model(tmp_path / "small", "me/tiny", dry_run=True, say=len)
    assert "snapshot_download('me/tiny')" in (folder / "README.md").read_text("utf-8")
    assert load(folder).encode(["the river"]).last.shape == load(BERT).encode(["the river"]).last.shape


def list_files(folder):
    """Return the names of all files of a folder; those of arrays by the folder of their tree."""
    files = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
    return {name.partition("/params/")[0] + "/params" if "/params/" in name else name for name in files}


def test_a_run_in_two_directions_is_shared_without_its_texts(tmp_path):
    shutil.unpack_archive(FROZEN / "documents.zip", tmp_path / "run")
    (tmp_path / "run" / "trackers.json").write_text("{}")
    texts = [line for line in (tmp_path / "run/adapted/texts.txt").read_text("utf-8").splitlines() if line]
    folder = push_model(tmp_path / "run", "me/reviews", dry_run=True, say=len)
    files = {"README.md", "SHA256SUMS"}
    for part, step in (("", 6), ("backward/", 12)):
        files |= {f"{part}model.json", f"{part}tokenizer/words.json", f"{part}tokenizer/words.txt"}
        files |= {f"{part}checkpoints/{step}/{name}" for name in ("facts.json", "files.json", "params")}
    assert list_files(folder) == files
    uploaded = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    assert texts and not any(text.encode() in uploaded for text in texts)
    assert str(tmp_path).encode() not in uploaded
    assert load(folder, verify=True).predict(texts) == load(tmp_path / "run").predict(texts)
    file = tmp_path / "run" / "model.json"
    write_json(file, {**json.loads(file.read_text("utf-8")), "average_with": ["../run"]})
    with pytest.raises(ValueError, match=r"average_with names '../run'; expected a folder of this run"):
        push_model(tmp_path / "run", "me/reviews", dry_run=True, output=tmp_path / "other", say=len)


@pytest.mark.long
def test_a_task_network_is_shared_with_the_parameters_of_its_best_step(tmp_path):
    shutil.unpack_archive(FROZEN / "network.zip", tmp_path / "run")
    _, params = load_params(tmp_path / "run", 6)
    save_params(tmp_path / "run", 9, jax.tree.map(np.zeros_like, params))  # newer, and without a score
    folder = push_model(tmp_path / "run", "me/tagger", dry_run=True, say=len)
    model = {"model.json", "tokenizer/lexicon.json", "checkpoints/6/facts.json", "checkpoints/6/files.json"}
    encoder = {"encoder/model.json", "encoder/checkpoints/0/files.json", "encoder/checkpoints/0/params"}
    assert list_files(folder) == {"README.md", "SHA256SUMS", *model, "checkpoints/6/params", *encoder}
    sentences = [["배우", "의", "bad", "film"], ["good"]]
    assert load(folder, verify=True).predict(sentences) == load(tmp_path / "run").predict(sentences)


def test_a_head_that_reads_other_layers_is_shared_as_a_run_directory(tmp_path):
    encoder = load(BERT)
    params = {
        "encoder": encoder.params["encoder"],
        "classify": {"kernel": np.ones((encoder.width, 2), np.float32) * [[1, -1]], "bias": np.zeros(2, np.float32)},
    }
    save(tmp_path / "run", encoder, params, labels=["bad", "good"], features=Features((1,)))
    folder = push_model(tmp_path / "run", "me/x", dry_run=True, say=len)
    assert "model.json" in list_files(folder) and "run.json" not in list_files(folder)
    for file in folder.rglob("*"):
        assert not file.is_file() or str(tmp_path).encode() not in file.read_bytes(), file
    assert load(folder, verify=True).predict(["[MASK]"]) == load(tmp_path / "run").predict(["[MASK]"])


def test_sentence_vectors_of_a_bart_are_shared_as_a_run_directory(tmp_path):
    """sentence-transformers would pool the decoder."""
    encoder = load("tests/goldens/bart_tiny")
    encoder.sentence_head = SentenceHead(("max",))
    save(tmp_path / "run", encoder)
    folder = push_model(tmp_path / "run", "me/x", dry_run=True, say=len)
    assert "modules.json" not in list_files(folder)
    assert load(folder).sentence_head.pooling == ("max",)


RELEASED = "tests/goldens/released_heads"


@pytest.mark.parametrize(
    ("name", "call", "pipeline"),
    [
        ("swag", "predict([('a text', ['a continuation', 'another continuation'])])", "multiple-choice"),
        ("rte", "predict([('a text', 'another text')])", "text-classification"),
        ("rank", "rank('a query', ['a text', 'another text'])", "text-ranking"),
        (f"{RELEASED}/bert_ner", "predict(['a text', 'another text'])", "token-classification"),
        (f"{RELEASED}/roberta_nli3", "predict(['a text', 'another text'])", "text-classification"),
        ("tests/goldens/reranker", "rank('a query', ['a text', 'another text'])", "text-ranking"),
    ],
)
def test_the_python_of_a_card_runs(tmp_path, capsys, name, call, pipeline):
    source = Path(name) if "/" in name else write(tmp_path / "run", name, labels=("0", "1") if name == "rte" else ())
    folder = push_model(source, "me/model", dry_run=True, output=tmp_path / "out", say=len)
    card = (folder / "README.md").read_text("utf-8")
    assert f'pipeline_tag: "{pipeline}"' in card
    code = re.search(r"```python\n(.*?)```", card, re.DOTALL)[1]
    assert f"print(model.{call})" in code
    exec(code.replace("'me/model'", repr(str(folder))), {})
    assert capsys.readouterr().out


def test_wrong_requests_are_one_line(run, hub, monkeypatch, tmp_path):
    for model, to, message in (
        (run, "reviews", "to='reviews': expected OWNER/NAME"),
        (tmp_path / "missing", "me/x", "is not a folder"),
        (run, "google/x", "the token belongs to me, us, and --to=google/x to google"),
    ):
        with pytest.raises(ValueError, match=message):
            push_model(model, to)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="is not a model"):
        push_model(tmp_path / "empty", "me/x", dry_run=True)
    hub.fails = "403 Forbidden"
    with pytest.raises(ConnectionError, match=r"making me/x failed: 403 Forbidden$"):
        push_model(run, "me/x")
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    with pytest.raises(ValueError, match="no token of the hub was found: run `hf auth login`"):
        push_model(run, "me/x")
    with pytest.raises(ValueError, match="is not empty; give another --output"):
        push_model(run, "me/x", dry_run=True, output=run)
