"""The pretraining losses: counted and ignored positions, and the pieces that they see."""

import functools

import jax
import numpy as np
import optax
import pytest

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.family import FAMILY
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.families.piece_objective import piece_loss

from ..logits import pretraining_logits

CONFIG = BertConfig(vocab_size=40, hidden_size=16, num_layers=2, num_heads=2, feed_forward_size=32)
loss = jax.jit(piece_loss(FAMILY, CONFIG, pairs=True))


def batch(seed=0, rows=4, length=12, places=3):
    random = np.random.default_rng(seed)
    return {
        "tokens": random.integers(5, 40, (rows, length)).astype(np.int32),
        "types": np.zeros((rows, length), np.int32),
        "positions": np.tile(np.arange(length, dtype=np.int32), (rows, 1)),
        "segments": np.ones((rows, length), np.int32),
        "mlm_positions": random.integers(1, length, (rows, places)).astype(np.int32),
        "mlm_targets": random.integers(5, 40, (rows, places)).astype(np.int32),
        "mlm_weights": np.ones((rows, places), np.float32),
        "nsp_positions": np.zeros((rows, 1), np.int32),
        "nsp_targets": random.integers(0, 2, (rows, 1)).astype(np.int32),
        "nsp_weights": np.ones((rows, 1), np.float32),
    }


@pytest.fixture(scope="module")
def params():
    return jax.jit(lambda: init_params(FAMILY, CONFIG, jax.random.key(0), ("mlm", "nsp")))()


def test_the_terms_are_those_of_the_logits(params):
    inputs = batch()
    terms, metrics, carry = loss(params, inputs, None, np.float32(7))
    places = {name: inputs[name] for name in ("mlm_positions", "nsp_positions")}
    names = ("tokens", "types", "positions", "segments")
    compute = jax.jit(functools.partial(pretraining_logits, CONFIG))
    logits = compute(params, *(inputs[name] for name in names), **places)
    right = np.take_along_axis(np.asarray(jax.nn.log_softmax(logits.mlm)), inputs["mlm_targets"][..., None], -1)
    assert float(terms["mlm"][0]) == pytest.approx(-right.sum(), rel=1e-5)
    assert (float(terms["mlm"][1]), float(terms["nsp"][1]), carry) == (12, 4, 7)
    hits = (np.asarray(logits.nsp).argmax(-1) == inputs["nsp_targets"]).sum()
    assert float(metrics["nsp_accuracy"][0]) == hits


def test_rows_of_one_sequence_may_be_read_by_their_lengths(params):
    inputs = batch()
    inputs["segments"][0, 7:], inputs["segments"][3] = 0, 0  # padding, and a row of nothing else
    inputs["mlm_weights"][3] = 0
    unpacked = jax.jit(piece_loss(FAMILY, CONFIG, pairs=True, packed=False))
    np.testing.assert_array_equal(
        unpacked(params, inputs, None, None)[0]["mlm"], loss(params, inputs, None, None)[0]["mlm"]
    )


def test_masked_equals_subset_and_nothing_counted_is_finite(params):
    full_batch, part = batch(), batch()
    part["mlm_weights"][2:] = 0
    part["nsp_weights"][2:] = 0
    part["mlm_targets"][2:] = -100
    fewer = {name: values[:2] for name, values in full_batch.items()}
    ours, theirs = (loss(params, inputs, None, None)[0] for inputs in (part, fewer))
    for name in ("mlm", "nsp"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-5)
    part["mlm_weights"][:] = 0
    part["nsp_weights"][:] = 0
    summed = lambda p: sum(total for total, _ in loss(p, part, None, None)[0].values())  # noqa: E731
    gradients = jax.jit(jax.grad(summed))(params)
    assert all(not np.asarray(leaf).any() for leaf in jax.tree.leaves(gradients))


def test_dropout_follows_the_key(params):
    keys = (None, jax.random.key(0), jax.random.key(0))
    plain, one, again = (float(loss(params, batch(), key, None)[0]["mlm"][0]) for key in keys)
    assert plain != one == again


def test_without_pairs_neither_pooler_nor_second_head_is_needed(params):
    fewer = {"mlm": params["mlm"], "encoder": {n: part for n, part in params["encoder"].items() if n != "pooler"}}
    terms, metrics, _ = jax.eval_shape(piece_loss(FAMILY, CONFIG), fewer, batch(), None, None)
    assert (set(terms), set(metrics)) == ({"mlm"}, {"mlm_accuracy"})


@pytest.mark.long
@pytest.mark.parametrize("causal", [False, True])
def test_an_unmasked_bidirectional_encoder_sees_the_answer(causal):
    """The reason for masking: to predict next tokens, a deep bidirectional encoder just learns to look them up."""
    random, optimizer = np.random.default_rng(1), optax.adam(1e-2)
    config = BertConfig(
        vocab_size=30, hidden_size=32, num_layers=1, num_heads=2, feed_forward_size=32, dropout=0.0, max_positions=8,
        attention_dropout=0.0, causal=causal,
    )  # fmt: skip
    params = jax.jit(lambda: init_params(FAMILY, config, jax.random.key(0), ("mlm",), pooler=False))()
    loss = piece_loss(FAMILY, config)

    @jax.jit
    def step(params, state, inputs):
        def objective(params):
            terms, metrics, _ = loss(params, inputs, None, None)
            return terms["mlm"][0] / terms["mlm"][1], metrics["mlm_accuracy"]

        gradients, (right, weight) = jax.grad(objective, has_aux=True)(params)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(params, updates), state, right / weight

    state = optimizer.init(params)
    inputs = batch(rows=32, length=8, places=7)
    inputs["mlm_positions"] = np.tile(np.arange(7, dtype=np.int32), (32, 1))
    for _ in range(120):
        inputs["tokens"] = random.integers(0, 30, (32, 8)).astype(np.int32)  # nothing to learn but the answer
        inputs["mlm_targets"] = inputs["tokens"][:, 1:]
        params, state, accuracy = step(params, state, inputs)
    assert float(accuracy) < 0.15 if causal else float(accuracy) > 0.9
