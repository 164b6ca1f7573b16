"""The module in training: five kinds of dropout by their statistics, the state, and gradients."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.families.awd_lstm.config import AwdLstmConfig
from bert_elmo_jax.families.awd_lstm.model import AwdLstm, drop_everywhere, drop_words, init_awd_lstm_params
from bert_elmo_jax.weights.parameter_tree import flatten

NONE = {
    "output_dropout": 0.0, "hidden_dropout": 0.0, "input_dropout": 0.0, "embedding_dropout": 0.0, "weight_dropout": 0.0,
}  # fmt: skip
SIZES = {"vocab_size": 40, "embedding_size": 24, "cell_size": 32, "num_layers": 2}
WORDS = np.random.default_rng(0).integers(0, 40, (6, 9))


@functools.cache
def fresh(**sizes):
    config = AwdLstmConfig(**{**SIZES, **sizes})
    init = jax.jit(lambda: init_awd_lstm_params(config, jax.random.key(5))["encoder"])
    return jax.device_get(init())


@functools.cache
def compiled(config, trained):
    return jax.jit(functools.partial(AwdLstm(config).apply, deterministic=not trained))


def run(key=None, params=None, state=None, fresh_rows=None, **rates):
    """Return the output, with dropout if there is a key."""
    config = AwdLstmConfig(**SIZES, **{**NONE, **rates})
    options = {} if key is None else {"rngs": {"dropout": jax.random.key(key)}}
    options |= {} if state is None else {"state": state, "fresh": fresh_rows}
    return jax.device_get(compiled(config, key is not None)({"params": params or fresh()}, WORDS, **options))


def test_without_rates_training_is_evaluation():
    trained = run(0)
    assert (trained.last == run().last).all() and (trained.dropped == trained.last).all()


def test_one_mask_for_all_steps_of_a_row():
    x = np.random.default_rng(1).normal(3, 1, (7, 50, 80)).astype(np.float32)
    dropped = np.asarray(drop_everywhere(jnp.asarray(x), 0.2, jax.random.key(2)))
    mask = dropped != 0
    assert (mask == mask[:1]).all()
    assert (mask[0] != mask[0, :1]).any()  # another mask for each row
    assert mask.mean() == pytest.approx(0.8, abs=0.03)
    np.testing.assert_allclose(dropped, np.where(mask, x / np.float32(0.8), 0), rtol=1e-6)


def test_whole_words_are_dropped():
    words = np.random.default_rng(3).integers(0, 1000, (20, 60))
    dropped = np.asarray(drop_words(jnp.ones((20, 60, 4)), jnp.asarray(words), 1000, 0.1, jax.random.key(4)))
    assert (dropped == dropped[..., :1]).all() and set(np.unique(dropped)) == {0.0, np.float32(1 / 0.9)}
    of_word = {}
    for word, value in zip(words.ravel(), dropped[..., 0].ravel()):
        assert of_word.setdefault(int(word), value) == value  # wherever the word is, in all rows
    assert np.mean([value == 0 for value in of_word.values()]) == pytest.approx(0.1, abs=0.05)


def test_output_dropout_changes_the_prediction_alone():
    plain, output = run(), run(1, output_dropout=0.5)
    assert all((ours == theirs).all() for ours, theirs in zip(output.layers, plain.layers))
    mask = output.dropped != 0
    assert (mask == mask[:, :1]).all() and mask.mean() == pytest.approx(0.5, abs=0.15)
    np.testing.assert_allclose(output.dropped, np.where(mask, 2 * output.last, 0), rtol=1e-6)


def test_hidden_dropout_is_between_the_layers():
    plain, output = run(), run(1, hidden_dropout=0.5)
    assert (output.layers[1] == plain.layers[1]).all() and (output.layers[2] != plain.layers[2]).any()
    assert (output.dropped == output.last).all()


@pytest.mark.parametrize("name", ["input_dropout", "embedding_dropout"])
def test_dropout_of_the_input_leaves_the_embeddings_of_the_output(name):
    plain, output = run(), run(1, **{name: 0.5})
    assert (output.layers[0] == plain.layers[0]).all() and (output.layers[1] != plain.layers[1]).any()


def test_weight_dropout_is_of_recurrent_weights_alone():
    """The first step starts from zeros, so only the others use recurrent weights."""
    plain, output = run(), run(1, weight_dropout=0.5)
    np.testing.assert_allclose(output.layers[1][:, 0], plain.layers[1][:, 0], rtol=0, atol=1e-6)
    assert (output.layers[1][:, 1] != plain.layers[1][:, 1]).any(axis=-1).all()


def test_one_mask_of_weights_per_batch():
    """The gradient of a dropped weight is zero, over all rows and steps, and no other is."""
    config = AwdLstmConfig(**SIZES, **{**NONE, "weight_dropout": 0.25})

    def total(params, key):
        return AwdLstm(config).apply({"params": params}, WORDS, deterministic=False, rngs={"dropout": key}).last.sum()

    gradients = jax.jit(jax.grad(total))
    gradient, other = (flatten(jax.device_get(gradients(fresh(), jax.random.key(key)))) for key in (6, 7))
    shares = {name: float((g == 0).mean()) for name, g in gradient.items() if "kernel" in name}
    assert shares["layer_0/input_kernel"] == shares["layer_1/input_kernel"] == 0
    for n in range(2):
        assert shares[f"layer_{n}/state_kernel"] == pytest.approx(0.25, abs=0.03)
    first, second = (gradient[f"layer_{n}/state_kernel"][:24, :96] == 0 for n in range(2))
    assert (first != second).any()  # another mask for each layer
    assert ((other["layer_0/state_kernel"][:24, :96] == 0) != first).any()


def test_a_fresh_row_forgets_its_state():
    first = run()
    after, carried = (run(state=first.state, fresh_rows=np.array([forgets] + [False] * 5)) for forgets in (True, False))
    np.testing.assert_allclose(after.last[0], first.last[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(after.last[1:], carried.last[1:], rtol=0, atol=1e-6)
    assert (carried.last[1:] != first.last[1:]).any()


def test_fresh_parameters_are_those_of_torch():
    config = AwdLstmConfig(vocab_size=500, embedding_size=20, cell_size=100, num_layers=2, tie_softmax=False)
    params = flatten(jax.device_get(jax.jit(lambda: init_awd_lstm_params(config, jax.random.key(0), lm=True))()))
    for name in ("embeddings/word", "layer_0/input_kernel", "layer_0/state_kernel"):
        assert np.abs(params[f"encoder/{name}"]).max() == pytest.approx(0.1, rel=1e-2)
    bias = params["encoder/layer_0/bias"].reshape(4, 100)
    assert bias.mean(axis=1) == pytest.approx([0, 0, -1, 0], abs=0.05)  # `recurrence` adds 1 to the forget gate
    assert not params["lm/bias"].any() and params["lm/embedding"].shape == (500, 20)
    assert AwdLstmConfig.preset("original", vocab_size=9).layer_sizes == (1150, 1150, 400)
    assert AwdLstmConfig.preset("fastai", vocab_size=9, num_layers=1).layer_sizes == (400,)


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cell_size": 0}, "cell_size is 0; it must be a whole number, at least 1"),
        ({"vocab_size": 3.0}, "vocab_size is 3.0"),
        ({"weight_dropout": 1.0}, "weight_dropout is 1.0; a dropout rate is at least 0 and below 1"),
        ({"direction": "both"}, "direction is 'both'; it is one of forward, backward"),
        ({"tie_softmax": 1}, "tie_softmax is 1; it must be true or false"),
        ({"classifier": (50, 0)}, r"classifier is \(50, 0\); it holds widths"),
    ],
)
def test_configurations_that_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        AwdLstmConfig(**{**SIZES, **changes})
