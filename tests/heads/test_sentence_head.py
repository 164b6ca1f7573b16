"""Pooling of packed texts, dense layers and normalisation, against numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.heads.sentence_head import (
    MODES,
    Dense,
    SentenceHead,
    init_sentence_head,
    pool_texts,
    sentence_vectors,
)

SEGMENTS = np.array([[1, 1, 1, 2, 2, 0], [1, 1, 1, 1, 0, 0]])
POSITIONS = np.array([[0, 1, 2, 0, 1, 0], [0, 1, 2, 3, 0, 0]])
TEXTS = [(0, 0, 3), (0, 3, 5), (1, 0, 4)]  # row, first and end of each text


def pool_one(x, mode):
    """Return the pooled pieces of one text, by its definition."""
    places = np.arange(1, len(x) + 1)[:, None]
    return {
        "cls": x[0],
        "lasttoken": x[-1],
        "max": x.max(0),
        "mean": x.mean(0),
        "mean_sqrt_len_tokens": x.sum(0) / len(x) ** 0.5,
        "weightedmean": (places * x).sum(0) / places.sum(),
    }[mode]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("skip", [0, 1])
def test_a_packed_text_is_pooled_by_itself(strict_dtypes, mode, skip):
    x = np.random.default_rng(0).normal(size=(2, 6, 4)).astype(np.float32)
    x[0, 5] = np.inf  # padding
    pooled = np.asarray(jax.jit(lambda x: pool_texts(x, *map(jnp.asarray, (SEGMENTS, POSITIONS)), 2, [mode], skip))(x))
    for row, first, end in TEXTS:
        text = x[row, first + skip : end]
        expected = pool_one(text, mode)
        if mode == "weightedmean" and skip:  # the weights count from the start of the text
            places = np.arange(2, len(text) + 2)[:, None]
            expected = (places * text).sum(0) / places.sum()
        np.testing.assert_allclose(pooled[row, SEGMENTS[row, first] - 1], expected, rtol=1e-5, atol=1e-6)
    assert np.isfinite(pooled).all()


def test_modes_lie_side_by_side_and_layers_follow_in_order():
    x = np.random.default_rng(1).normal(size=(2, 6, 4)).astype(np.float32)
    head = SentenceHead(("cls", "mean"), ("normalize", Dense(8, 3, True, "gelu"), Dense(3, 2, False, "identity")))
    params = init_sentence_head(head, jax.random.key(2))
    params["dense_0"]["bias"] = np.arange(3, dtype=np.float32)
    vectors = np.asarray(jax.jit(lambda x: sentence_vectors(head, params, x, SEGMENTS, POSITIONS, 2))(x))
    text = x[1, :4]
    v = np.concatenate([text[0], text.mean(0)])
    v = v / np.linalg.norm(v)
    v = jax.nn.gelu(v @ params["dense_0"]["kernel"] + np.arange(3.0), approximate=False)
    np.testing.assert_allclose(vectors[1, 0], v @ params["dense_1"]["kernel"], rtol=1e-5)
    assert head.width(4) == 2


def test_the_gradient_of_an_absent_text_is_zero():
    def total(x):
        vectors = sentence_vectors(SentenceHead(MODES, ("normalize",)), {}, x, SEGMENTS, POSITIONS, 2)
        return vectors[0].sum()

    slope = np.asarray(jax.jit(jax.grad(total))(np.random.default_rng(3).normal(size=(2, 6, 4)).astype(np.float32)))
    assert np.isfinite(slope).all() and not slope[1].any() and not slope[0, 5].any() and slope[0, 0].any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SentenceHead(("meen",)), "pooling 'meen' is not known; use cls, .*did you mean mean"),
        (lambda: SentenceHead(()), "no pooling is given"),
        (
            lambda: SentenceHead(default_prompt="query"),
            "the default prompt 'query' is not among the prompts \\(none\\)",
        ),
        (lambda: Dense(4, 4, activation="softplus"), "activation 'softplus' is not known; use identity, tanh"),
        (lambda: SentenceHead(("cls", "mean"), (Dense(9, 3),)).width(4), "reads vectors of 9, but gets 8"),
    ],
)
def test_wrong_heads(make, message):
    with pytest.raises(ValueError, match=message):
        make()
