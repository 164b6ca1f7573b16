"""Examples of `bert_elmo_jax.data.corpora.shards`."""

from bert_elmo_jax.data.corpora.reading import Source
from bert_elmo_jax.data.corpora.shards import is_heldout, plan_ranges, token_dtype


def test_example_of_plan_ranges():
    [a, b] = Source("a", "a", 60, ""), Source("b", "b", 40, "")
    assert [[(n, start, end) for n, _, start, end in ranges] for ranges in plan_ranges([a, b], 2)] == [
        [(0, 0, 50)],
        [(0, 50, 60), (1, 0, 40)],
    ]


def test_example_of_is_heldout():
    assert sum(is_heldout(0, 0, place, 0.1) for place in range(10_000)) == 985


def test_example_of_token_dtype():
    assert (token_dtype(30522).__name__, token_dtype(119547).__name__) == ("uint16", "uint32")
