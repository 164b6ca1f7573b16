"""Rules for logits and draws from them, against sorting."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.nn.next_piece import block, block_ngrams, draw, find_likeliest, keep_top_p, penalise_repeats


def kept_by_sorting(logits, top_p):
    """As in transformers: remove the least likely pieces with at most 1 - p in total, but never the last piece."""
    order = np.argsort(logits, kind="stable")
    chances = np.exp(logits - logits.max())
    chances /= chances.sum()
    gone = np.cumsum(chances[order]) <= 1 - top_p
    gone[-1] = False
    mask = np.ones(len(logits), bool)
    mask[order[gone]] = False
    return mask


@pytest.mark.parametrize("top_p", [1e-6, 0.1, 0.9, 0.999, 1.0])
@pytest.mark.parametrize("spread", [0.1, 10.0])
def test_top_p_keeps_what_sorting_keeps(top_p, spread):
    logits = (np.random.default_rng(0).normal(size=(7, 300)) * spread).astype(np.float32)
    masks = np.isfinite(jax.jit(keep_top_p)(logits, np.float32(top_p)))
    for row, values in zip(masks, logits, strict=True):
        expected = kept_by_sorting(values.astype(np.float64), np.float64(np.float32(top_p)))
        assert abs(int(row.sum()) - int(expected.sum())) <= 1  # rounding of a sum may move one piece
        assert not (row & ~expected).any() or not (expected & ~row).any()
        assert row[np.argmax(values)]


def test_top_p_with_impossible_and_equal_pieces():
    logits = jnp.array([[0.0, 0.0, -jnp.inf, 0.0], [5.0, -jnp.inf, -jnp.inf, -jnp.inf]])
    assert np.isfinite(keep_top_p(logits, 0.5)).tolist() == [[True, True, False, True], [True, False, False, False]]


def test_draws_of_a_row_depend_on_its_key_alone():
    logits = np.random.default_rng(0).normal(size=(6, 50)).astype(np.float32)
    keys = jax.random.split(jax.random.key(3), 6)
    for options in (
        {},
        {"top_k": 9},
        {"top_p": np.float32(0.8)},
        {"top_k": 9, "top_p": np.float32(0.8)},
        {"top_k": 99},
    ):
        compute = jax.jit(functools.partial(draw, **options))
        batch_draws = compute(keys, logits, 0.9)
        single_draws = [int(compute(keys[n : n + 1], logits[n : n + 1], 0.9)[0]) for n in range(6)]
        assert batch_draws.tolist() == single_draws


def test_the_likeliest_is_the_first_of_equal_ones():
    scores = np.random.default_rng(0).integers(0, 4, (20, 30)).astype(np.float32)
    assert find_likeliest(scores).tolist() == np.argmax(scores, axis=1).tolist()
    assert find_likeliest(np.full((1, 4), np.nan, np.float32)).tolist() == [3]


def test_penalty_and_blocks():
    scores = jnp.array([[1.0, -1.0, 3.0, -jnp.inf]])
    used = jnp.array([[True, True, False, True]])
    assert penalise_repeats(scores, used, 2.0).tolist() == [[0.5, -2.0, 3.0, -np.inf]]
    assert block(scores, jnp.array([False, False, True, False])).tolist() == [[1.0, -1.0, -np.inf, -np.inf]]


def test_padding_blocks_no_piece():
    prompt = jnp.array([[-1, -2, -3, 4]])
    assert np.flatnonzero(np.isinf(block_ngrams(jnp.zeros((1, 10)), prompt, 4, 1))).tolist() == [4]
