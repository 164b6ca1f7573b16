import itertools
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from bert_elmo_jax.data.corpora.store import DamagedStore, open_store
from bert_elmo_jax.data.pipeline.windows import BLOCKS, plan_windows, read_window


def documents_in(windows):
    return [(block.shard, n) for window in windows for block in window for n in range(block.first, block.end)]


def imagined(*shards):
    """Return a store with only a manifest; `shards` are (documents, tokens) of each shard."""
    counts = [{"train": {"counts": {"documents": d, "tokens": t}}} for d, t in shards]
    return SimpleNamespace(part="train", manifest={"shards": counts})


def test_windows_hold_every_document_of_the_store_once(pieces):
    store = open_store(pieces)
    expected = [(n, d) for n, shard in enumerate(store.shards) for d in range(len(shard.documents) - 1)]
    first = np.cumsum([0, *(len(shard.documents) - 1 for shard in store.shards)])
    for tokens in (30, 100, 1000, 10**9):
        windows = plan_windows(store, (0, 0), tokens)
        assert sorted(documents_in(windows)) == expected
        assert tokens < 10**9 or len(windows) == 1
        for window in windows[:5]:
            text = read_window(store, window)
            for place, (shard, number) in enumerate(documents_in([window])):
                cuts = text.sentences[text.documents[place] : text.documents[place + 1] + 1]
                sentences = [text.tokens[a:b].tolist() for a, b in itertools.pairwise(cuts)]
                assert sentences == [s.tolist() for s in store[int(first[shard]) + number]]


def test_windows_have_about_the_given_size_and_mix_many_places(as_users_run):
    store = imagined(*[(6000, 20_000_000)] * 160)  # the size of Wikipedia
    windows = plan_windows(store, (0, 0), 1 << 24)
    assert abs(len(windows) * (1 << 24) / 3.2e9 - 1) < 0.05
    assert sorted(documents_in(windows)) == list(itertools.product(range(160), range(6000)))
    sizes = [sum(block.end - block.first for block in window) * 20_000_000 / 6000 for window in windows]
    assert 0.8 < min(sizes) / (1 << 24) < max(sizes) / (1 << 24) < 1.3
    assert min(len(window) for window in windows) >= BLOCKS
    assert np.mean([len({block.shard for block in window}) for window in windows]) > 0.9 * BLOCKS
    store = imagined(*[(600, 2_000_000)] * 20)
    first, again, *other_plans = (plan_windows(store, key, 1 << 20) for key in ((0, 0), (0, 0), (0, 1), (1, 0)))
    assert first == again
    assert first[0] != other_plans[0][0] != other_plans[1][0] != first[0]


@pytest.mark.parametrize("documents", [1, 2, 3, 7])
def test_no_window_has_a_single_document_unless_the_corpus_has(as_users_run, documents):
    for seed in range(20):
        store = imagined(*[(1, 10_000)] * documents, (0, 0))
        windows = plan_windows(store, (seed,), 5_000)
        assert len(documents_in(windows)) == documents
        assert all(len(documents_in([window])) >= min(2, documents) for window in windows)


def test_shard_deleted_or_truncated_during_a_run_raises(pieces, tmp_path):
    shutil.copytree(pieces, tmp_path / "store")
    store = open_store(tmp_path / "store")
    windows = plan_windows(store, (0, 0), 100)
    for name, count in (("tokens.npy", 0), ("sentences.npy", 1), ("documents.npy", 2)):
        path = store.shards[windows[count][0].shard].folder / name
        data = path.read_bytes()
        path.write_bytes(data[:-2])
        with pytest.raises(DamagedStore, match=rf"{path}: {len(data) - 2} bytes where {len(data)} were written; it"):
            read_window(store, windows[count])
        path.unlink()
        with pytest.raises(DamagedStore, match=rf"{path}: missing; it was intact when the corpus was opened. Copy"):
            read_window(store, windows[count])
        path.write_bytes(data)
        read_window(store, windows[count])
