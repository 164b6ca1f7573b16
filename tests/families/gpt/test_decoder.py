"""Writing with a memory gives the numbers of a whole forward pass."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.gpt.config import GptConfig

from ..huggingface_models import Model, random_params

FAMILY = get_family("gpt")
TEXTS = [[5, 9, 14, 2, 7, 31, 8], [77, 3], [40, 41, 42, 43, 44], [6]]


def uncached(config, params, rows):
    """Return the scores of whole rows; shorter ones are padded, which a piece does not see before their ends."""
    width = max(map(len, rows))
    tokens = np.array([[*row, *[0] * (width - len(row))] for row in rows], np.int32)
    return np.asarray(score_whole(config, params, tokens))


@functools.partial(jax.jit, static_argnums=0)
def score_whole(config, params, tokens):
    last = FAMILY.build(config).apply({"params": params["encoder"]}, tokens).last
    return FAMILY.head("lm", config).apply({}, last, params["encoder"]["embeddings"]["word"])


def left_padded(texts, pad):
    """Return tokens, positions and the mask of texts whose first slots are empty."""
    width = max(map(len, texts))
    tokens = np.array([[pad] * (width - len(text)) + text for text in texts], np.int32)
    mask = np.array([[0] * (width - len(text)) + [1] * len(text) for text in texts], np.int32)
    return tokens, np.cumsum(mask, axis=1, dtype=np.int32) - 1, mask


@pytest.mark.parametrize("name", ["gpt2_tiny", pytest.param("gpt_tiny", marks=pytest.mark.long)])
def test_cached_equals_uncached(goldens, name):
    """After the prompt, rows take over the memory of others, and take one, two or three steps at once."""
    model = load(goldens / name)
    decoder = FAMILY.decoder(model.config)
    more, chosen = np.random.default_rng(0).integers(0, 100, (len(TEXTS), 6)).astype(np.int32), np.array([2, 2, 0, 1])
    tokens, positions, mask = left_padded(TEXTS, decoder.pad)
    width, slots = tokens.shape[1], tokens.shape[1] + more.shape[1]
    slot_mask = np.concatenate([mask, np.ones_like(more)], axis=1).astype(bool)
    memory = decoder.start(model.params, tokens, mask, slots)
    step = jax.jit(decoder.step)
    logits, memory = step(model.params, memory, tokens, positions, 0, slot_mask)
    cached_logits = [np.asarray(logits)[chosen, -1:]]
    memory, slot_mask = jax.tree.map(lambda array: np.asarray(array)[chosen], memory), slot_mask[chosen]
    for at, end in ((0, 1), (1, 3), (3, 6)):
        places = positions[chosen, -1:] + 1 + np.arange(at, end, dtype=np.int32)[None]
        logits, memory = step(model.params, memory, more[:, at:end], places, np.int32(width + at), slot_mask)
        assert logits.shape == (4, end - at, model.config.vocab_size) and logits.dtype == jnp.float32
        cached_logits.append(np.asarray(logits))
    cached_logits = np.concatenate(cached_logits, axis=1)
    rows = [TEXTS[text] + more[row].tolist() for row, text in enumerate(chosen)]
    for ours, full_logits, text in zip(cached_logits, uncached(model.config, model.params, rows), chosen):
        expected = full_logits[len(TEXTS[text]) - 1 :][: len(ours)]
        assert np.abs(ours - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("field", ["scale_attention", "scale_by_layer"])
def test_scaled_scores(field):
    config = GptConfig(50, 16, 3, 2, 32, 12, **{field: field == "scale_by_layer"})
    params, decoder, text = random_params(Model(config, "")), FAMILY.decoder(config), [3, 1, 4, 1, 5]
    places = np.arange(5, dtype=np.int32)[None]
    memory = decoder.start(params, np.array([text]), None, 5)
    step = jax.jit(decoder.step)
    logits, _ = step(params, memory, np.array([text], np.int32), places, 0, np.ones((1, 5), bool))
    [expected] = uncached(config, params, [text])
    np.testing.assert_allclose(logits[0], expected, atol=1e-4 * np.abs(expected).max())
    plain = dataclasses.replace(config, scale_attention=True, scale_by_layer=False)
    assert np.abs(uncached(plain, params, [text])[0] - expected).max() > 1e-2


def test_the_fields_of_a_decoder():
    decoder = FAMILY.decoder(GptConfig.preset("gpt2"))
    assert (decoder.ends, decoder.pad, decoder.most, decoder.first) == ((50256,), 50256, 1024, None)
    assert FAMILY.decoder(GptConfig(50, 16, 1, 2, 32, 12)).ends == ()


def test_a_prompt_in_two_steps_scores_only_its_last_piece(goldens):
    """The unread logits of the first step are left out when both are compiled together."""
    model, text = load(goldens / "gpt2_tiny"), [5, 9, 14, 2, 7, 31]
    decoder, length = FAMILY.decoder(model.config), len(text)
    tokens, places = np.array([text], np.int32), np.arange(length, dtype=np.int32)[None]
    slot_mask = np.ones((1, 8), bool)

    def in_one(params):
        memory = decoder.start(params, tokens, None, 8)
        return decoder.step(params, memory, tokens, places, 0, slot_mask)[0][:, -1]

    def in_two(params):
        memory = decoder.start(params, tokens, None, 8)
        _, memory = decoder.step(params, memory, tokens[:, :-1], places[:, :-1], 0, slot_mask)
        return decoder.step(params, memory, tokens[:, -1:], places[:, -1:], length - 1, slot_mask)[0][:, -1]

    one, two = (jax.jit(function).lower(model.params).compile() for function in (in_one, in_two))
    np.testing.assert_allclose(two(model.params), one(model.params), atol=1e-4)
    scores = 2 * model.config.hidden_size * model.config.vocab_size
    assert one.cost_analysis()["flops"] - two.cost_analysis()["flops"] > 0.9 * (length - 1) * scores


@pytest.mark.parametrize("rows", [2, 8])
def test_prepared_parameters_write_in_half_precision(goldens, rows):
    """Few rows are computed in float32 on a CPU; both are as exact as bfloat16."""
    model = load(goldens / "gpt2_tiny")
    half = FAMILY.decoder(dataclasses.replace(model.config, dtype="bfloat16"))
    tokens, positions, mask = np.full((rows, 1), 7, np.int32), np.zeros((rows, 1), np.int32), np.ones((rows, 4), bool)
    prepared = half.prepare(model.params)
    memory = half.start(prepared, tokens, np.ones_like(tokens), 4)
    assert memory["layer_0"]["key"].dtype == jnp.bfloat16
    wide = jax.tree.map(lambda part: part.astype(jnp.float32), memory)
    [expected] = uncached(model.config, model.params, [[7]])
    for decoder, start, bound in ((half, memory, 0.05), (FAMILY.decoder(model.config), wide, 1e-5)):
        logits, _ = jax.jit(decoder.step)(prepared, start, tokens, positions, 0, mask)
        assert logits.dtype == jnp.float32
        assert np.abs(np.asarray(logits) - expected).max() <= bound * np.abs(expected).max()
