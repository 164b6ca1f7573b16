"""Post-norm needs a warm-up at a high rate, pre-norm does not."""

import numpy as np
import pytest

from bert_elmo_jax.toyworld import ToyWorld
from experiments.studies.why_attention.small_training import toy_texts
from experiments.studies.why_attention.warmup import warm_up


@pytest.fixture(scope="module")
def texts():
    return toy_texts(ToyWorld("en", topics=2, words=2), train=1_000, test=10)


@pytest.mark.long
def test_without_a_warm_up_post_norm_is_left_behind(texts):
    post, post_warm, pre = (
        warm_up(texts, norm, warmup, layers=8, steps=150) for norm, warmup in (("post", 0), ("post", 60), ("pre", 0))
    )
    assert post.final > post_warm.final + 0.5
    assert post.final > pre.final + 1
    assert post.last > 1.5 * post.first and pre.last < pre.first  # the gradients before the first step


@pytest.mark.long
def test_a_warm_up_starts_slowly(texts):
    """The rows of every step are the same, so the second step's loss shows how far the first step went."""
    sizes = {"layers": 1, "width": 16, "steps": 3, "rate": 0.1, "rows": 4}
    short, long = (warm_up(texts, "pre", warmup, **sizes) for warmup in (0, 1_000))
    assert (short.norm, short.warmup, long.warmup) == ("pre", 0, 1_000)
    assert short.losses[0] == long.losses[0]
    assert short.losses[2] != pytest.approx(long.losses[2], rel=0.02)
    assert np.isfinite(short.losses).all()
