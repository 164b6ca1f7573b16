"""The module in training: five kinds of dropout by their statistics, the state, and gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.families.awd_lstm.config import AwdLstmConfig
from bert_elmo_jax.families.awd_lstm.model import AwdLstm, drop_everywhere, drop_words, init_awd_lstm_params, zero_state
from bert_elmo_jax.weights.parameter_tree import flatten

NONE = {
    "output_dropout": 0.0, "hidden_dropout": 0.0, "input_dropout": 0.0, "embedding_dropout": 0.0, "weight_dropout": 0.0,
}  # fmt: skip
SIZES = {"vocab_size": 40, "embedding_size": 24, "cell_size": 32, "num_layers": 2}
WORDS = np.random.default_rng(0).integers(0, 40, (6, 9))


def run(key=None, params=None, words=WORDS, **rates):
    """Return the configuration, its parameters and the output, with dropout if there is a key."""
    config = AwdLstmConfig(**SIZES, **{**NONE, **rates})
    params = params or init_awd_lstm_params(config, jax.random.key(5))["encoder"]
    rngs = {} if key is None else {"dropout": jax.random.key(key)}
    output = AwdLstm(config).apply({"params": params}, words, deterministic=key is None, rngs=rngs)
    return config, params, output


def test_without_rates_training_is_evaluation():
    _, params, output = run()
    _, _, trained = run(0, params)
    assert (trained.last == output.last).all() and (trained.dropped == trained.last).all()


@pytest.mark.parametrize("rate", [0.2, 0.6])
def test_one_mask_for_all_steps_of_a_row(rate):
    x = jax.random.normal(jax.random.key(1), (7, 50, 80)) + 3
    dropped = np.asarray(drop_everywhere(x, rate, jax.random.key(2)))
    kept = dropped != 0
    assert (kept == kept[:1]).all()
    assert (kept[0] != kept[0, :1]).any()  # another mask for each row
    assert kept.mean() == pytest.approx(1 - rate, abs=0.03)
    np.testing.assert_allclose(dropped, np.where(kept, np.asarray(x) / (1 - rate), 0), rtol=1e-6)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_whole_words_are_dropped(rate):
    words = jnp.asarray(np.random.default_rng(3).integers(0, 1000, (20, 60)))
    dropped = np.asarray(drop_words(jnp.ones((20, 60, 4)), words, 1000, rate, jax.random.key(4)))
    assert (dropped == dropped[..., :1]).all() and set(np.unique(dropped)) == {0.0, np.float32(1 / (1 - rate))}
    of_word = {}
    for word, value in zip(np.asarray(words).ravel(), dropped[..., 0].ravel()):
        assert of_word.setdefault(int(word), value) == value  # wherever the word is, in all rows
    assert np.mean([value == 0 for value in of_word.values()]) == pytest.approx(rate, abs=0.05)


def test_output_dropout_changes_the_prediction_alone():
    _, params, plain = run()
    _, _, output = run(1, params, output_dropout=0.5)
    assert all((ours == theirs).all() for ours, theirs in zip(output.layers, plain.layers))
    kept = np.asarray(output.dropped) != 0
    assert (kept == kept[:, :1]).all() and kept.mean() == pytest.approx(0.5, abs=0.15)
    np.testing.assert_allclose(output.dropped, np.where(kept, 2 * np.asarray(output.last), 0), rtol=1e-6)


def test_hidden_dropout_is_between_the_layers():
    _, params, plain = run()
    _, _, output = run(1, params, hidden_dropout=0.5)
    assert (output.layers[1] == plain.layers[1]).all() and (output.layers[2] != plain.layers[2]).any()
    assert (output.dropped == output.last).all()


@pytest.mark.parametrize("name", ["input_dropout", "embedding_dropout"])
def test_dropout_of_the_input_leaves_the_embeddings_of_the_output(name):
    _, params, plain = run()
    _, _, output = run(1, params, **{name: 0.5})
    assert (output.layers[0] == plain.layers[0]).all() and (output.layers[1] != plain.layers[1]).any()


def test_weight_dropout_is_of_recurrent_weights_alone():
    """The first step starts from zeros, so only the others use recurrent weights."""
    _, params, plain = run()
    _, _, output = run(1, params, weight_dropout=0.5)
    np.testing.assert_allclose(output.layers[1][:, 0], plain.layers[1][:, 0], rtol=0, atol=1e-6)
    assert (output.layers[1][:, 1] != plain.layers[1][:, 1]).any(axis=-1).all()


@pytest.mark.parametrize("rate", [0.25, 0.5])
def test_one_mask_of_weights_per_batch(rate):
    """The gradient of a dropped weight is zero, over all rows and steps, and no other is."""
    config = AwdLstmConfig(**SIZES, **{**NONE, "weight_dropout": rate})
    params = init_awd_lstm_params(config, jax.random.key(5))["encoder"]

    def total(params, key):
        return AwdLstm(config).apply({"params": params}, WORDS, deterministic=False, rngs={"dropout": key}).last.sum()

    gradient = flatten(jax.grad(total)(params, jax.random.key(6)))
    shares = {name: float((np.asarray(g) == 0).mean()) for name, g in gradient.items() if "kernel" in name}
    assert shares["layer_0/input_kernel"] == shares["layer_1/input_kernel"] == 0
    for n in range(2):
        assert shares[f"layer_{n}/state_kernel"] == pytest.approx(rate, abs=0.03)
    masks = [np.asarray(gradient[f"layer_{n}/state_kernel"])[:24, :96] == 0 for n in range(2)]
    assert (masks[0] != masks[1]).any()  # another mask for each layer
    other = np.asarray(flatten(jax.grad(total)(params, jax.random.key(7)))["layer_0/state_kernel"]) == 0
    assert (other[:24, :96] != masks[0]).any()


def test_the_mean_over_masks_is_the_output_without_dropout():
    """With small recurrent weights, inverted dropout keeps the mean to first order."""
    _, params, plain = run()
    params = jax.tree.map(lambda x: 0.1 * x, params)
    _, _, plain = run(params=params)
    module = AwdLstm(AwdLstmConfig(**SIZES, **{**NONE, "input_dropout": 0.3}))

    def first_layer(key):
        return module.apply({"params": params}, WORDS, deterministic=False, rngs={"dropout": key}).layers[1]

    found = jax.jit(jax.vmap(first_layer))(jax.random.split(jax.random.key(0), 200)).mean(axis=0)
    np.testing.assert_allclose(found, plain.layers[1], rtol=0, atol=5e-3)


def test_a_fresh_row_forgets_its_state():
    config, params, first = run()
    module = AwdLstm(config)
    after = module.apply({"params": params}, WORDS, state=first.state, fresh=np.array([True] + [False] * 5))
    carried = module.apply({"params": params}, WORDS, state=first.state)
    np.testing.assert_allclose(after.last[0], first.last[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(after.last[1:], carried.last[1:], rtol=0, atol=1e-6)
    assert (carried.last[1:] != first.last[1:]).any()


def test_a_state_of_another_shape():
    config, params, _ = run()
    with pytest.raises(ValueError, match=r"the state's cell has the shapes .* a batch of 6 rows in this model needs"):
        AwdLstm(config).apply({"params": params}, WORDS, state=zero_state(config, 5))


def test_gradients_are_finite_differences():
    config = AwdLstmConfig(**{**SIZES, "embedding_size": 3, "cell_size": 4}, **NONE)
    params = init_awd_lstm_params(config, jax.random.key(5))["encoder"]
    weight = np.random.default_rng(4).normal(size=(6, 9, 3)).astype(np.float32)

    @jax.jit
    def value(params):
        return (AwdLstm(config).apply({"params": params}, WORDS).last * weight).sum()

    rng = np.random.default_rng(6)
    way = jax.tree.map(lambda x: rng.normal(size=x.shape).astype(np.float32), params)
    grads = jax.jit(jax.grad(value))(params)
    slope = sum(float((a * b).sum()) for a, b in zip(jax.tree.leaves(grads), jax.tree.leaves(way)))
    step = 1e-2
    ahead, back = (value(jax.tree.map(lambda x, d, size=size: x + size * d, params, way)) for size in (step, -step))
    assert slope == pytest.approx(float(ahead - back) / (2 * step), rel=5e-3)


def test_fresh_parameters_are_those_of_torch():
    config = AwdLstmConfig(vocab_size=500, embedding_size=20, cell_size=100, num_layers=2, tie_softmax=False)
    params = flatten(init_awd_lstm_params(config, jax.random.key(0), lm=True))
    assert np.abs(params["encoder/embeddings/word"]).max() == pytest.approx(0.1, rel=1e-2)
    for name in ("input_kernel", "state_kernel"):
        assert np.abs(params[f"encoder/layer_0/{name}"]).max() == pytest.approx(0.1, rel=1e-2)
    bias = np.asarray(params["encoder/layer_0/bias"]).reshape(4, 100)
    assert bias.mean(axis=1) == pytest.approx([0, 0, -1, 0], abs=0.05)  # `recurrence` adds 1 to the forget gate
    assert not np.asarray(params["lm/bias"]).any() and params["lm/embedding"].shape == (500, 20)


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


def test_example_of_named_sizes():
    assert AwdLstmConfig.preset("original", vocab_size=9).layer_sizes == (1150, 1150, 400)
    assert AwdLstmConfig.preset("fastai", vocab_size=9, num_layers=1).layer_sizes == (400,)
