"""After `warm_up`, requests of mixed lengths compile nothing."""

from dataclasses import replace

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.encoders.warm_up import _list_requests

DRAWS = [
    lambda draw, longest, count: draw.integers(3, longest + 1, count),
    lambda draw, longest, count: np.where(draw.random(count) < 0.15, longest, draw.integers(3, longest // 2, count)),
    lambda draw, longest, count: np.clip(draw.lognormal(np.log(longest / 5), 0.7, count), 3, longest).astype(int),
]


@pytest.mark.parametrize(
    ("longest", "most"),
    [pytest.param(64, 64, marks=pytest.mark.long), (64, 8), (16, 4), pytest.param(128, 16, marks=pytest.mark.long)],
)
def test_few_mixed_requests_need_a_new_shape(longest, most):
    encoder, draw = load("tests/goldens/bert_tiny"), np.random.default_rng(1)
    encoder.config = replace(encoder.config, max_positions=512)  # nothing is computed
    shapes, equal = set(), set()
    for lengths in _list_requests(encoder, "sentences", longest, most, 32):
        needed = encoder.plan_shapes("sentences", lengths, 32)
        shapes |= needed
        equal |= needed if len(set(lengths)) == 1 else set()
    requests = [of(draw, longest, draw.integers(1, most + 1)).tolist() for _ in range(100) for of in DRAWS]
    new = [not encoder.plan_shapes("sentences", lengths, 32) <= shapes for lengths in requests]
    new_to_equal = [not encoder.plan_shapes("sentences", lengths, 32) <= equal for lengths in requests]
    assert np.mean(new) <= 0.01 < np.mean(new_to_equal)


def test_mixed_requests_compile_nothing():
    encoder, draw = load("tests/goldens/bert_tiny"), np.random.default_rng(1)
    encoder.warm_up(lengths=16, rows=4, call="sentences")
    compiled = encoder._run._cache_size()
    assert encoder.work.pieces == 0
    for _ in range(40):
        encoder.sentences([" ".join(["[MASK]"] * n) for n in draw.integers(1, 15, draw.integers(1, 5))])
    assert encoder._run._cache_size() == compiled
