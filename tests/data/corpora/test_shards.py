"""Ranges of bytes, held-out documents and types of ids of shards."""

import pytest

from bert_elmo_jax.data.corpora.reading import Source
from bert_elmo_jax.data.corpora.shards import is_heldout, plan_ranges, token_dtype


def test_ranges_held_out_documents_and_types():
    [a, b] = Source("a", "a", 60, ""), Source("b", "b", 40, "")
    planned = [[(n, start, end) for n, _, start, end in ranges] for ranges in plan_ranges([a, b], 2)]
    assert planned == [[(0, 0, 50)], [(0, 50, 60), (1, 0, 40)]]
    assert (token_dtype(30522).__name__, token_dtype(119547).__name__) == ("uint16", "uint32")
    assert sum(is_heldout(0, 0, place, 0.1) for place in range(10_000)) == 985
    assert sum(is_heldout(3, 1, place, 0.2) for place in range(20_000)) / 20_000 == pytest.approx(0.2, abs=0.01)
    assert not any(is_heldout(3, 1, place, 0.0) for place in range(100))
