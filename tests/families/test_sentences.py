"""`sentences`: vectors against pooled outputs of `encode`, prompts, lengths, and wrong inputs."""

import dataclasses

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families import sentences
from bert_elmo_jax.families.piece_encoder import PieceEncoder
from bert_elmo_jax.families.pieces import Pieces
from bert_elmo_jax.heads.sentence_head import SentenceHead


@pytest.fixture(scope="module")
def encoder(goldens):
    return load(goldens / "bert_tiny")


@pytest.fixture(scope="module")
def texts(encoder):
    tokens = encoder.tokenizer.tokens
    words = [tokens[i] for i in np.flatnonzero(encoder.tokenizer.word_starts) if tokens[i].isalnum()]
    draw = np.random.default_rng(0)
    return [" ".join(draw.choice(words, n)) for n in draw.integers(1, 14, 40)]


def change(encoder, packs=True, **fields):
    """Return an encoder with the same weights and another head."""
    family = dataclasses.replace(encoder.family, inputs=Pieces(packs=packs))
    other = PieceEncoder(family, encoder.config, encoder.params, encoder.tokenizer)
    other.sentence_head = SentenceHead(**fields)
    return other


def pool(encoder, texts):
    """Return the mean of the pieces of each text, from `encode`."""
    encoded = encoder.encode(texts)
    real = np.asarray(encoded.mask, bool)[..., None]
    return np.where(real, encoded.last, 0).sum(1) / real.sum(1)


@pytest.mark.parametrize("packs", [True, False])
def test_sentences_are_the_means_of_encode(encoder, texts, monkeypatch, packs):
    monkeypatch.setattr(sentences, "ROUND", 16)  # several rounds
    vectors = change(encoder, packs).sentences(texts, batch_size=4)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, pool(encoder, texts), rtol=1e-4, atol=1e-5)
    assert encoder.sentences([texts[0].split()])[0] == pytest.approx(vectors[0], abs=1e-5)


def test_prompts(encoder, texts):
    asking = change(encoder, prompts=(("query", "[MASK] [MASK] "), ("none", "")), default_prompt="query")
    expected = pool(encoder, [f"[MASK] [MASK] {text}" for text in texts])
    for prompt in (None, "query", "[MASK] [MASK] "):
        np.testing.assert_allclose(asking.sentences(texts, prompt=prompt), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(asking.sentences(texts, prompt=""), pool(encoder, texts), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(asking.sentences(texts, prompt_name="query"), asking.sentences(texts))
    left_out = change(encoder, prompts=asking.sentence_head.prompts, include_prompt=False, pooling=("cls",))
    first_vector = encoder.encode([f"[MASK] [MASK] {texts[0]}"]).last[0, 3]  # behind [CLS] and two pieces
    np.testing.assert_allclose(left_out.sentences(texts[:1], prompt="query")[0], first_vector, rtol=1e-4, atol=1e-5)


def test_a_prompt_is_left_out_of_a_model_without_a_last_special_piece(goldens):
    encoder = load(goldens / "gpt2_tiny")
    encoder.sentence_head = SentenceHead(include_prompt=False)
    prompt, text = "the river: ", "the bank"
    pieces = len(encoder.tokenizer.encode(prompt).ids)
    expected = encoder.encode([prompt + text]).last[0, pieces:].mean(0)
    np.testing.assert_allclose(encoder.sentences([text], prompt=prompt)[0], expected, rtol=1e-4, atol=1e-5)


def test_vectors_are_cut_to_a_width(encoder, texts):
    np.testing.assert_array_equal(encoder.sentences(texts[:2], width=5), encoder.sentences(texts[:2])[:, :5])


def test_a_long_text_is_cut_and_one_line_is_said(encoder, texts):
    short = change(encoder, max_length=8)
    long = " ".join(texts[:3])
    with pytest.warns(UserWarning, match="text 1 has [0-9]+ pieces and is cut to 8, as sentence-transformers does"):
        vectors = short.sentences(["[MASK]", long])
    cut = encoder.encode([long], max_length=8, overflow="truncate")
    np.testing.assert_allclose(vectors[1], cut.last[0].mean(0), rtol=1e-4, atol=1e-5)
    short.sentences([long])  # a second warning would be an error
    change(encoder, max_length=8).sentences([long], overflow="truncate")
    with pytest.raises(ValueError, match=r"text 0 has .* pieces, the model takes 8"):
        short.sentences([long], overflow="raise")


def test_lower_casing(encoder, texts):
    lower = change(encoder, lowercase=True)
    assert np.array_equal(lower.sentences([texts[0].upper()]), lower.sentences([texts[0]]))


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        ("text", {}, "a single string was given"),
        ([""], {}, "text 0 is empty"),
        (["[MASK]", " "], {"prompt": "query: "}, "text 1 is empty"),
        ([("a", "b")], {}, "text 0 is a pair"),
        (["a"], {"prompt": "qurey"}, "prompt='qurey' is not the name of a prompt .* it has query; did you mean"),
        (["a"], {"prompt_name": "query: "}, "prompt_name='query: ' is not the name of a prompt .* it has query"),
        (["a"], {"prompt": b"query"}, "prompt=b'query': expected the name of a prompt"),
        (["a"], {"prompt_name": "query", "prompt": ""}, "prompt='' and prompt_name='query' are given; give one"),
        (["a"], {"width": 65}, "width=65 is more than the 64 numbers of this model's vectors"),
        (["a"], {"width": 0}, "width=0"),
        (["a"], {"overflow": "windows"}, "overflow='windows' is not known for sentences"),
        (["a"], {"batch_size": 0}, "batch_size=0"),
    ],
)
def test_wrong_inputs(as_users_run, encoder, inputs, options, message):
    asking = change(encoder, prompts=(("query", "query: "),))
    with pytest.raises((TypeError, ValueError), match=message):
        asking.sentences(inputs, **options)
    with pytest.raises(ValueError, match="it has none"):
        encoder.sentences(["[MASK]"], prompt="query")
