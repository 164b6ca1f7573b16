"""Writing step by step gives the numbers of a whole target at once."""

import functools

import jax
import numpy as np
import pytest

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.init_params import param_shapes
from bert_elmo_jax.families.transformer.config import TransformerConfig
from bert_elmo_jax.families.transformer.model import run_pair
from bert_elmo_jax.weights.parameter_tree import nest

pytestmark = pytest.mark.usefixtures("strict_dtypes")
CONFIGS = {
    "marian": TransformerConfig(40, 16, 2, 4, 24, 12, output_bias=True),
    "apart": TransformerConfig(
        40, 16, 1, 4, 24, 12, "silu", target_vocab_size=30, decoder_layers=2, decoder_heads=2, key_size=3, value_size=5,
        decoder_feed_forward_size=20, positions="learned", share_embeddings=False, tie_output=False,
        scale_embeddings=False,
    ),
}  # fmt: skip


FAMILY = get_family("transformer")


@functools.cache
def fresh(config):
    """Return a decoder, its compiled functions, and random parameters."""
    shapes, rng = param_shapes(FAMILY, config, ("decoder",), pooler=False), np.random.default_rng(3)
    params = nest({path: rng.normal(0, 0.3, shape).astype(np.float32) for path, shape in shapes.items()})
    decoder = FAMILY.decoder(config)
    return decoder, jax.jit(decoder.start, static_argnums=3), jax.jit(decoder.step), params


def all_at_once(config):
    return jax.jit(lambda params, source, target: run_pair(config, params, source, target).logits)


@pytest.mark.parametrize(
    "config", [pytest.param(CONFIGS["marian"], marks=pytest.mark.long), CONFIGS["apart"]], ids=CONFIGS.keys()
)
def test_cached_equals_uncached(config):
    decoder, start, step, params = fresh(config)
    rng, mask = np.random.default_rng(0), (np.arange(6)[None, :] < np.array([[6], [3], [1]])).astype(np.int32)
    source, target = rng.integers(4, 40, (3, 6)).astype(np.int32), rng.integers(4, 30, (3, 7)).astype(np.int32)
    target[:, 0] = decoder.first
    full_logits = all_at_once(config)(params, {"tokens": source, "segments": mask}, {"tokens": target})
    memory, logits = start(params, source, mask, 9), []
    assert all(leaf.shape[0] == 3 for leaf in jax.tree.leaves(memory))
    for first, last in ((0, 1), (1, 4), (4, 7)):
        slot_mask = np.broadcast_to(np.arange(9) < last, (3, 9))
        places = np.broadcast_to(np.arange(first, last, dtype=np.int32), (3, last - first))
        new_logits, memory = step(params, memory, target[:, first:last], places, first, slot_mask)
        logits.append(new_logits)
    np.testing.assert_allclose(np.concatenate(logits, 1), full_logits, rtol=1e-5, atol=2e-5)


def test_a_row_with_a_shorter_beginning_leaves_its_first_slots_empty():
    _, start, step, params = fresh(CONFIGS["marian"])
    source, mask = np.array([[5, 6, 7]], np.int32), np.ones((1, 3), np.int32)
    target = np.array([[2, 8, 9]], np.int32)
    full_logits = all_at_once(CONFIGS["marian"])(params, {"tokens": source}, {"tokens": target})
    memory = start(params, source, mask, 6)
    slot_mask = np.array([[0, 0, 1, 1, 1, 0]], bool)
    shifted = np.array([[7, 7, 2, 8, 9]], np.int32)
    logits, _ = step(params, memory, shifted, np.array([[0, 0, 0, 1, 2]], np.int32), 0, slot_mask)
    np.testing.assert_allclose(np.asarray(logits)[:, 2:], full_logits, rtol=1e-5, atol=2e-5)


def test_the_fields_of_the_decoder():
    decoder = FAMILY.decoder(TransformerConfig(40, pad_id=1, forbidden_ids=(7,), end_ids=(3, 4)))
    assert decoder.forbidden == (7,) and decoder.ends == (3, 4) and decoder.pad == 1
    assert decoder.first == 2 and decoder.most == 512


def test_prepared_parameters_give_the_same_numbers():
    decoder, start, step, params = fresh(CONFIGS["apart"])
    source, mask = np.array([[5, 6]], np.int32), np.ones((1, 2), np.int32)
    step_inputs = np.array([[2, 8]], np.int32), np.array([[0, 1]], np.int32), 0, np.ones((1, 2), bool)
    one, other = (step(p, start(p, source, mask, 2), *step_inputs)[0] for p in (params, decoder.prepare(params)))
    np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="only the encoder"):
        decoder.prepare({"encoder": params["encoder"]})
