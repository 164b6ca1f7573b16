import itertools
import json
import shutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_elmo_jax.data.corpora.store import DamagedStore, open_store
from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus, toy_pairs
from bert_elmo_jax.data.pipeline import windows
from bert_elmo_jax.data.pipeline.batches import Phases, eval_batches, train_batches
from bert_elmo_jax.data.rows.masking import Masking
from bert_elmo_jax.data.rows.pieces import PieceExamples
from bert_elmo_jax.data.rows.stream import LanguageModelExamples
from bert_elmo_jax.data.rows.translation import PairExamples
from bert_elmo_jax.text import WordVocabulary, load_tokenizer

SMALL = 400  # tokens of a window, for several windows per epoch


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    """Return the folders of small toy corpora; `more_…` have another seed and the same tokenizer."""
    folder = tmp_path_factory.mktemp("toy")
    english = toy_corpus(folder / "en", documents=60, heldout=0.2)
    words = {"language": "ko", "tokenizer": "words", "vocab_size": 60}
    korean_words = toy_corpus(folder / "ko", documents=60, heldout=0.2, **words)
    more = {"seed": 1, "documents": 30, "heldout": 0.2}
    more_english = toy_corpus(folder / "more_en", tokenizer=str(english / "tokenizer"), **more)
    more_words = toy_corpus(folder / "more_ko", language="ko", tokenizer=str(korean_words / "tokenizer"), **more)
    pairs = toy_pairs(folder / "pairs", documents=400, heldout=0.2)
    return SimpleNamespace(**{name: path for name, path in locals().items() if isinstance(path, Path)})


BERT = {
    "nsp": PieceExamples(24),
    "packed": PieceExamples(40, "documents", sequences=4, masking=Masking("word", 0.3)),
    "sentences": PieceExamples(24, "sentences", masking=Masking("span")),
}
WORDS = {
    "streams": LanguageModelExamples(length=5, smallest_table=32),
    "sentences": LanguageModelExamples("sentences", 16, smallest_table=32, widest_filter=7),
    "ids": LanguageModelExamples(length=5, input="words"),
}
PAIRS = {
    "pairs": PairExamples(60, 80, start=2, end=3, pad=0),
    "packed pairs": PairExamples(90, 120, start=2, end=3, pad=0, sequences=4, reverse=True),
}


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


@pytest.fixture(params=[*BERT, "mixture", *(f"lm {name}" for name in WORDS), "lm mixture", *PAIRS])
def case(request, toy):
    """Return corpora and examples of every kind."""
    name = request.param
    if name == "mixture":
        return {str(toy.english): 2.0, str(toy.more_english): 1.0}, BERT["nsp"]
    if name == "lm mixture":
        return {str(toy.korean_words): 2.0, str(toy.more_words): 1.0}, WORDS["streams"]
    if name in PAIRS:
        return toy.pairs, PAIRS[name]
    return (toy.english, BERT[name]) if name in BERT else (toy.korean_words, WORDS[name.removeprefix("lm ")])


def test_resuming_continues_with_the_exact_next_example(case):
    batches = train_batches(*case, 6, seed=3, window=SMALL)
    states, first_batches = [], []
    for _ in range(60):
        states.append(json.dumps(batches.state()))
        first_batches.append(next(batches))
    assert batches.state()["places"][0][:2] >= [0, 1]  # several windows later, in some cases several epochs
    assert len(states[-1]) < 1500
    again = train_batches(*case, 6, seed=3, window=SMALL)
    for stop in (0, 1, 17, 40, 58):
        next(again)
        state = json.loads(states[stop])
        again.restore(state)
        assert again.epoch == state["epoch"]
        assert json.dumps(again.state()) == states[stop]
        assert all(same(next(again), batch) for batch in first_batches[stop : stop + 3])
    assert state["of"]["kind"] in ("pieces", "language_model", "pairs")
    state["of"]["kind"] = type(case[1]).__name__  # as checkpoints of earlier versions have it
    again.restore(state)
    assert json.dumps(again.state()) == states[stop] and same(next(again), first_batches[stop])
    assert not same(next(train_batches(*case, 6, seed=4, window=SMALL)), first_batches[0])


def test_processes_get_the_parts_of_one_batch(case):
    full_batches = train_batches(*case, 12, shards=6, window=SMALL)
    parts = [train_batches(*case, 12, process=n, processes=3, shards=6, window=SMALL) for n in range(3)]
    for _ in range(12):
        pieces = [next(part) for part in parts]
        for name, array in next(full_batches).items():
            assert np.array_equal(np.concatenate([piece[name] for piece in pieces]), array), name
    assert parts[0].state() == parts[2].state() == full_batches.state()


def test_batches_do_not_depend_on_the_number_of_workers(toy, tmp_path):
    corpus = shutil.copytree(toy.english, tmp_path / "corpus")
    expected = train_batches(toy.english, BERT["nsp"], 6, window=SMALL)
    batches = train_batches(corpus, BERT["nsp"], 6, workers=2, window=SMALL)
    try:
        next(expected)
        batches.restore(expected.state())  # before any worker has started
        for _ in range(15):
            assert same(next(batches), next(expected))
            assert batches.state() == expected.state()
        assert type(next(batches)["tokens"]) is np.ndarray
        next(expected)
        shutil.rmtree(corpus / "shard-00001")  # while workers read; the first missing file may be any
        with pytest.raises(DamagedStore, match=r"shard-00001/train/\w+\.npy: missing"):
            for _ in range(60):
                before = batches.state()
                assert same(next(batches), next(expected))
        assert batches.state() == before
    finally:
        batches.close()
    single = train_batches(toy.english, BERT["nsp"], 6, window=SMALL)
    single.restore(batches.state())  # prefetched batches were not counted
    assert same(next(single), next(expected))


def words_in(batch, tokenizer):
    """Return the unmasked text of a BERT batch, without special tokens."""
    tokens = batch["tokens"].copy()
    row, place = np.nonzero(batch["mlm_weights"])
    tokens[row, batch["mlm_positions"][row, place]] = batch["mlm_targets"][row, place]
    return Counter(tokens[~np.isin(tokens, (tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id))].tolist())


def test_every_epoch_reads_every_token_once(toy):
    tokenizer, store = load_tokenizer(toy.english / "tokenizer"), open_store(toy.english)
    everything = Counter(np.concatenate([sentence for document in store for sentence in document]).tolist())
    batches = train_batches(toy.english, BERT["packed"], 1, window=SMALL)
    orders = []
    for epoch in range(3):
        assert batches.epoch == epoch
        epoch_batches = [next(batches) for _ in range(batches.epoch_size(epoch))]
        assert sum((words_in(batch, tokenizer) for batch in epoch_batches), Counter()) == everything
        orders.append([batch["segments"].sum() for batch in epoch_batches])
    assert batches.epoch == 3
    assert orders[0] != orders[1] != orders[2]
    # Larger batches continue into the next epoch without a gap.
    large = train_batches(toy.english, BERT["packed"], 7, window=SMALL)
    sums = [value for _ in range(8) for value in next(large)["segments"].sum(axis=1).tolist()]
    assert sums == list(itertools.chain(*orders))[:56]


def test_masks_change_every_epoch_or_repeat_with_copies(toy):
    def epochs(**options):
        batches = train_batches(toy.more_english, PieceExamples(24, "documents", **options), 1)
        return [[next(batches)["tokens"].tobytes() for _ in range(batches.epoch_size(e))] for e in range(4)]

    fresh, static = epochs(), epochs(copies=2)
    assert all(set(a) != set(b) for a, b in itertools.combinations(fresh, 2))
    assert static[:2] == static[2:] == fresh[:2]
    assert static[0] != static[1]


def test_epochs_advance_steadily(toy):
    batches = train_batches(toy.english, BERT["nsp"], 4, window=SMALL)
    passed = [batches.epoch for _ in range(100) if next(batches)]
    assert passed == sorted(passed)
    assert max(b - a for a, b in itertools.pairwise(passed)) < 0.3


def test_corpora_are_mixed_by_their_weights_each_in_its_own_order(toy):
    examples = PieceExamples(24, "documents")
    batches = train_batches({str(toy.english): 3.0, str(toy.more_english): 1.0}, examples, 32)
    first_rows = {row.tobytes() for row in next(train_batches(toy.english, examples, 200))["segments"]}
    mixed = np.concatenate([next(batches)["segments"] for _ in range(30)])
    assert sum(row.tobytes() in first_rows for row in mixed[:48]) > 10
    places = batches.state()["places"]
    sizes = [train_batches(corpus, examples, 1).epoch_size() for corpus in (toy.english, toy.more_english)]
    rows = [epoch * size + row for (epoch, _, row), size in zip(places, sizes)]
    assert sum(rows) == 30 * 32
    assert abs(rows[0] - 720) < 5 * np.sqrt(720 * 0.25)


def test_rows_of_a_language_model_mixture(toy):
    batches = train_batches({str(toy.korean_words): 3.0, str(toy.more_words): 1.0}, WORDS["streams"], 8)
    unmixed = train_batches(toy.korean_words, WORDS["streams"], 6)
    for _ in range(5):
        pair = next(batches), next(unmixed)
        for name in ("forward_targets", "lengths"):
            assert np.array_equal(*(batch[name][:6] for batch in pair))
        assert np.array_equal(*(batch["characters"][0, batch["words_forward"][:6]] for batch in pair))


def test_wrong_corpora_and_settings_raise(toy, pieces, tmp_path):
    english, words, nsp, streams = str(toy.english), str(toy.korean_words), BERT["nsp"], WORDS["streams"]
    for corpora, examples, size, options, message in (
        ({english: 1.0, str(pieces): 1.0}, nsp, 4, {}, r"by different tokenizers \(fingerprints \w{16}… and \w{16}…\)"),
        (words, nsp, 4, {}, "holds words, but BERT reads word pieces; prepare it with --tokenizer=wordpiece"),
        (
            english,
            streams,
            4,
            {},
            r"holds 'wordpiece' pieces, but this language model reads words; prepare it with --tokenizer=words",
        ),
        (english, nsp, 4, {"processes": 3}, "batch_size=4 cannot be split over 3 processes; use a multiple of 3"),
        (english, nsp, 4, {"shards": 3}, "shards=3 must be a multiple of the number of processes"),
        ({english: 0.0}, nsp, 4, {}, "weights must be positive numbers"),
        ({}, nsp, 4, {}, "no corpus was given"),
        ({words: 1.0, f"{words}/.": 1.0}, streams, 1, {}, "batch_size=1 rows cannot hold 2 corpora"),
    ):
        with pytest.raises(ValueError, match=message):
            train_batches(corpora, examples, size, **options)
    corpus = toy_corpus(tmp_path / "all", documents=5, heldout=0.0)
    with pytest.raises(ValueError, match="has no document in its part 'heldout'; prepare it with a higher --heldout"):
        next(eval_batches(corpus, nsp, 2))


def test_state_of_other_batches_raises_and_names_the_difference(toy):
    state = train_batches(toy.english, BERT["nsp"], 4, seed=1).state()
    words = train_batches(toy.korean_words, WORDS["streams"], 4).state()
    invalid = [({}, ""), ({**state, "places": [[1]]}, ""), ({**state, "of": None}, "")]
    for corpus, examples, size, seed, other, message in (
        (
            toy.english,
            PieceExamples(32),
            4,
            0,
            state,
            r"belongs to other batches .*length: 24 there, 32 here; seed: 1 there, 0 here",
        ),
        (toy.more_english, BERT["nsp"], 4, 1, state, "corpora: '"),
        (toy.korean_words, WORDS["streams"], 8, 0, words, "batch_size: 4 there, 8 here"),
        *((toy.english, BERT["nsp"], 4, 1, wrong, "not a state of batches") for wrong, _ in invalid),
    ):
        with pytest.raises(ValueError, match=message):
            train_batches(corpus, examples, size, seed=seed).restore(other)


def test_bert_can_resume_with_another_batch_size(toy):
    for corpora in (toy.english, {str(toy.english): 2.0, str(toy.more_english): 1.0}):
        small, large = (train_batches(corpora, BERT["nsp"], size) for size in (4, 8))
        next(large)
        small.restore(large.state())
        expected = next(large)
        halves = [next(small), next(small)]
        assert all(np.array_equal(np.concatenate([half[n] for half in halves]), expected[n]) for n in expected)


@settings(max_examples=12)
@given(st.integers(1, 30), st.sampled_from(["packed", "sentences"]))
def test_evaluation_reads_the_held_out_part_once(toy, batch_size, name):
    tokenizer = load_tokenizer(toy.english / "tokenizer")
    store = open_store(toy.english, "heldout")
    everything = Counter(np.concatenate([sentence for document in store for sentence in document]).tolist())
    batches = list(eval_batches(toy.english, BERT[name], batch_size))
    assert {len(batch["tokens"]) for batch in batches} == {batch_size}
    assert sum((words_in(batch, tokenizer) for batch in batches), Counter()) == everything
    empty = [~batch["segments"].any(axis=1) for batch in batches]
    assert not any(rows.any() for rows in empty[:-1])
    assert not batches[-1]["mlm_weights"][empty[-1]].any()
    assert not empty[-1].all()


def test_evaluation_of_a_language_model_reads_the_held_out_part_once(toy):
    store, vocabulary = open_store(toy.korean_words, "heldout"), WordVocabulary.load(toy.korean_words / "tokenizer")
    sentences = [sentence.astype(int) for document in store for sentence in document]
    expected = Counter(np.where((ids := np.concatenate(sentences)) < len(vocabulary), ids, vocabulary.unk_id).tolist())
    for examples in WORDS.values():
        counts = {"forward": Counter(), "backward": Counter()}
        for batch in eval_batches(toy.korean_words, examples, 4):
            for name, counter in counts.items():
                counter.update(batch[f"{name}_targets"][batch[f"{name}_weights"] > 0].tolist())
        assert counts["forward"] == expected + Counter({vocabulary.eos_id: len(sentences)})
        assert counts["backward"] == expected + Counter({vocabulary.bos_id: len(sentences)})


def test_evaluation_is_repeatable_with_any_number_of_processes(case):
    full, again = (list(eval_batches(*case, 6, shards=6, window=SMALL)) for _ in range(2))
    assert all(same(a, b) for a, b in zip(full, again, strict=True))
    parts = [list(eval_batches(*case, 6, process=n, processes=2, shards=6, window=SMALL)) for n in (0, 1)]
    for batch, *pieces in zip(full, *parts, strict=True):
        for name in batch:
            assert np.array_equal(np.concatenate([piece[name] for piece in pieces]), batch[name])
    limited = list(eval_batches(*case, 6, shards=6, window=SMALL, limit=1))
    assert len(limited) == (len(case[0]) if isinstance(case[0], dict) else 1)


def test_shard_deleted_during_a_run_raises_and_no_batch_is_lost(toy, tmp_path):
    shutil.copytree(toy.english, tmp_path / "corpus")
    batches = train_batches(tmp_path / "corpus", BERT["nsp"], 4, window=SMALL)
    expected = train_batches(toy.english, BERT["nsp"], 4, window=SMALL)
    next(batches), next(expected)
    shard = tmp_path / "corpus" / "shard-00000"
    shard.rename(tmp_path / "away")
    with pytest.raises(DamagedStore, match=rf"{shard}/train/documents.npy: missing"):
        for _ in range(30):
            before = batches.state()
            assert same(next(batches), next(expected))
    assert batches.state() == before
    (tmp_path / "away").rename(shard)
    assert same(next(batches), next(expected))


def test_windows_are_read_when_needed_and_once(toy, monkeypatch):
    read, visited_windows = [], {(0, 0)}
    monkeypatch.setattr(windows, "read_window", lambda *args, real=windows.read_window: read.append(0) or real(*args))
    batches = train_batches(toy.english, BERT["nsp"], 4, window=SMALL)
    assert read == []
    for step in range(31):
        next(batches)
        (epoch, window, row), *_ = batches.state()["places"]
        if row:
            visited_windows.add((epoch, window))
        assert step or len(read) == 1
    assert len(read) == len(visited_windows) > 1


def test_phases_take_turns(toy):
    phases = Phases([(2, train_batches(toy.english, PieceExamples(length), 4)) for length in (16, 32)])
    assert [next(phases)["tokens"].shape[1] for _ in range(4)] == [16, 16, 32, 32]
