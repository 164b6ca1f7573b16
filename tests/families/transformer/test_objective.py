"""Training a Transformer: packed rows give what single rows give, and dropout needs a key."""

import jax
import numpy as np
import pytest

from bert_elmo_jax.data.pipeline.windows import Text
from bert_elmo_jax.data.rows.translation import pair_batch, plan_pair_rows
from bert_elmo_jax.families.transformer.config import TransformerConfig
from bert_elmo_jax.families.transformer.objective import translate_objective
from experiments.configs import pretraining

MODEL = TransformerConfig(
    vocab_size=60, hidden_size=16, num_layers=1, num_heads=2, feed_forward_size=32, max_positions=40, dropout=0.1
)


def objective(**changed):
    c = pretraining.translate(pretraining.fields("transformer", MODEL))
    c.update({"length": 40, "target_length": 36, "batch_size": 4, "steps": 10} | changed)
    return translate_objective(c, MODEL)


def pairs(count=9):
    rng = np.random.default_rng(0)
    sides = [rng.integers(4, 60, n) for n in rng.integers(2, 9, 2 * count)]
    starts = np.cumsum([0, *map(len, sides)]).astype(np.int64)
    return Text(np.concatenate(sides), starts, np.arange(0, 2 * count + 1, 2))


def batch_of(examples):
    rows = plan_pair_rows(pairs(), examples, (0,), ((2,), (3,)))
    return pair_batch(rows, 0, len(rows), examples)


@pytest.fixture(scope="module")
def params():
    fresh = jax.device_get(jax.jit(objective().init)(jax.random.key(0)))
    # Larger than fresh weights, so that every part of the mathematics shows.
    return jax.tree.map(lambda leaf: (leaf * 2 if leaf.ndim > 1 else leaf + 0.1).astype(np.float32), fresh)


def test_packed_rows_give_what_single_rows_give(params):

    def compute(sequences):
        pair_objective = objective(sequences=sequences)
        batch = batch_of(pair_objective.phases[0].examples)
        assert (batch["source_segments"].max() > 1) == (sequences > 1)
        terms, metrics, _ = jax.jit(pair_objective.held_out_loss, static_argnums=(2, 3))(params, batch, None, None)
        gradient = jax.jit(jax.grad(lambda p: pair_objective.loss(p, batch, None, None)[0]["translation"][0]))(params)
        return {name: [float(x) for x in pair] for name, pair in (terms | metrics).items()}, gradient

    (single, gradient), (packed, other) = compute(1), compute(5)
    assert packed.keys() == {"translation", "accuracy", "exact"}
    for name in packed:
        np.testing.assert_allclose(packed[name], single[name], rtol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), gradient, other)


def test_dropout_needs_a_key_and_only_the_encoder_and_the_decoder_are_trained(params):
    pair_objective = objective()
    batch = batch_of(pair_objective.phases[0].examples)
    compute = jax.jit(lambda p, k: pair_objective.loss(p, batch, k, None)[0]["translation"][0])
    plain, again, dropped = (float(compute(params, key)) for key in (None, None, jax.random.key(0)))
    assert plain == again != dropped
    assert set(params) == {"encoder", "decoder"} and "pooler" not in params["encoder"]
