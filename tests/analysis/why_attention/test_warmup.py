"""Post-norm needs a warm-up at a high rate, pre-norm does not."""

import numpy as np
import pytest

from bert_elmo_jax.analysis.why_attention.small_training import toy_texts
from bert_elmo_jax.analysis.why_attention.warmup import compare_warm_ups, warm_up
from bert_elmo_jax.toyworld import ToyWorld


@pytest.fixture(scope="module")
def texts():
    return toy_texts(ToyWorld("en", topics=2, words=2), train=1_000, test=10)


def test_without_a_warm_up_post_norm_is_left_behind(texts):
    post, pre = compare_warm_ups(texts, (0,), layers=4, width=32, steps=100, rate=0.02, rows=8)
    assert [(r.norm, r.warmup) for r in (post, pre)] == [("post", 0), ("pre", 0)]
    assert post.final > pre.final + 0.3
    assert post.last > post.first and pre.last < pre.first  # the gradients before the first step


def test_a_warm_up_starts_slowly(texts):
    runs = [warm_up(texts, "pre", warmup, layers=1, width=16, steps=3, rows=4) for warmup in (0, 1000)]
    assert runs[0].losses[0] == runs[1].losses[0]
    assert abs(runs[1].losses[2] - runs[1].losses[0]) != abs(runs[0].losses[2] - runs[0].losses[0])
    assert np.isfinite(runs[0].losses).all()
