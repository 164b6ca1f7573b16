"""Properties of an ELMo with any weights: every detail, no peeking, state, padding, types, devices."""

import dataclasses
import functools
import runpy
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.model import Elmo, State, elmo_shapes, init_elmo_params, reverse, zero_state
from bert_elmo_jax.text.characters import boundary_characters, character_table

pytestmark = pytest.mark.usefixtures("strict_dtypes")
ORACLE = runpy.run_path(str(Path(__file__).with_name("elmo_oracle.py")))
CONFIG = ElmoConfig(
    char_embedding_size=4, max_characters=10, filters=((1, 3), (2, 4), (3, 5)), num_highways=1, cell_size=10,
    projection_size=6, cell_clip=1.0, proj_clip=0.6,
)  # fmt: skip
WORDS = dataclasses.replace(CONFIG, input="words", vocab_size=9)
SENTENCES = [
    ["the", "bank", "of", "the", "river"], ["나는", "배를", "탔다"], ["a"],
    ["the", "bank", "was", "robbed", "in", "the", "배"],
]  # fmt: skip


def replace(**changes):
    return dataclasses.replace(CONFIG, **changes)


@functools.cache
def params(config=CONFIG):
    """Return weights so large that clips act and every detail shows."""
    drawn = jax.eval_shape(functools.partial(init_elmo_params, config), jax.random.key(0))["encoder"]
    random = np.random.default_rng(0)
    return jax.tree.map(lambda x: random.normal(0, 0.6, x.shape).astype(np.float32), drawn)


def exactly(tree):
    return jax.tree.map(lambda x: np.asarray(x, np.float64), tree)


@functools.cache
def compiled(config, deterministic=True):
    """Return a compiled model whose outputs are arrays of numpy, so that no part of a comparison is compiled."""
    apply = jax.jit(functools.partial(Elmo(config).apply, deterministic=deterministic))
    return lambda *inputs, **options: jax.device_get(apply(*inputs, **options))


def batch(sentences, width=None, order=None, cut=None, also=(), maximum=CONFIG.max_characters):
    """Return a batch: words as places in a table of distinct words, lengths, and the table."""
    vocabulary = sorted({word for sentence in sentences for word in sentence} | set(also))
    vocabulary = vocabulary if order is None else [vocabulary[i] for i in order(len(vocabulary))]
    table = np.concatenate([boundary_characters(maximum), character_table(vocabulary, maximum)])[:, :cut]
    width = max(len(sentence) for sentence in sentences) + 2 if width is None else width
    words = np.zeros((len(sentences), width), np.int32)
    for row, sentence in enumerate(sentences):
        words[row, : len(sentence) + 2] = [0, *(vocabulary.index(word) + 2 for word in sentence), 1]
    return words, np.array([len(sentence) + 2 for sentence in sentences], np.int32), table[None]


def encode(sentences=SENTENCES, config=CONFIG, tree=None, **options):
    inputs = {name: options.pop(name) for name in ("state", "fresh") if name in options}
    words, lengths, characters = batch(sentences, **options)
    return compiled(config)({"params": tree or params(config)}, words, lengths, characters=characters, **inputs)


def close(a, b, tolerance=1e-6):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6, atol=tolerance), a, b)


def assert_rows(layers, expected, tolerance=1e-5):
    for row, right in enumerate(expected):
        np.testing.assert_allclose(layers[:, row, : right.shape[1]], right, atol=tolerance)
        assert not np.asarray(layers[:, row, right.shape[1] :]).any()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_layers": 1, "proj_clip": None},
        {"num_layers": 3, "cell_clip": None},
        {"skip_connections": False, "cell_clip": None, "proj_clip": None, "num_highways": 0},
        {"projection": False, "cell_size": 6},
        {"token_projection": False, "projection_size": 12, "char_activation": "tanh", "num_highways": 2},
    ],
    ids=str,
)
def test_any_model_against_the_oracle(changes):
    config = replace(**changes)
    expected, states = ORACLE["encode"](exactly(params(config)), config, SENTENCES)
    output = encode(config=config)
    assert_rows(np.asarray(output.layers), expected)
    for row, directions in enumerate(states):
        for d, layers in enumerate(directions):
            for n, (cell, hidden) in enumerate(layers):
                np.testing.assert_allclose(output.state.cell[d, n, row], cell, atol=1e-5)
                np.testing.assert_allclose(output.state.hidden[d, n, row], hidden, atol=1e-5)


def test_words_as_input_against_the_oracle():
    sentences = [[1, 5, 5, 7, 2], [1, 2], [1, 8, 2]]
    words = np.array([row + [0] * (5 - len(row)) for row in sentences], np.int32)
    expected, _ = ORACLE["encode"](exactly(params(WORDS)), WORDS, sentences)
    output = compiled(WORDS)({"params": params(WORDS)}, words, np.array([5, 2, 3], np.int32))
    assert_rows(np.asarray(output.layers), expected)


@pytest.mark.parametrize(
    "mutation",
    [
        {"forget_bias": 0.0}, {"gate_order": "ifjo"}, {"gate_order": "ijof"}, {"id_offset": 0},
        {"padding_is_zero": True},
        {"no_proj_clip": True}, {"no_cell_clip": True}, {"no_skip": True}, {"skip_on_first": True},
        {"skip_in_state": True}, {"clip_after_skip": True}, {"no_carry_flip": True}, {"h_before_x": True},
        {"shared_directions": True}, {"reverse_whole_row": True},
    ],
    ids=str,
)  # fmt: skip
def test_each_detail_shows(mutation):
    """With one wrong detail the oracle is far from the model, so the tests above would find it in the model, too."""
    broken, _ = ORACLE["encode"](exactly(params()), CONFIG, SENTENCES, broken=ORACLE["Broken"](**mutation))
    layers = np.asarray(encode().layers)
    furthest = max(np.abs(layers[:, row, : wrong.shape[1]] - wrong).max() for row, wrong in enumerate(broken))
    assert furthest > 0.03


def test_the_state_is_carried_on_only_where_it_is_given():
    again = encode()
    close(encode(), again, 0)
    expected, states = ORACLE["encode"](exactly(params()), CONFIG, SENTENCES)
    expected, _ = ORACLE["encode"](exactly(params()), CONFIG, SENTENCES[::-1], states)
    carried = encode(SENTENCES[::-1], state=again.state)
    assert_rows(np.asarray(carried.layers), expected)
    reset = encode(SENTENCES[::-1])
    assert np.abs(carried.layers - reset.layers).max() > 0.1


def test_fresh_rows_forget_and_the_others_do_not():
    state = encode().state
    fresh = np.array([True, False, False, True])
    mixed, carried, forgot = encode(state=state, fresh=fresh), encode(state=state), encode()
    close(mixed.layers[:, fresh], forgot.layers[:, fresh])
    close(mixed.layers[:, ~fresh], carried.layers[:, ~fresh])


@pytest.mark.parametrize("changes", [{"num_layers": 1, "proj_clip": None}, {"num_layers": 3, "cell_clip": None}])
def test_no_direction_peeks_even_by_a_bit(changes):
    config = replace(**changes)
    p, everything = config.width, [word for sentence in SENTENCES for word in sentence]
    for place, word in [(1, "배"), (3, "a"), (5, "탔다")]:  # in the first row; place 0 is the mark of its begin
        changed = [[*SENTENCES[0][: place - 1], word, *SENTENCES[0][place:]], *SENTENCES[1:]]
        one, other = (np.asarray(encode(rows, config, also=everything).layers) for rows in (SENTENCES, changed))
        for n in range(1, config.num_layers + 1):
            np.testing.assert_array_equal(one[n, 0, :place, :p], other[n, 0, :place, :p])
            np.testing.assert_array_equal(one[n, 0, place + 1 :, p:], other[n, 0, place + 1 :, p:])
            assert (one[n, 0, place:7, :p] != other[n, 0, place:7, :p]).any(-1).all()
            assert (one[n, 0, : place + 1, p:] != other[n, 0, : place + 1, p:]).any(-1).all()
        np.testing.assert_array_equal(one[:, 1:], other[:, 1:])


def test_padding_cuts_order_and_company_change_nothing():
    reference = encode()
    width = reference.layers.shape[2]
    for options in ({"width": 16}, {"order": lambda n: np.random.default_rng(1).permutation(n)}, {"cut": 9}):
        other = encode(**options)
        close(other.layers[:, :, :width], reference.layers)
        assert not np.asarray(other.layers[:, :, width:]).any()
        close(other.state, reference.state)
    shuffled = encode([SENTENCES[i] for i in (2, 0, 3, 1)])
    close(shuffled.layers, reference.layers[:, np.array([2, 0, 3, 1])])
    single_row = encode(SENTENCES[:1])
    close(single_row.layers[:, 0], reference.layers[:, 0, : len(SENTENCES[0]) + 2])
    close(jax.tree.map(lambda x: x[:, :, 0], single_row.state), jax.tree.map(lambda x: x[:, :, 0], reference.state))


@functools.cache
def gradients():
    """Return a compiled function that gives the gradient of a sum over all layers, and the output."""

    def total(tree, words, lengths, characters, state):
        output = Elmo(CONFIG).apply({"params": tree}, words, lengths, characters=characters, state=state)
        return jnp.square(output.layers).sum(), output

    return jax.jit(jax.grad(total, has_aux=True))


def test_padding_words_change_nothing():
    words, lengths, characters = batch(SENTENCES)
    padding = np.arange(words.shape[1])[None, :] >= lengths[:, None]
    spoilt = np.where(padding, 10_000, words).astype(np.int32)  # not even a word
    state = zero_state(CONFIG, 4)
    one, other = (jax.device_get(gradients()(params(), w, lengths, characters, state)) for w in (words, spoilt))
    close(one, other)


def test_a_row_of_no_words_keeps_its_state():
    words, lengths, characters = batch(SENTENCES)
    random = np.random.default_rng(3)
    state = jax.tree.map(lambda x: random.normal(0, 1, x.shape).astype(np.float32), zero_state(CONFIG, 4))
    gradient, output = gradients()(params(), words, lengths * np.array([1, 0, 1, 0], np.int32), characters, state)
    assert not np.asarray(output.layers)[:, [1, 3]].any() and np.asarray(output.layers)[:, [0, 2]].any()
    close(*(jax.tree.map(lambda x: np.asarray(x)[:, :, [1, 3]], part) for part in (output.state, state)), 0)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(gradient))


def test_a_word_outside_the_table_is_nan():
    words, lengths, characters = batch(SENTENCES)
    words[0, 2] = 10_000
    layers = compiled(CONFIG)({"params": params()}, words, lengths, characters=characters).layers
    assert np.isnan(layers[:, 0, 2]).all() and np.isfinite(layers[:, 1:]).all()


def test_tables_of_the_parts_of_a_batch_and_ready_vectors():
    """Two shards with tables padded to one size equal one shard; so does a table of precomputed vectors."""
    reference = encode()
    halves = [batch(half, width=9) for half in (SENTENCES[:2], SENTENCES[2:])]
    most = max(table.shape[1] for *_, table in halves)
    characters = np.zeros((2, most, CONFIG.max_characters), np.int32)
    for part, (*_, table) in enumerate(halves):
        characters[part, : table.shape[1]] = table[0]
    words, lengths = (np.concatenate([half[i] for half in halves]) for i in (0, 1))
    run = functools.partial(compiled(CONFIG), {"params": params()})
    shards = run(words, lengths, characters=characters)
    close(shards.layers, reference.layers)

    (first, _), vectors = batch(SENTENCES)[:2], reference.token
    table = np.zeros((1, first.max() + 1, CONFIG.width), np.float32)
    table[0, first] = vectors
    cached = run(first, batch(SENTENCES)[1], tokens=table)
    close(cached.layers, reference.layers)


def turn(array, lengths):
    return np.asarray(reverse(jnp.asarray(array), lengths))


def test_each_direction_reads_its_own_words_where_they_are_given():
    words, lengths, characters = batch(SENTENCES)
    both = encode()
    backward = turn(words, lengths)
    output = compiled(CONFIG)({"params": params()}, words, lengths, characters=characters, words_backward=backward)
    assert output.layers is None and output.last is None
    close((output.forward, output.backward, output.state), (both.forward, both.backward, both.state))
    p = CONFIG.width
    close(both.last[..., :p], both.forward)
    close(both.last[..., p:], turn(both.backward, lengths))
    other = compiled(CONFIG)({"params": params()}, words, lengths, characters=characters, words_backward=words)
    close(other.forward, both.forward, 0)
    assert np.abs(other.backward - both.backward).max() > 0.1


def test_windows_of_a_stream_are_one_text():
    words, _, characters = batch(SENTENCES)
    full = np.full(4, words.shape[1], np.int32)
    run = functools.partial(compiled(CONFIG), {"params": params()}, characters=characters)
    full_text = run(words, full, words_backward=words)
    first = run(words[:, :4], np.full(4, 4, np.int32), words_backward=words[:, :4])
    second_window = run(words[:, 4:], full - 4, words_backward=words[:, 4:], state=first.state)
    close(np.concatenate([first.backward, second_window.backward], axis=1), full_text.backward)
    close(second_window.state, full_text.state)


def loss(tree, words, lengths, characters, config=CONFIG):
    output = Elmo(config).apply({"params": tree}, words, lengths, characters=characters)
    return jnp.square(output.layers.astype(jnp.float32)).sum()


@pytest.mark.devices
def test_eight_devices_equal_one():
    sentences = [SENTENCES[i % 4][i // 4 :] or ["a"] for i in range(16)]
    words, lengths, _ = batch(sentences)
    tables = [batch(sentences[2 * n : 2 * n + 2], width=words.shape[1]) for n in range(8)]
    characters = np.zeros((8, max(t.shape[1] for *_, t in tables), CONFIG.max_characters), np.int32)
    for n, (w, _, table) in enumerate(tables):
        words[2 * n : 2 * n + 2], characters[n, : table.shape[1]] = w, table[0]
    step = jax.jit(jax.value_and_grad(loss))
    single_device = step(params(), words, lengths, characters)
    mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    rows, everywhere = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("data",), ()))
    spread = step(
        jax.device_put(params(), everywhere), *(jax.device_put(x, rows) for x in (words, lengths, characters))
    )
    np.testing.assert_allclose(single_device[0], spread[0], rtol=1e-5)
    largest = max(np.abs(g).max() for g in jax.tree.leaves(single_device[1]))
    close(single_device[1], spread[1], 1e-5 * largest)


def test_bfloat16_is_near_and_leaves_parameters_and_state_in_float32():
    small = jax.tree.map(lambda x: x * np.float32(0.5), params())
    exact, near = encode(tree=small), encode(tree=small, config=replace(dtype="bfloat16"))
    assert near.layers.dtype == jnp.bfloat16
    assert {x.dtype for x in jax.tree.leaves(near.state)} == {jnp.dtype("float32")}
    difference = np.abs(near.layers.astype(np.float32) - exact.layers)
    assert difference.max() < 0.05 * np.abs(exact.layers).max()
    gradient = jax.jit(jax.grad(functools.partial(loss, config=replace(dtype="bfloat16"))))(small, *batch(SENTENCES))
    assert {x.dtype for x in jax.tree.leaves(gradient)} == {jnp.dtype("float32")}


def train(config, tree, key, **inputs):
    words, lengths, characters = batch(SENTENCES)
    return compiled(config, deterministic=False)(
        {"params": tree}, words, lengths, characters=characters, rngs={"dropout": key}, **inputs
    )


def test_dropout_falls_on_each_layer_s_input_and_on_the_top_and_the_skip_adds_the_dropped_input():
    config = replace(dropout=0.4)
    tree = dict(params(config))
    # A second layer that says nothing: its output is what its input was, after dropout.
    tree["forward"] = tree["forward"] | {"layer_1": jax.tree.map(np.zeros_like, tree["forward"]["layer_1"])}
    outputs = [train(config, tree, jax.random.key(n)) for n in range(40)]
    p = config.width
    first = np.stack([o.layers[1, 0, :7, :p] for o in outputs])
    top = np.stack([o.layers[2, 0, :7, :p] for o in outputs])
    mask = top != 0
    assert abs(mask.mean() - 0.36) < 0.03  # dropped once on the way in, once on the way out
    np.testing.assert_allclose(top[mask], (first / 0.36)[mask], rtol=1e-5)
    assert np.ptp(first, axis=0).max() > 0.1  # the first layer's input was dropped too
    assert not np.ptp(np.stack([o.token for o in outputs]), axis=0).any()


def test_dropout_depends_on_its_key_alone():
    config = replace(dropout=0.4)
    one, same, other = (train(config, params(), jax.random.key(n)) for n in (1, 1, 2))
    close(one, same, 0)
    assert np.abs(one.forward - other.forward).max() > 0.1
    assert (one.forward != turn(one.backward, batch(SENTENCES)[1])).any()


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((3, 2, 5), "2 rows cannot be split evenly among 3 tables"),
        ((1, 2, 11), "words have 11 characters, expected at least 1 and at most"),
    ],
)
def test_characters_that_do_not_fit(shape, message):
    words, lengths = np.zeros((2, 3), np.int32), np.full(2, 3, np.int32)
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(
            lambda: Elmo(CONFIG).apply({"params": params()}, words, lengths, characters=np.ones(shape, np.int32))
        )


def test_parameters_start_as_the_original_s():
    config = ElmoConfig(cell_size=64, projection_size=32, filters=((1, 64),), num_highways=0, vocab_size=500)
    init = jax.jit(functools.partial(init_elmo_params, config), static_argnames="lm")
    tree = jax.tree.map(np.asarray, init(jax.random.key(0), lm=True))
    assert sorted(tree) == ["encoder", "lm"]
    layers = [tree["encoder"][direction][f"layer_{n}"] for direction in ("forward", "backward") for n in (0, 1)]
    for layer in layers:
        limit = (6 / (64 + 256)) ** 0.5  # of W_0 as one matrix
        for part in ("input_kernel", "state_kernel"):
            assert 0.95 * limit < np.abs(layer[part]).max() <= limit
        assert np.abs(layer["projection"]).max() <= (6 / (64 + 32)) ** 0.5 and not layer["bias"].any()
    assert (layers[0]["bias"].shape, tree["lm"]["bias"].any()) == ((256,), False)
    assert tree["lm"]["embedding"].std() == pytest.approx(32**-0.5, rel=0.05)
    assert len({layer["input_kernel"].tobytes() for layer in layers}) == 4
    close(init(jax.random.key(0))["encoder"], tree["encoder"], 0)


def test_a_tied_head_has_a_bias_alone_and_a_head_needs_a_vocabulary():
    tied = elmo_shapes(dataclasses.replace(WORDS, tie_softmax=True), lm=True)
    assert [path for path in tied if path.startswith("lm/")] == ["lm/bias"]
    with pytest.raises(ValueError, match="vocab_size is None"):
        init_elmo_params(CONFIG, jax.random.key(0), lm=True)


def test_reverse_leaves_padding_and_empty_rows_where_they_are():
    x = jnp.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(reverse(x, np.array([4, 0, 2])), [[3, 2, 1, 0], [4, 5, 6, 7], [9, 8, 10, 11]])
    assert isinstance(zero_state(CONFIG, 0), State) and reverse(x[:, :0], np.zeros(3, int)).shape == (3, 0)
