"""Plans of packed rows: every text once, within its row, in few positions and few shapes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.rows.packed_rows import most_texts, plan_packed, plan_padded
from bert_elmo_jax.data.rows.widths import width_for


def padding_share(batches, lengths):
    return 1 - int(lengths.sum()) / sum(batch.positions for batch in batches)


def draw_lengths(mean, count, longest, seed=0, shape=3.5):
    drawn = np.random.default_rng(seed).gamma(shape, mean / shape, count)
    return np.clip(np.rint(drawn), 4, longest).astype(np.int64)


def check(batches, lengths, batch_size, limit):
    assert sorted(n for batch in batches for n in batch.texts) == list(range(len(lengths)))
    capacity = batch_size * width_for(int(lengths.max()), limit)
    for batch in batches:
        assert batch.height <= batch_size and batch.positions <= capacity
        use_counts = np.zeros((batch.height, batch.width), int)
        for n, row, start in zip(batch.texts, batch.rows, batch.starts, strict=True):
            assert start + lengths[n] <= batch.width
            use_counts[row, start : start + lengths[n]] += 1
        assert use_counts.max() == 1
        places = set(zip(batch.rows.tolist(), batch.slots.tolist()))
        assert len(places) == len(batch.texts) and max(slot for _, slot in places) < most_texts(batch.width)


@given(
    st.lists(st.one_of(st.integers(3, 20), st.integers(3, 300)), min_size=1, max_size=80),
    st.sampled_from([1, 2, 5, 8, 24, 32]),
    st.sampled_from([300, 512, 5000]),
)
def test_every_text_has_its_place(lengths, batch_size, limit):
    lengths = np.array(lengths)
    check(plan_packed(lengths, batch_size, limit), lengths, batch_size, limit)
    padded = plan_padded(lengths, batch_size, limit)
    check(padded, lengths, batch_size, limit)
    assert all((np.bincount(batch.rows) == 1).all() and not batch.starts.any() for batch in padded)


@pytest.mark.parametrize(
    ("mean", "count", "longest", "shape"), [(25, 872, 66, 3.5), (20, 1000, 110, 1.8), (18, 400, 60, 3.5)]
)
def test_little_is_padding(mean, count, longest, shape):
    """Film reviews in English (SST-2) and Korean (NSMC), and a few hundred short sentences."""
    for seed in range(5):
        lengths = draw_lengths(mean, count, longest, seed, shape)
        batches = plan_packed(lengths, 32, 512)
        assert padding_share(batches, lengths) < 0.04 < 0.25 < padding_share(plan_padded(lengths, 32, 512), lengths)
        assert len({(batch.height, batch.width) for batch in batches}) <= 5


def test_one_long_text_among_short_ones_costs_one_row():
    lengths = np.append(draw_lengths(25, 500, 66), 500)
    batches = plan_packed(lengths, 32, 512)
    assert (batches[0].height, batches[0].width) == (1, 512)
    assert all(batch.width <= 128 for batch in batches[1:])
    assert padding_share(batches, lengths) < 0.04


SHAPES = [  # lengths of texts, and the height and width of their only batch
    ([300] * 8 + [80] * 8, (8, 384)),  # short texts fill the gaps of long rows
    *(([12], (1, 12)), ([12, 12], (1, 24)), ([40, 8, 9, 5], (1, 64)), ([500], (1, 512)), ([700], (1, 1024))),
    *(([3], (1, 8)), ([19], (1, 20)), ([12, 19], (1, 32)), ([33], (1, 40)), ([40, 20, 4], (1, 64)), ([64], (1, 64))),
]


def test_a_short_request_has_a_small_shape():
    for lengths, shape in SHAPES:
        [batch] = plan_packed(np.array(lengths), 32, 1024)
        assert (batch.height, batch.width) == shape, lengths
        assert sorted(batch.texts.tolist()) == list(range(len(lengths)))
    assert plan_packed(np.zeros(0, np.int64), 32, 512) == []


@pytest.mark.parametrize("plan", [plan_packed, plan_padded])
def test_few_long_texts_are_computed_together(plan):
    lengths = np.array([8000] * 3 + [2000] * 40 + [20] * 100)
    batches = plan(lengths, 32, 8192)
    assert sorted(np.concatenate([batch.texts for batch in batches]).tolist()) == list(range(len(lengths)))
    for batch in batches:
        assert batch.height * batch.width**2 <= max(32 * 512**2, batch.width**2)
