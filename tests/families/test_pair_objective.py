"""The objective of translation on a model with given scores: terms, figures, and refused settings."""

import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from bert_elmo_jax.families.pair_objective import (
    count_exact,
    held_out_pair_loss,
    name_figures,
    pair_loss,
    pair_objective,
)
from bert_elmo_jax.families.transformer.config import TransformerConfig
from bert_elmo_jax.families.transformer.objective import translate_objective
from experiments.configs import pretraining

VOCABULARY = 6


def batch(seed=0, rows=3, width=7):
    rng = np.random.default_rng(seed)
    segments = np.array([[1, 1, 1, 2, 2, 0, 0], [1] * 7, [0] * 7], np.int32)[:rows]
    return {"target_out": rng.integers(0, VOCABULARY, (rows, width)).astype(np.int32), "target_segments": segments}


def scores(params, batch, key):
    """Score every piece by a table, regardless of the pieces before it."""
    return jnp.broadcast_to(params["table"][None], (len(batch["target_out"]), 7, VOCABULARY))


def test_the_terms_by_hand():
    inputs, table = batch(), np.random.default_rng(1).normal(size=(7, VOCABULARY)).astype(np.float32)
    log_p = table - np.log(np.exp(table).sum(axis=1, keepdims=True))
    real = inputs["target_segments"] > 0
    chosen = np.take_along_axis(np.broadcast_to(log_p, (3, 7, VOCABULARY)), inputs["target_out"][..., None], 2)[..., 0]
    plain = -chosen[real].sum()
    smooth = 0.9 * plain - 0.1 * np.broadcast_to(log_p.mean(axis=1), (3, 7))[real].sum()
    params = {"table": jnp.asarray(table)}
    terms, metrics, carry = pair_loss(scores, 0.1)(params, inputs, None, "carry")
    assert carry == "carry"
    np.testing.assert_allclose(terms["translation"], (smooth, real.sum()), rtol=1e-5)
    terms, more, _ = held_out_pair_loss(scores, sequences=2)(params, inputs, None, None)
    np.testing.assert_allclose(terms["translation"], (plain, real.sum()), rtol=1e-5)
    hits = (table.argmax(axis=1)[None] == inputs["target_out"])[real].sum()
    assert [float(x) for x in metrics["accuracy"]] == [float(x) for x in more["accuracy"]] == [hits, real.sum()]
    assert float(more["exact"][1]) == 3


def test_exact_sentences():
    right = jnp.array([[True, True, True, False, True, False, False], [True] * 7, [False] * 7])
    exact, count = count_exact(right, jnp.asarray(batch()["target_segments"]), sequences=4)
    assert (float(exact), float(count)) == (2, 3)


def test_figures():
    figures = name_figures({"translation": float(np.log(4)), "accuracy": 0.5, "exact": 0.25})
    assert figures == pytest.approx({"held_out/perplexity": 4, "held_out/accuracy": 0.5, "held_out/exact": 0.25})


def config(**changed):
    c = pretraining.translate(pretraining.fields("transformer", TransformerConfig()))
    c.update({"length": 16, "target_length": 16, "batch_size": 4, "steps": 10} | changed)
    return c


def test_the_examples_of_a_config():
    model = TransformerConfig(vocab_size=50, hidden_size=8, num_heads=2, start_id=4, end_ids=(7,), pad_id=1)
    [phase] = translate_objective(config(sequences=3, reverse=True), model).phases
    pairs = phase.examples
    assert (phase.steps, phase.rows, pairs.source_length, pairs.sequences, pairs.reverse) == (10, 4, 16, 3, True)
    assert (pairs.start, pairs.end, pairs.pad) == (4, 7, 1)


def test_wrong_settings_are_refused():
    model = TransformerConfig(vocab_size=50, hidden_size=8, num_heads=2, max_positions=15)
    with pytest.raises(ValueError, match=r"config.length=16, but the model has 15 positions: lower it, or raise"):
        translate_objective(config(), model)
    with pytest.raises(ValueError, match=r"config.target_length=16, but the model has 15 positions"):
        translate_objective(config(length=8), model)
    with pytest.raises(ValueError, match=r"config.sequences=2: this model does not keep the pairs of a row apart"):
        pair_objective(
            config(sequences=2), ConfigDict({"hidden_size": 8}), init=dict, logits=scores, start=0, end=1, pad=2,
            packs=False,
        )  # fmt: skip
