"""The parser as a function of arrays: transitions, what it reads, trees of any parameters, padding."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.data.tasks.tree_rows import find_actions
from bert_elmo_jax.networks import ParserConfig, network_shapes, parse, parser_loss
from bert_elmo_jax.networks.parser import move, read_places, replay, start, sum_parts

CONFIG = ParserConfig(num_labels=4, num_tags=3, root_relation=2, num_words=7, word_size=4, hidden_size=5, tag_size=3)
LENGTHS, WIDTH = (6, 1, 0, 3), 6


def params_of(config, seed=0):
    draw = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: draw.normal(0, 0.5, leaf.shape).astype(np.float32), network_shapes(config))


def batch_of(seed=0):
    draw = np.random.default_rng(seed)
    ids = draw.integers(0, 4, (2, len(LENGTHS), WIDTH)).astype(np.int32)
    return {"words": ids[0], "tags": ids[1], "lengths": np.array(LENGTHS, np.int32)}


run_parse = functools.partial(jax.jit, static_argnums=0)(parse)


@pytest.mark.parametrize("root_relation", [2, -1])
def test_any_parameters_give_trees_with_one_root(root_relation):
    config = dataclasses.replace(CONFIG, root_relation=root_relation)
    for seed in range(5):
        heads, relations = map(np.asarray, run_parse(config, params_of(config, seed), batch_of(seed)))
        for row, length in enumerate(LENGTHS):
            tree, names = heads[row, :length].tolist(), relations[row, :length].tolist()
            assert tree.count(0) == min(length, 1)
            assert find_actions(tree, names) is not None or not length  # no cycle, no crossing arcs
            assert all(0 <= name < config.num_labels for name in names)
            if root_relation >= 0:
                assert [name == root_relation for name in names] == [head == 0 for head in tree]


def test_replayed_transitions_show_the_words_of_the_paper():
    # 2 <- 3 -> 5, 1 <- 2, 4 <- 5, with the relations 0 to 4 of the words 1 to 5.
    heads, relations = (2, 3, 0, 5, 3), (0, 1, 2, 3, 4)
    actions = find_actions(heads, relations)
    now, states = start(1, 5, 5), []
    for action in actions:
        places, names, possible = read_places(now, jnp.array([5]))
        states.append((places[0].tolist(), names[0].tolist(), possible[0].tolist()))
        now = move(now, jnp.array([action]))
    assert now.heads[0, 1:-1].tolist() == list(heads)
    assert now.relations[0, 1:-1].tolist() == list(relations)
    no, root = 6, 0
    # Before the last but one transition: the stack is root, 3, 5; each has its dependents.
    places, names, possible = states[-2]
    assert places[:6] == [5, 3, root, no, no, no]
    assert places[6:14] == [4, 2, no, no, no, no, no, no]  # leftmost, rightmost, second left, second right of 5 and 3
    assert places[14:] == [no, 1, no, no]  # leftmost of the leftmost, rightmost of the rightmost
    assert names[:2] + names[8:10] == [3, 1, 5, 0]
    assert possible == [False, True, True]
    assert states[0][2] == [True, False, False]
    assert states[-1][2] == [False, False, True]
    padded = jnp.array([[*actions, -1, -1], [0, 2, *[-1] * 10]])
    all_places, all_names, _ = replay(padded, jnp.array([5, 1]), 5)
    assert all_places[0, : len(states)].tolist() != all_places[1, : len(states)].tolist()
    shift = np.where(np.array([place for place, _, _ in states]) == no, 7, [place for place, _, _ in states])
    assert all_places[0, : len(states)].tolist() == shift.tolist()  # `no` is the node behind the padding
    assert all_names[0, : len(states)].tolist() == [name for _, name, _ in states]


def test_both_ways_to_sum_parts_agree():
    draw = np.random.default_rng(0)
    for rows in (3, 1):
        table = jnp.asarray(draw.normal(size=(rows, 4, 6, 5)), jnp.float32)
        chosen = jnp.asarray(draw.integers(0, 4, (3, 7, 6)))
        single = jnp.concatenate([sum_parts(table, chosen[:, n : n + 1]) for n in range(7)], axis=1)
        np.testing.assert_allclose(sum_parts(table, chosen), single, atol=1e-5)


def test_padding_changes_neither_loss_nor_gradients():
    config = dataclasses.replace(CONFIG, dropout=0.0, activation="relu")
    actions = np.full((4, 2 * WIDTH), -1, np.int32)
    actions[0] = find_actions((2, 0, 2, 3, 3, 2), (0, 2, 1, 0, 3, 1))
    actions[1, :2], actions[3, :6] = (0, 6), find_actions((0, 3, 1), (2, 0, 1))
    batch = batch_of() | {"actions": actions}

    @jax.jit
    def loss_of(params, batch):
        def total(params):
            value, weight = parser_loss(config)(params, batch, None, None)[0]["cross_entropy"]
            return value, weight

        return jax.value_and_grad(total, has_aux=True)(params)

    params = params_of(config)
    (value, weight), gradient = loss_of(params, batch)
    assert (float(weight), np.isfinite(float(value))) == (20.0, True)
    other = {name: np.array(array) for name, array in batch.items()}
    for row, length in enumerate(LENGTHS):
        other["words"][row, length:] = other["tags"][row, length:] = 1
    (other_value, _), other_gradient = loss_of(params, other)
    assert float(other_value) == float(value)
    jax.tree.map(np.testing.assert_array_equal, gradient, other_gradient)


@pytest.mark.usefixtures("as_users_run")
def test_wrong_sizes_are_refused():
    for fields, message in (
        ({"activation": "tanh"}, "activation='tanh' is not known; use cube or relu"),
        ({"places": "output"}, "places='output': use input"),
        ({"dropout": 1.0}, "dropout=1.0: a rate must be at least 0 and below 1"),
        ({"hidden_size": 0}, "a parser's hidden_size is 0; it must be at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            ParserConfig(num_labels=3, num_words=5, **fields)
