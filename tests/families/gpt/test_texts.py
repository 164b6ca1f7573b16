"""GPT on texts: vectors, windows, features for networks and probes, folders in and out."""

import json

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.inference.convert import convert

TEXTS = ["the sea and a ship", "배를 타고 강을 건넜다.", "a", "Hello, world! " * 12]


@pytest.fixture(scope="module")
def model(goldens):
    return load(goldens / "gpt2_tiny")


def test_texts_that_share_rows_have_their_own_vectors(model):
    encoding = model.encode(TEXTS, layers=[0, -1], overflow="windows")
    assert encoding.pooled is None
    for number, text in enumerate(TEXTS[:3]):
        ids = model.tokenizer.encode(text).ids
        alone = model.forward(ids[None])
        assert np.abs(encoding.last[number, : len(ids)] - alone.last[0]).max() < 2e-5
        assert np.abs(encoding.layers[0, number, : len(ids)] - alone.layers[0, 0]).max() < 2e-5
    assert len(encoding.texts[3]) > 64


def test_a_text_longer_than_the_model(model):
    with pytest.raises(ValueError, match="64"):
        model.encode(TEXTS)


def test_features_of_words(model):
    [layers, _] = model.word_layers([["the", "sea"], ["강을"]], [0, 1, 3], pieces="last")
    assert layers.shape == (3, 2, 48)
    batch = model.word_batch([["the", "sea", "x"], ["강을"]], 2, 3)
    found = np.asarray(model.word_function()(model.params["encoder"], batch, None))
    assert found.shape == (4, 2, 3, 48)
    ids, places = model._piece_ids(["the", "sea", "x"])
    wanted = model.forward(ids[None]).layers[:, 0, places]
    np.testing.assert_allclose(found[:, 0], wanted, atol=2e-5)
    [vectors] = model.extract(["the sea"], [-1], units="words")
    assert vectors.shape[0] == 1 and vectors.shape[2] == 48


def test_gaps_cannot_be_filled(model):
    with pytest.raises(ValueError, match=r"no masked-language-model head \(a piece sees only those before it\)"):
        model.fill_mask("the <|endoftext|> sea")


def test_out_and_in_again(model, goldens, tmp_path):
    convert(str(goldens / "gpt2_tiny"), tmp_path / "run", to_format="run")
    convert(str(tmp_path / "run"), tmp_path / "out", to_format="huggingface")
    again = load(tmp_path / "out")
    assert again.config == model.config
    assert again.tokenizer.fingerprint == model.tokenizer.fingerprint
    settings = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text("utf-8"))
    assert settings["model_max_length"] == 64 and "token_type_ids" not in settings["model_input_names"]
    ids = model.tokenizer.encode(TEXTS[0]).ids[None]
    np.testing.assert_array_equal(again.forward(ids).logits, model.forward(ids).logits)
