"""Writing with a memory gives the numbers of a whole forward pass."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.gpt.config import GptConfig
from bert_elmo_jax.families.init_params import init_params

FAMILY = get_family("gpt")
TEXTS = [[5, 9, 14, 2, 7, 31, 8], [77, 3], [40, 41, 42, 43, 44], [6]]


def uncached(config, params, ids):
    module = FAMILY.build(config)
    last = module.apply({"params": params["encoder"]}, np.array([ids], np.int32)).last
    return np.asarray(FAMILY.head("lm", config).apply({}, last, params["encoder"]["embeddings"]["word"]))[0]


def left_padded(texts, pad):
    """Return tokens, positions and the mask of texts whose first slots are empty."""
    width = max(map(len, texts))
    tokens = np.array([[pad] * (width - len(text)) + text for text in texts], np.int32)
    mask = np.array([[0] * (width - len(text)) + [1] * len(text) for text in texts], np.int32)
    return tokens, np.cumsum(mask, axis=1, dtype=np.int32) - 1, mask


@pytest.mark.parametrize("name", ["gpt2_tiny", "gpt_tiny"])
@pytest.mark.parametrize("steps", [1, 3])
def test_cached_equals_uncached(goldens, name, steps):
    model = load(goldens / name)
    decoder = FAMILY.decoder(model.config)
    rng = np.random.default_rng(0)
    more = rng.integers(0, 100, (len(TEXTS), 6)).astype(np.int32)
    tokens, positions, mask = left_padded(TEXTS, decoder.pad)
    width, slots = tokens.shape[1], tokens.shape[1] + more.shape[1]
    seen = np.concatenate([mask, np.ones_like(more)], axis=1).astype(bool)
    memory = decoder.start(model.params, tokens, mask, slots)
    step = jax.jit(decoder.step)
    logits, memory = decoder.step(model.params, memory, tokens, positions, 0, seen)
    found = [np.asarray(logits)[:, -1:]]
    for at in range(0, more.shape[1], steps):
        new = more[:, at : at + steps]
        places = positions[:, -1:] + 1 + at + np.arange(steps, dtype=np.int32)[None]
        logits, memory = step(model.params, memory, new, places, jnp.int32(width + at), seen)
        assert logits.shape == (len(TEXTS), steps, model.config.vocab_size) and logits.dtype == jnp.float32
        found.append(np.asarray(logits))
    found = np.concatenate(found, axis=1)
    for row, text in enumerate(TEXTS):
        wanted = uncached(model.config, model.params, text + more[row].tolist())[len(text) - 1 :]
        assert np.abs(found[row] - wanted).max() <= 1e-5 * np.abs(wanted).max()


def test_a_beam_takes_over_the_memory_of_another(goldens):
    model = load(goldens / "gpt2_tiny")
    decoder = FAMILY.decoder(model.config)
    tokens, positions, mask = left_padded(TEXTS, decoder.pad)
    seen = np.concatenate([mask, np.ones((4, 1), np.int32)], axis=1).astype(bool)
    memory = decoder.start(model.params, tokens, mask, seen.shape[1])
    _, memory = decoder.step(model.params, memory, tokens, positions, 0, seen)
    chosen = np.array([2, 2, 0, 1])
    memory = jax.tree.map(lambda array: array[chosen], memory)
    new = np.full((4, 1), 9, np.int32)
    places, width = positions[chosen][:, -1:] + 1, tokens.shape[1]
    logits, _ = decoder.step(model.params, memory, new, places, width, seen[chosen])
    for row, text in enumerate(chosen):
        wanted = uncached(model.config, model.params, [*TEXTS[text], 9])[-1]
        assert np.abs(np.asarray(logits)[row, 0] - wanted).max() <= 1e-5 * np.abs(wanted).max()


@pytest.mark.parametrize("field", ["scale_attention", "scale_by_layer"])
def test_scaled_scores(field):
    config = GptConfig(50, 16, 3, 2, 32, 12, initializer_range=0.5, **{field: field == "scale_by_layer"})
    params = init_params(FAMILY, config, jax.random.key(0))
    decoder, text = FAMILY.decoder(config), [3, 1, 4, 1, 5]
    places = np.arange(5, dtype=np.int32)[None]
    memory = decoder.start(params, np.array([text]), None, 5)
    logits, _ = decoder.step(params, memory, np.array([text], np.int32), places, 0, np.ones((1, 5), bool))
    wanted = uncached(config, params, text)
    np.testing.assert_allclose(logits[0], wanted, atol=1e-4 * np.abs(wanted).max())
    plain = dataclasses.replace(config, scale_attention=True, scale_by_layer=False)
    assert np.abs(uncached(plain, params, text) - wanted).max() > 1e-2


def test_the_fields_of_a_decoder():
    decoder = FAMILY.decoder(GptConfig.preset("gpt2"))
    assert (decoder.ends, decoder.pad, decoder.most, decoder.first) == ((50256,), 50256, 1024, None)
    assert FAMILY.decoder(GptConfig(50, 16, 1, 2, 32, 12)).ends == ()


@pytest.mark.parametrize("length", [1, 6])
def test_a_prompt_in_two_steps_scores_only_its_last_piece(goldens, length):
    """The unread logits of the first step are left out when both are compiled together."""
    model = load(goldens / "gpt2_tiny")
    decoder, text = FAMILY.decoder(model.config), [5, 9, 14, 2, 7, 31][:length]
    tokens, places = np.array([text], np.int32), np.arange(length, dtype=np.int32)[None]
    seen = np.ones((1, 8), bool)

    def whole(params):
        memory = decoder.start(params, tokens, None, 8)
        return decoder.step(params, memory, tokens, places, 0, seen)[0][:, -1]

    def in_two(params):
        memory = decoder.start(params, tokens, None, 8)
        _, memory = decoder.step(params, memory, tokens[:, :-1], places[:, :-1], 0, seen)
        return decoder.step(params, memory, tokens[:, -1:], places[:, -1:], length - 1, seen)[0][:, -1]

    one, two = (jax.jit(function).lower(model.params).compile() for function in (whole, in_two))
    np.testing.assert_allclose(two(model.params), one(model.params), atol=1e-4)
    if length > 1:
        scores = 2 * model.config.hidden_size * model.config.vocab_size
        assert one.cost_analysis()["flops"] - two.cost_analysis()["flops"] > 0.9 * (length - 1) * scores


def test_bfloat16_is_near(goldens):
    model, narrow = load(goldens / "gpt_tiny"), load(goldens / "gpt_tiny", dtype="bfloat16")
    decoder, tokens = FAMILY.decoder(narrow.config), np.array([[5, 9, 14, 2]], np.int32)
    memory = decoder.start(narrow.params, tokens, None, 4)
    assert memory["layer_0"]["key"].dtype == jnp.bfloat16
    places = np.arange(4, dtype=np.int32)[None]
    logits, _ = decoder.step(narrow.params, memory, tokens, places, 0, np.ones((1, 4), bool))
    wanted = uncached(model.config, model.params, tokens[0].tolist())
    assert logits.dtype == jnp.float32 and np.abs(np.asarray(logits)[0] - wanted).max() < 0.05 * np.abs(wanted).max()


@pytest.mark.parametrize("rows", [2, 8])
def test_prepared_parameters_write_in_half_precision(goldens, rows):
    """Few rows are computed in float32 on a CPU; both are as exact as bfloat16."""
    model = load(goldens / "gpt2_tiny")
    half = FAMILY.decoder(dataclasses.replace(model.config, dtype="bfloat16"))
    tokens, positions = np.full((rows, 1), 7, np.int32), np.zeros((rows, 1), np.int32)
    prepared = half.prepare(model.params)
    memory = half.start(prepared, tokens, np.ones_like(tokens), 4)
    assert memory["layer_0"]["key"].dtype == jnp.bfloat16
    logits, _ = half.step(prepared, memory, tokens, positions, 0, np.ones((rows, 4), bool))
    wanted = uncached(model.config, model.params, [7])
    assert logits.dtype == jnp.float32
    assert np.abs(np.asarray(logits) - wanted).max() <= 0.05 * np.abs(wanted).max()
    exact, _ = FAMILY.decoder(model.config).step(
        prepared,
        jax.tree.map(lambda part: part.astype(jnp.float32), memory),
        tokens,
        positions,
        0,
        np.ones((rows, 4), bool),
    )
    assert np.abs(np.asarray(exact) - wanted).max() <= 1e-5 * np.abs(wanted).max()
