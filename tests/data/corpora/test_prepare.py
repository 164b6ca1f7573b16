import contextlib
import dataclasses
import hashlib
import json
import re
import shutil
import unicodedata

import numpy as np
import pytest

from bert_elmo_jax.data.corpora import shards
from bert_elmo_jax.data.corpora.describe_source import describe
from bert_elmo_jax.data.corpora.prepare import OtherPlan, Request, prepare, refuse_idle_options
from bert_elmo_jax.data.corpora.reading import BadInput, Reading
from bert_elmo_jax.data.corpora.store import DamagedStore, open_store, verify
from bert_elmo_jax.text import load_tokenizer
from bert_elmo_jax.text.words import split_words

from ..conftest import ask, inline, no_bar, write_documents


def backwards(function, jobs, report):
    for job in reversed(jobs):
        function(job, report)


def unwanted(function, jobs, report):
    pytest.fail("nothing was left to do")


def tree(folder):
    """Return every file of a store with the hash of its bytes."""
    paths = (p for p in folder.rglob("*") if p.is_file() and p.name != ".lock")
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in paths}


def as_text(store, decode):
    return [[decode(sentence) for sentence in document] for document in store]


def test_shards_decode_to_the_normalised_text(pieces, documents):
    tokenizer = load_tokenizer(pieces / "tokenizer")
    stores = [open_store(pieces, part, fingerprint=tokenizer.fingerprint) for part in ("train", "heldout")]
    decoded = [as_text(store, tokenizer.decode) for store in stores]
    assert len(stores[0]) > 10 * len(stores[1]) / 2 > 0
    expected = [[tokenizer.normalize(s) for s in d] for d in documents]
    assert sorted(decoded[0] + decoded[1]) == sorted(expected)
    order = {json.dumps(d): n for n, d in enumerate(expected)}
    for store, texts in zip(stores, decoded):
        places = [order[json.dumps(d)] for d in texts]
        assert places == sorted(places)  # the order of the input is kept
        assert store.counts["documents"] == len(store)
        assert store.counts["sentences"] == sum(len(d) for d in store)
        assert store.counts["tokens"] == sum(len(s) for d in store for s in d)
        assert store.counts["unknown"] == 0
        assert store[0][0].dtype == np.uint16


def test_words_keep_every_surface_form(words, documents):
    stores = [open_store(words, part) for part in ("train", "heldout")]
    forms = list(stores[0].forms)
    assert forms[:3] == ["<S>", "</S>", "<UNK>"]
    assert len(forms) == len(set(forms)) == len(stores[0].forms) > stores[0].vocab_size == 30
    stored_words = [[[forms[i] for i in s] for s in d] for store in stores for d in store]
    assert sorted(stored_words) == sorted([[split_words(s) for s in d] for d in documents])
    train = np.concatenate([s for d in stores[0] for s in d])
    counts = np.load(words / "tokenizer" / "counts.npy")
    assert (np.bincount(train, minlength=30)[3:30] == counts[3:]).all()  # of the training part only
    assert (np.diff(counts[3:]) <= 0).all()
    assert counts[2] == (train >= 30).sum() == stores[0].counts["unknown"]
    assert forms[30:] == sorted(forms[30:])


def test_rare_words_are_unknown(tmp_path):
    (tmp_path / "a.txt").write_text("x x y y y z", encoding="utf-8")
    manifest = prepare(ask(tmp_path, tmp_path / "out", "words", heldout=0.0, min_count=2), inline, no_bar)
    assert manifest["tokenizer"]["vocab_size"] == 5 and manifest["options"]["min_count"] == 2
    with pytest.raises(ValueError, match="no word occurs 4 times in the training part"):
        prepare(ask(tmp_path, tmp_path / "none", "words", heldout=0.0, min_count=4), inline, no_bar)


def test_given_word_vocabulary_is_kept(tmp_path, words, corpus):
    again = prepare(ask(corpus, tmp_path / "again", words / "tokenizer", shards=2, heldout=0.1), inline, no_bar)
    manifest = json.loads((words / "manifest.json").read_text())
    assert again["tokenizer"]["fingerprint"] == manifest["tokenizer"]["fingerprint"]
    assert list(open_store(tmp_path / "again").forms)[:30] == list(open_store(words).forms)[:30]


def test_words_of_a_given_vocabulary_are_counted_in_the_text(tmp_path, words):
    (tmp_path / "a.txt").write_text("river river boat\n\nboat boat never", encoding="utf-8")
    prepare(ask(tmp_path, tmp_path / "again", words / "tokenizer", shards=2, heldout=0.0), inline, no_bar)
    store = open_store(tmp_path / "again")
    counted = dict(zip(store.forms, store.word_counts.tolist()))
    assert {word: count for word, count in counted.items() if count} == {"river": 2, "boat": 3}
    assert open_store(words).word_counts is None  # the vocabulary's counts are those of this text
    verify(tmp_path / "again")
    (tmp_path / "again" / "word_counts.npy").unlink()
    prepare(ask(tmp_path, tmp_path / "again", words / "tokenizer", shards=2, heldout=0.0), inline, no_bar)
    assert open_store(tmp_path / "again").word_counts.sum() == 5


def test_decomposed_korean_and_literal_marks_in_a_text(tmp_path):
    """Words are composed; a word that looks like a mark is outside the vocabulary."""
    (tmp_path / "a.txt").write_text(unicodedata.normalize("NFD", "강가의 은행 은행"), encoding="utf-8")
    prepare(ask(tmp_path, tmp_path / "out", "words", heldout=0.0, vocab_size=5), inline, no_bar)
    assert list(open_store(tmp_path / "out").forms) == ["<S>", "</S>", "<UNK>", "은행", "강가의"]
    (tmp_path / "a.txt").write_text("<UNK> <S> </S> x x\n")
    request = ask(tmp_path, tmp_path / "marks", "words", heldout=0.0, vocab_size=4, word_rule="whitespace")
    prepare(request, inline, no_bar)
    store = open_store(tmp_path / "marks")
    assert [store.forms[i] for i in store[0][0]] == ["<UNK>", "<S>", "</S>", "x", "x"]
    assert (store[0][0][:3] >= 4).all() and store[0][0][3] == 3


@pytest.fixture(params=["pieces", "words"])
def prepared(request, corpus, tokenizer_folder, pieces, words):
    """Return a prepared store, and a function that asks for the same one in another folder."""
    tokenizer, options = (tokenizer_folder, {}) if request.param == "pieces" else ("words", {"vocab_size": 30})
    store = {"pieces": pieces, "words": words}[request.param]
    return store, lambda folder: ask(corpus, folder, tokenizer, shards=5, heldout=0.1, **options)


def test_output_does_not_depend_on_the_order_of_jobs(tmp_path, prepared):
    store, again = prepared
    prepare(again(tmp_path / "b"), backwards, no_bar)
    assert tree(tmp_path / "b") == tree(store)


@pytest.mark.parametrize("survive", range(0, 13, 2))
def test_resuming_after_any_job_gives_the_same_bytes(tmp_path, prepared, survive):
    store, again = prepared
    left = survive

    def mortal(function, jobs, report):
        nonlocal left
        for job in jobs:
            if not left:
                raise KeyboardInterrupt
            left -= 1
            function(job, report)

    try:
        prepare(again(tmp_path / "b"), mortal, no_bar)
    except KeyboardInterrupt:
        with pytest.raises(DamagedStore, match="is not finished; run the command"):
            open_store(tmp_path / "b")
    for name in ("plan", "manifest"):  # files of a killed run
        (tmp_path / "b" / f"{name}.json.123.partial").write_text("{")
    prepare(again(tmp_path / "b"), inline, no_bar)
    assert tree(tmp_path / "b") == tree(store)


def test_split_into_parts_does_not_depend_on_the_number_of_shards(tmp_path, corpus, tokenizer_folder, pieces):
    prepare(ask(corpus, tmp_path / "one", tokenizer_folder, shards=1, heldout=0.1), inline, no_bar)
    for part in ("train", "heldout"):
        assert [[s.tolist() for s in d] for d in open_store(tmp_path / "one", part)] == [
            [s.tolist() for s in d] for d in open_store(pieces, part)
        ]


def test_more_shards_than_documents(tmp_path, tokenizer_folder):
    write_documents(tmp_path / "a.txt", [["one sentence", "또 하나"]])
    prepare(ask(tmp_path, tmp_path / "out", tokenizer_folder, shards=40), inline, no_bar)
    assert len(open_store(tmp_path / "out")) + len(open_store(tmp_path / "out", "heldout")) == 1
    assert verify(tmp_path / "out") > 200


def test_other_options_for_the_same_folder_raise(tmp_path, corpus, tokenizer_folder, pieces):
    shutil.copytree(pieces, tmp_path / "store")
    request = ask(corpus, tmp_path / "store", tokenizer_folder, shards=5, heldout=0.1)
    assert prepare(request, unwanted, no_bar)["counts"]  # finished: nothing to run
    (tmp_path / "more.txt").write_text("new")
    for changed, message in (
        (
            {"seed": 7, "reading": Reading(split="sentences")},
            r"(?s)was started with other options.*seed: 0 there, 7 given.*split: 'lines' there",
        ),
        ({"inputs": (*request.inputs, f"{tmp_path}/more.txt")}, r"input more\.txt \(\d\): not there before"),
    ):
        with pytest.raises(OtherPlan, match=message):
            prepare(dataclasses.replace(request, **changed), unwanted, no_bar)


def test_a_byte_level_bpe_is_trained(tmp_path):
    lines = ["강가의 은행에서 만나자", "the ship sailed on the river"]
    (tmp_path / "a.txt").write_text("\n\n".join(lines * 40), "utf-8")
    manifest = prepare(ask(tmp_path, tmp_path / "out", "byte_bpe", vocab_size=330), inline, no_bar)
    tokenizer = load_tokenizer(tmp_path / "out" / "tokenizer")
    assert manifest["tokenizer"] == {"kind": "byte_bpe", "vocab_size": 308, "fingerprint": tokenizer.fingerprint}
    store = open_store(tmp_path / "out")
    assert {tokenizer.decode(sentence) for document in store for sentence in document} == set(lines)
    words = sum(len(tokenizer.decode(sentence).split()) for document in store for sentence in document)
    assert (store.counts["words"], store.counts["unknown"]) == (words, 0)
    with pytest.raises(ValueError, match="--lowercase has no effect with --tokenizer=byte_bpe"):
        refuse_idle_options(Request(("a.txt",), "out", tokenizer="byte_bpe"), ["lowercase", "vocab_size", "sample_mb"])


def test_suggested_remedies_work(tmp_path, tokenizer_folder):
    (tmp_path / "a.txt").write_bytes("강가의 은행에서 만나자\n".encode("cp949") * 50)
    request = ask(tmp_path, tmp_path / "out", "wordpiece", vocab_size=60)
    with pytest.raises(BadInput, match="--encoding=cp949"):
        prepare(request, inline, no_bar)
    assert prepare(dataclasses.replace(request, reading=Reading(encoding="cp949")), inline, no_bar)["counts"]
    with pytest.raises(OtherPlan, match=r"(?s)encoding: 'cp949' there.*or delete .*out to start over"):
        prepare(request, inline, no_bar)
    (tmp_path / "a.txt").write_bytes(b"fine\n\n" * 500 + b"nul \0\n")
    request = ask(tmp_path, tmp_path / "skip", tokenizer_folder, shards=4)
    with pytest.raises(BadInput, match="line 1001"):
        prepare(request, inline, no_bar)
    assert (tmp_path / "skip" / "shard-00000").exists()
    mild = dataclasses.replace(request, reading=Reading(on_bad="skip"))
    assert prepare(mild, inline, no_bar)["skipped"] == {"a NUL byte": 1}
    with pytest.raises(OtherPlan, match="on_bad: 'skip' there, 'error' given"):
        prepare(request, inline, no_bar)


@pytest.mark.parametrize("lost", ["shard-00002/train/tokens.npy", "shard-00003", "tokenizer"])
def test_same_command_repairs_a_damaged_store(tmp_path, prepared, lost):
    store, again = prepared
    shutil.copytree(store, tmp_path / "b")
    target = tmp_path / "b" / lost
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    prepare(again(tmp_path / "b"), inline, no_bar)
    assert tree(tmp_path / "b") == tree(store)


def test_a_manifest_that_names_other_folders_deletes_none(tmp_path, corpus, tokenizer_folder, pieces):
    shutil.copytree(pieces, tmp_path / "store")
    (tmp_path / "photos").mkdir()
    manifest = json.loads((pieces / "manifest.json").read_text())
    manifest["shards"].append({**manifest["shards"][0], "name": "../photos"})
    (tmp_path / "store" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DamagedStore, match=r"'\.\./photos' is no name of a shard"):
        prepare(ask(corpus, tmp_path / "store", tokenizer_folder, shards=5, heldout=0.1), unwanted, no_bar)
    assert (tmp_path / "photos").is_dir()


def test_files_of_the_user_are_kept(tmp_path, corpus, tokenizer_folder):
    (tmp_path / "out").mkdir()
    film = tmp_path / "out" / "film.partial"
    film.write_text("mine")
    request = ask(corpus, tmp_path / "out", tokenizer_folder)
    with pytest.raises(OtherPlan, match=r"has other files \(film\.partial\)"):
        prepare(request, inline, no_bar)
    assert [file.name for file in film.parent.iterdir()] == ["film.partial"], "and no lock"
    with pytest.raises(BadInput, match="the output is a file"):
        prepare(ask(corpus, film, tokenizer_folder), inline, no_bar)
    film.rename(tmp_path / "film.partial")
    prepare(request, inline, no_bar)
    (tmp_path / "film.partial").rename(film)
    prepare(request, unwanted, no_bar)
    assert film.read_text() == "mine"


def test_empty_training_part_raises(tmp_path, tokenizer_folder):
    write_documents(tmp_path / "a.txt", [["one sentence", "또 하나"]])
    for tokenizer in (tokenizer_folder, "words"):
        request = ask(tmp_path, tmp_path / f"out-{tokenizer == 'words'}", tokenizer, heldout=0.99999)
        with pytest.raises(ValueError, match=r"all documents are held out, none is left for training.*--heldout"):
            prepare(request, inline, no_bar)


def test_progress_is_reported_within_a_document(tmp_path, tokenizer_folder):
    (tmp_path / "a.txt").write_text(("x" * 999 + "\n") * 1100)
    byte_counts = []

    @contextlib.contextmanager
    def phase(name, size):
        yield byte_counts.append

    prepare(ask(tmp_path, tmp_path / "out", tokenizer_folder, heldout=0.0), inline, phase)
    assert len(byte_counts) > 10
    assert sum(byte_counts) == (tmp_path / "a.txt").stat().st_size


def test_changed_input_raises(tmp_path, tokenizer_folder):
    write_documents(tmp_path / "a.txt", [["one"]])
    request = ask(tmp_path, tmp_path / "out", tokenizer_folder)
    prepare(request, inline, no_bar)
    write_documents(tmp_path / "a.txt", [["two"]])
    with pytest.raises(OtherPlan, match=r"input a\.txt \(1\): its content has changed"):
        prepare(request, inline, no_bar)


@pytest.mark.parametrize(("size", "changed"), [(200_000, 1), (5_000_000, 30_000)])
def test_a_fingerprint_is_of_all_parts_of_a_file(tmp_path, size, changed):
    path = str(tmp_path / "a.txt")
    samples = set()
    for place in range(0, size, size // 20):
        text = bytearray(size)
        text[place : place + changed] = b"r" * changed
        (tmp_path / "a.txt").write_bytes(text)
        samples.add(describe(path, path).sample)
    assert len(samples) == 20


def test_a_store_of_an_earlier_version_is_finished(tmp_path, tokenizer_folder):
    (tmp_path / "a.txt").write_text(("boat \n" * 200_000)[:200_000])
    request = ask(tmp_path, tmp_path / "out", tokenizer_folder, shards=1, heldout=0.0)
    prepare(request, inline, no_bar)
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    plan["sources"][0]["sample"] = "5854a6e365599034df765b1de6814115"  # of three blocks
    (tmp_path / "out" / "plan.json").write_text(json.dumps(plan))
    assert prepare(request, unwanted, no_bar)["counts"]
    with pytest.raises(OtherPlan, match=r"(?s)other options:\n  seed: 0 there, 7 given\nUse the"):
        prepare(dataclasses.replace(request, seed=7), unwanted, no_bar)


def test_skipped_input_of_all_shards_is_counted(tmp_path, tokenizer_folder):
    (tmp_path / "a.txt").write_bytes(b"fine\n" * 50 + b"nul \0\n" + b"fine\n" * 50 + b"\xff\n")
    (tmp_path / "b.txt").write_bytes(b"")
    request = ask(tmp_path, tmp_path / "out", tokenizer_folder, shards=3)
    with pytest.raises(BadInput, match=r"b\.txt: an empty file"):
        prepare(request, inline, no_bar)
    with pytest.raises(BadInput, match=r"a\.txt, line 51: a NUL byte"):
        prepare(dataclasses.replace(request, inputs=(str(tmp_path / "a.txt"),)), inline, no_bar)
    shutil.rmtree(tmp_path / "out")
    manifest = prepare(dataclasses.replace(request, reading=Reading(on_bad="skip")), inline, no_bar)
    assert manifest["skipped"] == {"a NUL byte": 1, "an empty file": 1, "invalid UTF-8": 1}
    assert sum(c["sentences"] for c in manifest["counts"].values()) == 100


def test_document_larger_than_a_batch_stays_one_document(tmp_path, tokenizer_folder, monkeypatch):
    monkeypatch.setattr(shards, "BATCH", 1 << 12)  # characters
    (tmp_path / "a.txt").write_text("\n".join(f"river boat {n}" for n in range(1000)))
    prepare(ask(tmp_path, tmp_path / "out", tokenizer_folder, heldout=0.0), inline, no_bar)
    assert [len(document) for document in open_store(tmp_path / "out")] == [1000]


def test_sentences_without_pieces_are_dropped(tmp_path, tokenizer_folder):
    (tmp_path / "a.txt").write_text("one\n\u200b\u200e\n\n\u200b\n\ntwo\n", encoding="utf-8")
    prepare(ask(tmp_path, tmp_path / "out", tokenizer_folder, heldout=0.0), inline, no_bar)
    assert [len(d) for d in open_store(tmp_path / "out")] == [1, 1]


def test_invalid_requests_raise():
    for wrong in ({"tokenizer": "words", "shards": 600}, {"tokenizer": "wordpeice"}, {"inputs": ()}):
        with pytest.raises(ValueError, match=r"use|give|name"):
            Request(**{"inputs": ("a",), "output": "b", **wrong})
    with pytest.raises(ValueError, match=re.escape("--lowercase has no effect with --tokenizer=words; leave it out")):
        refuse_idle_options(Request(("a.txt",), "out", tokenizer="words"), ["lowercase"])
