"""GPT on texts: vectors, windows, features for networks and probes, folders in and out."""

import numpy as np
import pytest

from bert_elmo_jax import load

TEXTS = ["the sea and a ship", "배를 타고 강을 건넜다.", "a", "Hello, world! " * 12]


@pytest.fixture(scope="module")
def model(goldens):
    return load(goldens / "gpt2_tiny")


def test_texts_that_share_rows_have_their_own_vectors(model):
    encoding = model.encode(TEXTS, layers=[0, -1], overflow="windows")
    assert encoding.pooled is None
    for number, text in enumerate(TEXTS[:3]):
        ids = model.tokenizer.encode(text).ids
        output = model.forward(ids[None])
        assert np.abs(encoding.last[number, : len(ids)] - output.last[0]).max() < 2e-5
        assert np.abs(encoding.layers[0, number, : len(ids)] - output.layers[0, 0]).max() < 2e-5
    assert len(encoding.texts[3]) > 64
    with pytest.raises(ValueError, match="64"):
        model.encode(TEXTS)


def test_features_of_words(model):
    [layers, _] = model.word_layers([["the", "sea"], ["강을"]], [0, 1, 3], pieces="last")
    assert layers.shape == (3, 2, 48)
    batch = model.word_batch([["the", "sea", "x"], ["강을"]], 2, 3)
    features = np.asarray(model.word_function()(model.params["encoder"], batch, None))
    assert features.shape == (4, 2, 3, 48)
    ids, places = model._piece_ids(["the", "sea", "x"])
    expected = model.forward(ids[None]).layers[:, 0, places]
    np.testing.assert_allclose(features[:, 0], expected, atol=2e-5)
    [vectors] = model.extract(["the sea"], [-1], units="words")
    assert vectors.shape[0] == 1 and vectors.shape[2] == 48


def test_gaps_cannot_be_filled(model):
    with pytest.raises(ValueError, match=r"no masked-language-model head \(a piece sees only those before it\)"):
        model.fill_mask("the <|endoftext|> sea")


def test_limits_of_a_folder_without_a_tokenizer(goldens):
    model = load(goldens / "gpt_tiny")
    with pytest.raises(ValueError, match="rows of 41 tokens were given to a model with 40 positions"):
        model.forward(tokens=np.zeros((1, 41), np.int32))
    with pytest.raises(ValueError, match=r"has no tokenizer.*forward\(\) takes ids"):
        model.encode(["a"])


@pytest.mark.parametrize("name", ["gpt_tiny", "gpt2_tiny"])
def test_a_piece_sees_none_after_it(goldens, name):
    model = load(goldens / name)
    tokens = np.arange(24, dtype=np.int32).reshape(2, 12)
    changed = tokens.copy()
    changed[:, 7:] += 30
    ours, theirs = (np.asarray(model.forward(tokens=ids).logits) for ids in (tokens, changed))
    np.testing.assert_array_equal(ours[:, :7], theirs[:, :7])
    assert np.abs(ours[:, 7:] - theirs[:, 7:]).max() > 0.1
