"""The embeddings that families share: with and without types, with another width, with positions from a later row."""

from types import SimpleNamespace

import jax
import numpy as np

from bert_elmo_jax.families.piece_embeddings import Embeddings

CONFIG = SimpleNamespace(
    vocab_size=9, hidden_size=8, max_positions=4, initializer_range=0.5, norm_eps=1e-12, dtype="float32"
)
TOKENS = np.array([[3, 4, 5]])
POSITIONS = np.array([[0, 1, 2]])


def test_shapes_of_the_tables():
    def shapes(module):
        params = jax.eval_shape(module.init, jax.random.key(0), TOKENS, None, POSITIONS)["params"]
        return {name: part.shape for name, part in params.items() if name != "norm"}

    assert shapes(Embeddings(CONFIG)) == {"word": (9, 8), "position": (4, 8)}
    narrow = {"word": (9, 6), "position": (6, 6), "type": (2, 6)}
    assert shapes(Embeddings(CONFIG, types=2, size=6, first=2)) == narrow


def test_positions_begin_at_a_later_row():
    later = Embeddings(CONFIG, first=2)
    variables = later.init(jax.random.key(0), TOKENS, None, POSITIONS)
    table = variables["params"]["position"]
    moved = {"params": {**variables["params"], "position": table[2:]}}
    plain = Embeddings(CONFIG).apply(moved, TOKENS, None, POSITIONS)
    np.testing.assert_array_equal(later.apply(variables, TOKENS, None, POSITIONS), plain)


def test_without_norm_and_positions():
    bare = Embeddings(CONFIG, learned=False, norm=False)
    variables = bare.init(jax.random.key(0), TOKENS, None, POSITIONS)
    assert variables["params"].keys() == {"word"}
    np.testing.assert_array_equal(bare.apply(variables, TOKENS, None, POSITIONS)[0], variables["params"]["word"][3:6])
