"""The reader as a function of arrays: against an oracle, with padding, and trained."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bert_elmo_jax import train
from bert_elmo_jax.data.tasks import Answer, Question
from bert_elmo_jax.data.tasks.answers import answers_of_words
from bert_elmo_jax.data.tasks.question_rows import collate_questions, reading_rows, training_rows
from bert_elmo_jax.networks import (
    BidafConfig,
    answer_scores,
    bidaf_loss,
    init_network,
    network_coefficients,
    network_shapes,
)
from bert_elmo_jax.networks.bidaf import scores_of
from bert_elmo_jax.text import Lexicon

from .bidaf_oracle import answer

LAYERS, WIDTH, WORDS = 2, 3, 7
CONFIG = BidafConfig(
    num_words=WORDS, word_size=4, lstm_size=3, unanswerable=True, encoder_layers=LAYERS, encoder_width=WIDTH,
    characters=True,
)  # fmt: skip
OTHER = BidafConfig(
    num_words=WORDS, word_size=4, lstm_size=3, encoder_layers=LAYERS, encoder_width=WIDTH, places="output"
)


# Compiled once: that is most of what these tests cost.
@functools.cache
def compiled(config):
    compute = jax.jit(functools.partial(answer_scores, config))
    return lambda params, batch: jax.device_get(compute(params, batch))


def drawn_params(config, seed=0):
    """Draw all parameters, even those with an initial value of zero."""
    draw = np.random.default_rng(seed)
    shapes = network_shapes(config)
    return jax.tree.map(lambda leaf: draw.normal(0, 0.7, leaf.shape).astype(np.float32), shapes)


def batch_of(config, lengths=((5, 3), (1, 2), (4, 1), (0, 0)), widths=(6, 4), seed=0):
    draw = np.random.default_rng(seed)
    batch = {}
    for name, width, long in zip(("", "question_"), widths, zip(*lengths)):
        rows = len(long)
        batch[f"{name}words"] = draw.integers(0, config.num_words + 1, (rows, width)).astype(np.int32)
        batch[f"{name}lengths"] = np.array(long, np.int32)
        if config.characters:
            batch[f"{name}characters"] = draw.integers(1, 262, (rows, width, 6)).astype(np.int32)
        if config.encoder_layers:
            size = (rows, config.encoder_layers, width, config.encoder_width)
            batch[f"{name}layers"] = draw.normal(size=size).astype(np.float32)
        behind = np.arange(width)[None] >= np.array(long)[:, None]
        for part, value in (("words", 0), ("characters", 0), ("layers", np.nan)):
            if f"{name}{part}" in batch:
                array = batch[f"{name}{part}"]
                (array.swapaxes(1, 2) if part == "layers" else array)[behind] = value
    spans = [[[1, 3], [4, 4]], [[0, 0], [-1, -1]], [[-1, -1]] * 2, [[-1, -1]] * 2]
    batch["answers"] = np.array(spans, np.int32)[: len(lengths)]
    batch["weights"] = (batch["lengths"] > 0).astype(np.float32)
    return batch


def text_of(batch, row, name=""):
    length = batch[f"{name}lengths"][row]
    text = {"words": batch[f"{name}words"][row, :length]}
    if f"{name}characters" in batch:
        text["characters"] = batch[f"{name}characters"][row, :length]
    if f"{name}layers" in batch:
        text["layers"] = batch[f"{name}layers"][row, :, :length].astype(np.float64)
    return text


@pytest.mark.parametrize("config", [CONFIG, OTHER])
def test_the_whole_network_against_the_oracle(config):
    """Rows have NaN after their end; some have one word, or a question of one word."""
    params, batch = drawn_params(config), batch_of(config)
    scores = compiled(config)(params, batch)
    wide = jax.tree.map(lambda leaf: leaf.astype(np.float64), params)
    places = config.at if config.encoder_layers else ()
    for row, length in enumerate(batch["lengths"][:3]):
        texts = text_of(batch, row), text_of(batch, row, "question_")
        start, end, none = answer(*texts, wide, places, config.unanswerable)
        np.testing.assert_allclose(scores.start[row, :length], start, atol=1e-5)
        np.testing.assert_allclose(scores.end[row, :length], end, atol=1e-5)
        assert float(scores.none[row]) == pytest.approx(none, abs=1e-5)
        assert (np.asarray(scores.start)[row, length:] < -1e8).all()
        assert (np.asarray(scores.end)[row, length:] < -1e8).all()


def test_company_and_padding_change_nothing():
    params, batch = drawn_params(CONFIG), batch_of(CONFIG)
    score = functools.partial(compiled(CONFIG), params)
    scores = score(batch)
    turned = score({name: array[::-1] for name, array in batch.items()})
    for side, other in zip(scores, turned):
        np.testing.assert_allclose(side, other[::-1], atol=1e-6, rtol=1e-6)
    wide = batch_of(CONFIG, lengths=((5, 3),), widths=(11, 9))
    for name in ("", "question_"):
        for part in ("words", "characters"):
            size = batch[name + part].shape[1]
            wide[name + part][:, :size] = batch[name + part][:1]
        wide[f"{name}layers"][:, :, :size] = batch[f"{name}layers"][:1]
    single_row = score(wide)
    np.testing.assert_allclose(single_row.start[0, :6], scores.start[0], atol=1e-6, rtol=1e-6)
    np.testing.assert_allclose(single_row.end[0, :6], scores.end[0], atol=1e-6, rtol=1e-6)
    np.testing.assert_allclose(single_row.none[0], scores.none[0], atol=1e-6, rtol=1e-6)


def test_every_parameter_learns_and_nothing_behind_an_end_does():
    config = dataclasses.replace(CONFIG, mix_l2=0.5)
    params, batch = drawn_params(config), batch_of(config)
    batch["words"][0, :5], batch["question_words"][0, :3] = [0, 1, 2, 3, 4], [5, 6, 7]

    @jax.jit
    def learning(params, batch):
        def total(params):
            terms, _, _ = bidaf_loss(config)(params, batch, None, None)
            return sum(value for value, _ in terms.values()), terms

        return jax.value_and_grad(total, has_aux=True)(params)

    (_, terms), gradient = learning(params, batch)
    assert set(terms) == set(network_coefficients(config))
    assert float(terms["answer"][1]) == 3
    weights = sum(float(np.square(mix["weights"]).sum()) for mix in params["mix"].values())
    assert float(terms["mix_l2"][0]) == pytest.approx(0.5 * weights, rel=1e-5)
    for path, leaf in jax.tree_util.tree_leaves_with_path(gradient):
        assert np.isfinite(leaf).all(), path
        assert np.abs(leaf).max() > 1e-7, path
    quiet = {name: np.nan_to_num(array) for name, array in batch.items()}
    for one, other in zip(jax.tree.leaves(gradient), jax.tree.leaves(learning(params, quiet)[1])):
        np.testing.assert_array_equal(one, other)


def test_where_all_questions_have_answers_there_is_no_score_of_none():
    params = drawn_params(OTHER)
    assert not any(name.startswith("none") for name in params)
    bare = dataclasses.replace(OTHER, encoder_layers=0, encoder_width=0)
    assert "mix" not in network_shapes(bare)
    assert set(network_coefficients(bare)) == {"answer"}


def test_an_encoder_that_is_trained_along():
    """It reads both texts, each with its own words; the scores equal the ones from given layers."""
    batch, params = batch_of(OTHER), drawn_params(OTHER)
    frozen = compiled(OTHER)(params, batch)
    layers = {name: np.nan_to_num(batch.pop(f"{name}layers")) for name in ("", "question_")}

    def encode(params, batch, key):
        name = "question_" if batch["words"].shape[1] == 4 else ""
        return params["scale"] * jnp.moveaxis(jnp.asarray(layers[name]), 1, 0)

    score = jax.jit(lambda params: answer_scores(dataclasses.replace(OTHER, tuned=True), params, batch, encode))
    one, two = (jax.device_get(score(params | {"encoder": {"scale": np.float32(scale)}})) for scale in (1, 2))
    np.testing.assert_allclose(one.start, frozen.start, atol=1e-6)
    np.testing.assert_allclose(one.end, frozen.end, atol=1e-6)
    assert np.abs(two.start - one.start)[0, :5].min() > 1e-4


def test_dropout_is_drawn_from_the_key():
    params, batch = drawn_params(OTHER), batch_of(OTHER)
    score = jax.jit(lambda key: scores_of(OTHER, params, batch, key)[0].start[0, :5])
    first, again, other = score(jax.random.key(0)), score(jax.random.key(0)), score(jax.random.key(1))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


QUESTIONS = [
    ("배는 어디에 있나 ?", "배는 강가에 있고, 은행은 시내에 있다.", "강가에"),
    ("은행은 어디에 있나 ?", "배는 강가에 있고, 은행은 시내에 있다.", "시내에"),
    ("Where is the ship ?", "The old ship is at sea ; the bank is in town .", "at sea"),
    ("Where is the bank ?", "The old ship is at sea ; the bank is in town .", "in town"),
    ("누가 배를 샀나 ?", "지난 봄에 김씨가 배를\n샀다 😀", "김씨가"),
    ("언제 배를 샀나 ?", "지난 봄에 김씨가 배를\n샀다 😀", "지난 봄에"),
    ("What did Kim buy ?", "Kim bought a café (a small one) in 1999", "a café"),
    ("When did Kim buy it ?", "Kim bought a café (a small one) in 1999", "1999"),
    ("Who sold it ?", "Kim bought a café (a small one) in 1999", None),
    ("왜 샀나 ?", "지난 봄에 김씨가 배를\n샀다 😀", None),
]


@pytest.mark.long
def test_it_learns_ten_questions():
    """All answers are right, in Korean and English, with the span as written; two have none."""
    examples = [
        Question(str(n), text, context, () if right is None else (Answer(right, context.index(right)),), "train", n)
        for n, (text, context, right) in enumerate(QUESTIONS)
    ]
    lexicon = Lexicon([], "random", width=16, scale=1.0)
    rows, _, inexact, _ = training_rows(examples, lexicon)
    assert inexact == 0
    config = BidafConfig(num_words=0, word_size=16, lstm_size=8, unanswerable=True, dropout=0.0)
    params = init_network(config, jax.random.key(0), *lexicon.table())
    batch = jax.tree.map(jnp.asarray, collate_questions(rows, len(rows), lexicon))
    method = optax.adam(0.03)
    step = jax.jit(train.make_step(bidaf_loss(config), method, network_coefficients(config)))
    state = train.new_state(params, method, jax.random.key(1))
    for _ in range(60):
        state, metrics = step(state, batch)
    assert float(metrics["loss"]) < 0.1
    read = reading_rows(examples, lexicon)
    inputs = collate_questions(read, len(read), lexicon, targets=False)
    scores = jax.device_get(jax.jit(lambda batch: answer_scores(config, state.params, batch))(inputs))
    for question, prediction in zip(examples, answers_of_words(examples, read, list(zip(*scores)), null_threshold=0.0)):
        expected = question.answers[0].text if question.answers else ""
        assert prediction.answer.text == expected, question.text
        if expected:
            assert question.context[prediction.answer.start : prediction.answer.end] == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"places": "between"}, "places='between': use input, output, or several of them"),
        ({"lstm_size": 0}, "a reader's lstm_size is 0; it must be at least 1"),
        ({"dropout": 1.0}, "dropout=1.0: a rate must be at least 0 and below 1"),
        ({"encoder_width": 0}, "set both or neither"),
    ],
)
def test_impossible_settings_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONFIG, **changes)


def test_layers_and_vectors_of_something_else():
    params, batch = drawn_params(CONFIG), batch_of(CONFIG)
    wrong = {name: array[..., :2] if name.endswith("layers") else array for name, array in batch.items()}
    with pytest.raises(ValueError, match="layers of 2 x 2 numbers were given to a reader made for 2 x 3"):
        jax.eval_shape(lambda: answer_scores(CONFIG, params, wrong))
    with pytest.raises(ValueError, match="word vectors of shape"):
        init_network(CONFIG, jax.random.key(0), np.zeros((1, 4), np.float32), np.zeros((2, 4), np.float32))
