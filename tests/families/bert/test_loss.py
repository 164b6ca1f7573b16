"""The pretraining losses: counted and ignored positions, and the pieces that they see."""

import functools

import jax
import numpy as np
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
    return init_params(FAMILY, CONFIG, jax.random.key(0), ("mlm", "nsp"))


def test_the_terms_are_those_of_the_logits(params):
    given = batch()
    terms, metrics, carry = loss(params, given, None, np.float32(7))
    names = ("tokens", "types", "positions", "segments")
    logits = jax.jit(functools.partial(pretraining_logits, CONFIG))(
        params,
        *(given[name] for name in names),
        mlm_positions=given["mlm_positions"],
        nsp_positions=given["nsp_positions"],
    )
    right = np.take_along_axis(np.asarray(jax.nn.log_softmax(logits.mlm)), given["mlm_targets"][..., None], -1)
    assert float(terms["mlm"][0]) == pytest.approx(-right.sum(), rel=1e-5)
    assert float(terms["mlm"][1]) == 12
    assert float(terms["nsp"][1]) == 4
    hits = (np.asarray(logits.nsp).argmax(-1) == given["nsp_targets"]).sum()
    assert float(metrics["nsp_accuracy"][0]) == hits
    assert carry == 7


def test_rows_of_one_sequence_may_be_read_by_their_lengths(params):
    given = batch()
    given["segments"][0, 7:], given["segments"][3] = 0, 0  # padding, and a row of nothing else
    given["mlm_weights"][3] = 0
    unpacked = jax.jit(piece_loss(FAMILY, CONFIG, pairs=True, packed=False))
    np.testing.assert_array_equal(
        unpacked(params, given, None, None)[0]["mlm"], loss(params, given, None, None)[0]["mlm"]
    )


def test_masked_equals_subset_and_nothing_counted_is_finite(params):
    whole, part = batch(), batch()
    part["mlm_weights"][2:] = 0
    part["nsp_weights"][2:] = 0
    part["mlm_targets"][2:] = -100
    fewer = {name: values[:2] for name, values in whole.items()}
    ours, theirs = (loss(params, given, None, None)[0] for given in (part, fewer))
    for name in ("mlm", "nsp"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-5)
    part["mlm_weights"][:] = 0
    part["nsp_weights"][:] = 0
    summed = lambda p: sum(total for total, _ in loss(p, part, None, None)[0].values())  # noqa: E731
    gradients = jax.jit(jax.grad(summed))(params)
    assert all(not np.asarray(leaf).any() for leaf in jax.tree.leaves(gradients))


def test_dropout_follows_the_key(params):
    losses = [float(loss(params, batch(), key, None)[0]["mlm"][0]) for key in (None, jax.random.key(0))]
    again = float(loss(params, batch(), jax.random.key(0), None)[0]["mlm"][0])
    assert losses[0] != losses[1] == again


def test_without_pairs_neither_pooler_nor_second_head_is_needed():
    params = init_params(FAMILY, CONFIG, jax.random.key(0), ("mlm",), pooler=False)
    terms, metrics, _ = jax.jit(piece_loss(FAMILY, CONFIG))(params, batch(), None, None)
    assert set(terms) == {"mlm"}
    assert set(metrics) == {"mlm_accuracy"}


def test_an_unmasked_bidirectional_encoder_sees_the_answer():
    """The reason for masking: to predict next tokens, a deep bidirectional encoder just learns to look them up."""
    import optax

    random = np.random.default_rng(1)
    accuracies = {}
    for causal in (False, True):
        config = BertConfig(
            vocab_size=30,
            hidden_size=32,
            num_layers=2,
            num_heads=4,
            feed_forward_size=64,
            dropout=0.0,
            attention_dropout=0.0,
            causal=causal,
            max_positions=8,
        )
        params = jax.jit(lambda config=config: init_params(FAMILY, config, jax.random.key(0), ("mlm",), pooler=False))()
        optimizer = optax.adam(3e-3)
        loss = piece_loss(FAMILY, config)

        @jax.jit
        def step(params, state, given, loss=loss, optimizer=optimizer):
            def objective(params):
                terms, metrics, _ = loss(params, given, None, None)
                return terms["mlm"][0] / terms["mlm"][1], metrics["mlm_accuracy"]

            gradients, (right, weight) = jax.grad(objective, has_aux=True)(params)
            updates, state = optimizer.update(gradients, state)
            return optax.apply_updates(params, updates), state, right / weight

        state = optimizer.init(params)
        for _ in range(300):
            given = batch(rows=32, length=8, places=7)
            given["tokens"] = random.integers(0, 30, (32, 8)).astype(np.int32)  # nothing to learn but the answer
            given["mlm_positions"] = np.tile(np.arange(7, dtype=np.int32), (32, 1))
            given["mlm_targets"] = given["tokens"][:, 1:]
            params, state, accuracy = step(params, state, given)
        accuracies[causal] = float(accuracy)
    assert accuracies[False] > 0.9
    assert accuracies[True] < 0.15
