"""Tests of stores: access to documents, and damage."""

import json
import shutil
import time

import numpy as np
import pytest

from bert_elmo_jax.data.corpora.store import DamagedStore, NpyAppender, open_store, verify
from bert_elmo_jax.text import load_tokenizer


@pytest.fixture
def store(tmp_path, pieces):
    shutil.copytree(pieces, tmp_path / "store")
    return tmp_path / "store"


def test_truncated_and_missing_files_raise_and_are_all_named(store):
    path = store / "shard-00001" / "train" / "tokens.npy"
    path.write_bytes(path.read_bytes()[:-2])
    expected = r"shard-00001/train/tokens\.npy: truncated, \d+ bytes where \d+ were written"
    with pytest.raises(DamagedStore, match=expected):
        open_store(store)
    shutil.rmtree(store / "shard-00002")
    (store / "shard-00000" / "heldout" / "documents.npy").write_bytes(b"")
    with pytest.raises(DamagedStore) as caught:
        open_store(store, "heldout")
    assert str(caught.value).count("shard-00002") == 6
    assert "shard-00000/heldout/documents.npy: truncated" in str(caught.value)


def test_verify_finds_an_altered_byte(store):
    assert verify(store) == 5 * 6 + len(list((store / "tokenizer").iterdir()))
    path = store / "shard-00003" / "train" / "tokens.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    open_store(store)  # opening checks only the sizes
    with pytest.raises(DamagedStore, match=r"shard-00003/train/tokens\.npy: altered"):
        verify(store)


def test_another_tokenizer_and_an_altered_vocabulary_raise(store):
    open_store(store, fingerprint=load_tokenizer(store / "tokenizer").fingerprint)
    with pytest.raises(ValueError, match="made by another tokenizer"):
        open_store(store, fingerprint="0" * 64)
    with (store / "tokenizer" / "vocab.txt").open("a", encoding="utf-8") as file:
        file.write("more\n")
    with pytest.raises(DamagedStore, match=r"vocab\.txt: altered"):
        open_store(store)


def test_damaged_and_foreign_manifests_raise(store, tmp_path):
    manifest = store / "manifest.json"
    text = manifest.read_text(encoding="utf-8")
    for wrong in (text[:100], "[]", "{}", "\xff"):
        manifest.write_text(wrong, encoding="latin1")
        with pytest.raises(DamagedStore, match=r"manifest\.json cannot be read"):
            open_store(store)
    for place, value in (("bytes", {}), ("sha256", 3), ("documents", -1), ("vocab_size", "8"), ("kind", None)):
        changed = json.loads(text)
        files = changed["shards"][0]["train"]["files"]["tokens.npy"]
        counts = changed["shards"][0]["train"]["counts"]
        next(holder for holder in (files, counts, changed["tokenizer"]) if place in holder)[place] = value
        manifest.write_text(json.dumps(changed))
        with pytest.raises(DamagedStore, match=r"manifest\.json cannot be read .*a wrong value for "):
            open_store(store)
    for name in ("../shard-00000", "/etc", "..", "shard-1", 3):
        changed = json.loads(text)
        changed["shards"][1]["name"] = name
        manifest.write_text(json.dumps(changed))
        with pytest.raises(DamagedStore, match=r"is no name of a shard or a file in the store"):
            open_store(store)
    for name in ("../secret", "/etc/passwd", "tokenizer/../../secret", "", "C:\\secret", "..\\secret"):
        changed = json.loads(text)
        changed["files"][name] = changed["files"]["tokenizer/vocab.txt"]
        manifest.write_text(json.dumps(changed))
        with pytest.raises(DamagedStore, match=r"is no name of a shard or a file in the store"):
            open_store(store)
    manifest.write_text(json.dumps({**json.loads(text), "format": 99}))
    with pytest.raises(ValueError, match="has format 99, this version reads 1"):
        open_store(store)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="so it is not a store"):
        open_store(tmp_path / "empty")
    with pytest.raises(ValueError, match="the parts train and heldout"):
        open_store(store, "test")


def test_wrong_documents_and_forms_raise(pieces):
    store = open_store(pieces)
    with pytest.raises(IndexError, match=r"document \d+ of \d+"):
        store[len(store)]
    with pytest.raises(IndexError):
        store[-1]
    with pytest.raises(ValueError, match="--tokenizer=words"):
        _ = store.forms


def test_opening_a_store_and_reading_a_document_is_fast(pieces):
    def best(action, times):
        spent = []
        for _ in range(times):
            start = time.perf_counter()
            action()
            spent.append(time.perf_counter() - start)
        return min(spent)

    assert best(lambda: open_store(pieces), 20) < 0.05
    documents = open_store(pieces)
    documents[3]
    assert best(lambda: documents[3], 200) < 0.001  # includes type checks of every call, as in all tests


def test_unfinished_array_cannot_be_loaded(tmp_path):
    writer = NpyAppender(tmp_path / "a.npy", np.dtype(np.int64))
    writer.append(np.arange(5))
    writer._file.flush()
    with pytest.raises(ValueError):
        np.load(tmp_path / "a.npy")
    writer.close()
    assert np.load(tmp_path / "a.npy").tolist() == [0, 1, 2, 3, 4]
