"""The objective: batches of streams, its terms against sums by hand, both directions, the carried state."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus
from bert_elmo_jax.data.pipeline.batches import eval_batches, train_batches
from bert_elmo_jax.families.awd_lstm.config import AwdLstmConfig
from bert_elmo_jax.families.awd_lstm.model import AwdLstm, init_awd_lstm_params, score_words
from bert_elmo_jax.families.awd_lstm.objective import awd_lstm_loss, mean_square, put_rows_first
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.pretraining import build_objective

NONE = dict.fromkeys(("output_dropout", "hidden_dropout", "input_dropout", "embedding_dropout", "weight_dropout"), 0.0)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return str(toy_corpus(tmp_path_factory.mktemp("corpus"), documents=60, tokenizer="words"))


def config_of(corpus, *changes):
    config, _ = read_config("experiments/configs/awd_lstm.py:toy")
    config.update({"data": corpus, "batch_size": 4, "steps": 10, "length": 12, "spread": 2})
    config.model.update({"embedding_size": 12, "cell_size": 16})
    for change in changes:
        config.update(change)
    return config


@functools.cache
def compiled(config):
    def apply(params, words, lengths, **options):
        output = AwdLstm(config).apply({"params": params["encoder"]}, words, lengths, **options)
        return output.last, jax.nn.log_softmax(score_words(config, params, output.last)), output.state

    return jax.jit(apply)


def by_hand(config, params, batch, state):
    """Return the three terms of a batch without dropout, row by row, and the state."""
    d, options = config.direction, {} if state is None else {"state": state, "fresh": batch["fresh"]}
    last, scores, state = compiled(config)(params, batch[f"words_{d}"], batch["lengths"], **options)
    scores, last, nll, squares, changes = np.asarray(scores), np.asarray(last), [], [], []
    for row, length in enumerate(batch["lengths"]):
        nll += [-scores[row, t, batch[f"{d}_targets"][row, t]] for t in range(length)]
        squares += [last[row, :length] ** 2]
        changes += [np.diff(last[row, :length], axis=0) ** 2]
    return np.mean(nll), np.concatenate(squares).mean(), np.concatenate(changes).mean(), state


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_terms_are_sums_by_hand_and_the_state_is_carried(corpus, direction):
    config = config_of(corpus)
    config.model.direction = direction
    _, objective = build_objective(config, None)
    params = jax.tree.map(lambda x: 3 * np.asarray(x), jax.jit(objective.init)(jax.random.key(0)))
    batches = train_batches(corpus, objective.phases[0].examples, 4)
    carry, state = objective.carry(4), None
    model = AwdLstmConfig(vocab_size=params["lm"]["bias"].shape[0], **config.model)
    lengths, loss = [], jax.jit(objective.loss)
    for n in range(4):
        batch = next(batches)
        lengths.append(batch["lengths"].max())
        terms, _, carry = loss(params, batch, None, carry)
        *expected, state = by_hand(model, params, batch, state)
        assert batch["fresh"].all() == (n == 0)
        means = [float(total / weight) for total, weight in (terms[name] for name in ("lm", "activation", "change"))]
        np.testing.assert_allclose(means, expected, rtol=1e-5)
        for ours, theirs in zip(jax.tree.leaves(put_rows_first(carry)), jax.tree.leaves(state), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)
    assert batch[f"words_{direction}"].shape == (4, 16) and len(set(lengths)) > 1  # random numbers of steps


def test_held_out_text_has_plain_windows_and_one_term(corpus):
    _, objective = build_objective(config_of(corpus), None)
    batch = next(eval_batches(corpus, objective.held_out_examples, 4))
    assert batch["words_forward"].shape == (4, 12)
    params = jax.eval_shape(objective.init, jax.random.key(0))
    terms, _, _ = jax.eval_shape(objective.held_out_loss, params, batch, None, objective.carry(4))
    assert set(terms) == {"lm"}
    assert objective.figures({"lm": np.log(8.0)}) == pytest.approx({"held_out/perplexity": 8, "held_out/score": -8})
    # Sentences have no state.
    _, objective = build_objective(config_of(corpus, {"reading": "sentences"}), None)
    assert objective.carry(4) is None
    batch = next(train_batches(corpus, objective.phases[0].examples, 4))
    terms, _, after = jax.jit(objective.loss)(jax.jit(objective.init)(jax.random.key(0)), batch, None, None)
    assert after is None and np.isfinite(float(terms["lm"][0]))


def test_dropout_reaches_every_term(corpus):
    config = config_of(corpus)
    config.model.update(dict.fromkeys(NONE, 0.3))
    _, objective = build_objective(config, None)
    params = jax.jit(objective.init)(jax.random.key(0))
    batch = next(train_batches(corpus, objective.phases[0].examples, 4))
    loss, carry = jax.jit(objective.loss), objective.carry(4)
    plain, _, _ = loss(params, batch, None, carry)
    all_terms = [loss(params, batch, jax.random.key(n), carry)[0] for n in (0, 0, 1)]
    for name in ("lm", "activation", "change"):
        one, same, other = (float(terms[name][0]) for terms in all_terms)
        assert one == same != other and one != float(plain[name][0])
        assert float(all_terms[0][name][1]) == float(plain[name][1])  # weights do not depend on dropout


@pytest.mark.parametrize("options", [{"output_bias": False}, {"tie_softmax": False}])
def test_other_softmaxes_have_gradients(options):
    config = AwdLstmConfig(vocab_size=30, embedding_size=6, cell_size=8, num_layers=2, **options, **NONE)
    params = jax.jit(lambda: init_awd_lstm_params(config, jax.random.key(0), lm=True))()
    rng = np.random.default_rng(0)
    batch = {
        "words_forward": rng.integers(0, 30, (3, 5)), "forward_targets": rng.integers(0, 30, (3, 5)),
        "forward_weights": np.ones((3, 5), np.float32), "lengths": np.full(3, 5), "fresh": np.zeros(3, bool),
    }  # fmt: skip

    @jax.jit
    def loss_and_gradients(params):
        terms = lambda params: awd_lstm_loss(config)(params, batch, None, None)[0].values()  # noqa: E731
        return jax.value_and_grad(lambda params: sum(total / weight for total, weight in terms(params)))(params)

    *expected, _ = by_hand(config, params, batch, None)
    loss, gradients = loss_and_gradients(params)
    assert float(loss) == pytest.approx(sum(expected), rel=1e-5)
    assert all(np.asarray(g).any() for g in jax.tree.leaves(gradients))


def test_padding_counts_nowhere():
    total, weight = mean_square(jnp.full((2, 3, 4), 2.0), jnp.array([[True, True, False], [False] * 3]))
    assert (float(total), float(weight)) == (32.0, 8.0)
