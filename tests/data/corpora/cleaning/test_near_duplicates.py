"""Near-duplicates are found with the predicted recall; the corpus does not depend on workers, order and kills."""

import json
import random
import shutil

import numpy as np
import pytest

from bert_elmo_jax.data.corpora.cleaning import clean_texts
from bert_elmo_jax.data.corpora.cleaning.near_duplicates import (
    SHINGLE,
    WordHashes,
    choose_bands,
    expected_recall,
    hash_shingles,
    make_signatures,
    merge_links,
    needed_matches,
)
from bert_elmo_jax.data.corpora.prepare import OtherPlan, prepare
from bert_elmo_jax.data.corpora.reading import Reading
from bert_elmo_jax.data.corpora.runners import local_runner, ray_runner
from bert_elmo_jax.data.corpora.store import open_store, verify

from ...conftest import ask, inline, no_bar
from ..test_prepare import tree, unwanted


def shingles(words):
    return {tuple(words[n : n + SHINGLE]) for n in range(max(1, len(words) - SHINGLE + 1))}


def similarity(left, right):
    one, other = shingles(left), shingles(right)
    return len(one & other) / len(one | other)


def random_words(coins, count):
    return [f"{coins.choice('강물산배집')}{coins.randrange(10_000)}" for _ in range(count)]


def planted_pair(coins, planned, length=100):
    """Return two documents of about a planned similarity: the second has another ending."""
    words = random_words(coins, length)
    same = round(2 * (length - SHINGLE + 1) * planned / (1 + planned)) + SHINGLE - 1
    return words, words[:same] + random_words(coins, length - same)


@pytest.mark.parametrize(("threshold", "planned"), [(0.8, 0.75), (0.8, 0.8), (0.8, 0.85), (0.6, 0.6), (0.9, 0.93)])
def test_pairs_are_found_with_the_predicted_recall(threshold, planned):
    coins, count = random.Random(7), 400
    pairs = [planted_pair(coins, planned) for _ in range(count)]
    expected = np.mean([expected_recall(similarity(*pair), threshold) for pair in pairs])
    signatures = make_signatures(*hash_shingles([d for pair in pairs for d in pair], SHINGLE, WordHashes()), threshold)
    left, right = signatures[:, ::2], signatures[:, 1::2]
    in_a_band = (left == right).all(axis=2).any(axis=0)
    similar = (left == right).sum(axis=(0, 2)) >= needed_matches(threshold)
    recall = np.mean(in_a_band & similar)
    assert abs(recall - expected) < 4 * np.sqrt(max(expected * (1 - expected), 0.01) / count)
    bands, rows = choose_bands(threshold)
    exact = np.mean([1 - (1 - similarity(*pair) ** rows) ** bands for pair in pairs])
    assert abs(in_a_band.mean() - exact) < 4 * np.sqrt(max(exact * (1 - exact), 0.01) / count)


def test_unlike_short_documents_share_no_band():
    """The first 32 bits of their only shingles are equal."""
    documents = ["w856 w911 w985 w710 w557".split(), "w962 w346 w759 w19 w372".split()]
    hashed, starts = hash_shingles(documents, SHINGLE, WordHashes())
    assert hashed[0] >> np.uint64(32) == hashed[1] >> np.uint64(32)
    for threshold in (0.5, 0.8, 1.0):
        left, right = make_signatures(hashed, starts, threshold).transpose(1, 0, 2)
        assert not (left == right).all(axis=1).any()


def test_pairs_of_two_ranges_are_compared_and_each_file_is_opened_once(tmp_path, monkeypatch):
    bands, rows = choose_bands(0.8)
    stored = np.random.default_rng(0).integers(0, 2, (2, bands, 50, rows), np.uint32)
    for n, judged in enumerate(stored):
        folder = tmp_path / f"judged-{n:05d}"
        folder.mkdir()
        np.save(folder / "places.npy", np.zeros(100, np.int64))
        for band, values in enumerate(judged):
            np.save(folder / f"band-{band:03d}.npy", values.reshape(-1))
    signatures, opened, read = clean_texts.Signatures(tmp_path, 0.8), [], clean_texts._map
    monkeypatch.setattr(clean_texts, "_map", lambda path: (opened.append(path), read(path))[1])
    left, right = np.random.default_rng(1).integers(0, 100, (2, 300))
    every = np.concatenate(stored, axis=1)
    expected = (every[:, left] == every[:, right]).sum(axis=(0, 2))
    assert signatures.count_matches(left, right).tolist() == expected.tolist()
    assert len(opened) == len(set(opened)) == 2 * bands


def test_links_join_clusters_whose_first_document_stays():
    links = [np.array([[5, 3], [7, 5]]), np.zeros((0, 2), np.int64), np.array([[3, 2], [9, 8]])]
    for order in (links, links[::-1]):
        assert merge_links(iter(order)).tolist() == [[3, 2], [5, 2], [7, 2], [9, 8]]


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Write 300 unrelated documents, near copies (0.95) of every tenth, exact copies of short ones; two files."""
    coins, folder = random.Random(3), tmp_path_factory.mktemp("planted")
    originals = [random_words(coins, coins.choice([3, 40, 120])) for _ in range(300)]
    copies = [planted_pair(random.Random(n), 0.95, 150) for n in range(30)]
    documents = originals + [left for left, _ in copies]
    repeats = [right for _, right in copies] + [words for words in originals[:60] if len(words) == 3]
    lines = [" ".join(words[: len(words) // 2]) + "\n" + " ".join(words[len(words) // 2 :]) for words in documents]
    (folder / "a.txt").write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    # Case, punctuation and the places of lines do not count.
    lines = [" ".join(words).upper() + "!" for words in repeats]
    (folder / "b.txt").write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    return folder, len(documents), len(repeats)


@pytest.fixture(scope="module")
def small_ranges():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clean_texts, "RANGE", 20_000)
        patch.setattr(clean_texts, "BATCH", 3_000)
        patch.setattr(clean_texts, "BAND_KEYS", 200)  # two parts of each band
        patch.setattr(clean_texts, "PAIRS", 7)
        yield


@pytest.fixture(scope="module")
def deduplicated(tmp_path_factory, planted, tokenizer_folder, small_ranges):
    output = tmp_path_factory.mktemp("deduplicated") / "out"
    prepare(ask(planted[0], output, tokenizer_folder, shards=3, heldout=0.1, dedupe=0.8), inline, no_bar)
    return output


def test_near_duplicates_are_left_out_and_unrelated_documents_stay(planted, deduplicated):
    folder, unique, repeats = planted
    report = json.loads((deduplicated / "dropped.json").read_text(encoding="utf-8"))
    assert report["documents"] == unique + repeats and report["remaining"] == unique
    assert list(report["dropped"]) == ["a near-duplicate"]
    entry = report["dropped"]["a near-duplicate"]
    assert entry["documents"] == repeats and len(entry["samples"]) == 5
    text = (folder / "a.txt").read_bytes()
    for sample in entry["samples"]:
        assert sample["file"].endswith("b.txt") and sample["similar_to"]["file"].endswith("a.txt")
        first = text[sample["similar_to"]["byte"] :].split(b"\n\n")[0].decode().split()
        assert first[0] == sample["text"].split()[0].lower().rstrip("!")
    stores = [open_store(deduplicated, part) for part in ("train", "heldout")]
    assert sum(map(len, stores)) == unique
    assert verify(deduplicated) == 3 * 2 * 3 + 1 + len(list((deduplicated / "tokenizer").iterdir()))


def test_only_a_complete_store_of_an_earlier_version_is_valid(tmp_path, planted, deduplicated, tokenizer_folder):
    output = tmp_path / "out"
    shutil.copytree(deduplicated, output)
    plan = json.loads((output / "plan.json").read_text())
    assert plan["options"].pop("shingle_bits") == 64
    (output / "plan.json").write_text(json.dumps(plan))
    request = ask(planted[0], output, tokenizer_folder, shards=3, heldout=0.1, dedupe=0.8)
    for _ in range(2):
        assert prepare(request, unwanted, no_bar)["counts"]
    shutil.rmtree(output / "shard-00001")
    with pytest.raises(OtherPlan, match="shingle_bits: None there, 64 given"):
        prepare(request, inline, no_bar)


@pytest.mark.long
@pytest.mark.parametrize("survive", [0, 2, 9, 40, 43])
def test_a_kill_between_any_two_jobs_changes_no_byte(tmp_path, planted, deduplicated, tokenizer_folder, survive):
    request = ask(planted[0], tmp_path / "out", tokenizer_folder, shards=3, heldout=0.1, dedupe=0.8)
    left = survive

    def mortal(function, jobs, report):
        nonlocal left
        for job in reversed(jobs):
            if not left:
                raise KeyboardInterrupt
            left -= 1
            function(job, report)

    with pytest.raises(KeyboardInterrupt):
        prepare(request, mortal, no_bar)
    prepare(request, inline, no_bar)
    assert tree(tmp_path / "out") == tree(deduplicated)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")  # Ray's
@pytest.mark.parametrize("workers", [2, 3, "ray"])
def test_workers_change_no_byte(tmp_path, planted, deduplicated, tokenizer_folder, workers):
    if workers == "ray":
        pytest.importorskip("ray", reason="needs the extra `cluster`")
    runner = ray_runner() if workers == "ray" else local_runner(workers)
    request = ask(planted[0], tmp_path / "out", tokenizer_folder, shards=3, heldout=0.1, dedupe=0.8)
    prepare(request, runner, no_bar)
    assert tree(tmp_path / "out") == tree(deduplicated)


@pytest.mark.parametrize("ends", ["blank_line", "line", "file"])
def test_text_without_duplicates_stays_as_it_is(tmp_path, tokenizer_folder, ends):
    text = "First one. Second here\nthird line\r\n\n  \nanother. Document\n한 문장. 또 하나\n"
    (tmp_path / "a.txt").write_bytes(text.encode())
    (tmp_path / "b.jsonl").write_text('{"text": "one. Two\\nthree"}\n{"text": "four"}\n', encoding="utf-8")
    reading = Reading(documents=ends, split="sentences")
    stores = []
    for name, dedupe in (("plain", 0.0), ("cleaned", 0.9)):
        request = ask(tmp_path, tmp_path / name, tokenizer_folder, heldout=0.0, dedupe=dedupe, reading=reading)
        both = (str(tmp_path / "a.txt"), str(tmp_path / "b.jsonl"))
        manifest = prepare(request.__class__(**{**vars(request), "inputs": both}), inline, no_bar)
        stores.append([[s.tolist() for s in document] for document in open_store(tmp_path / name)])
        assert manifest["skipped"] == {"a Windows line end (CR LF)": 1}
    assert stores[0] == stores[1]


def test_only_the_opening_of_a_long_document_is_judged(tmp_path, tokenizer_folder, monkeypatch):
    monkeypatch.setattr(clean_texts, "JUDGED", 500)
    opening = "\n".join(f"word{n} and more" for n in range(60))
    (tmp_path / "a.txt").write_text(f"{opening}\nan end\n\n{opening}\nanother end\n", encoding="utf-8")
    prepare(ask(tmp_path, tmp_path / "out", tokenizer_folder, heldout=0.0, dedupe=1.0), inline, no_bar)
    (document,) = open_store(tmp_path / "out")
    assert len(document) == 61
