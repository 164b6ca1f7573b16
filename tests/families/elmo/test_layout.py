"""Examples of `bert_elmo_jax.families.elmo.hdf5_weights`."""

import numpy as np

from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.hdf5_weights import our_paths, released_name, their_shapes, to_ours, to_theirs


def test_example_of_released_name():
    assert (
        released_name("RNN_0/rnn/multi_rnn_cell/cell_1/lstm_cell/projection/kernel")
        == "RNN_0/RNN/MultiRNNCell/Cell1/LSTMCell/W_P_0"
    )


def test_example_of_our_paths():
    assert our_paths("encoder/forward/layer_0/kernel") == [
        "encoder/forward/layer_0/input_kernel",
        "encoder/forward/layer_0/state_kernel",
    ]


def test_example_of_to_ours():
    assert sorted(to_ours({"encoder/forward/layer_0/kernel": np.ones((4, 8))})) == [
        "encoder/forward/layer_0/input_kernel",
        "encoder/forward/layer_0/state_kernel",
    ]


def test_example_of_to_theirs():
    assert to_theirs({"encoder/token/conv_0/kernel": np.ones((3, 16, 8))}, "encoder/token/conv_0/kernel").shape == (
        1,
        3,
        16,
        8,
    )


def test_example_of_shapes():
    assert their_shapes(ElmoConfig.preset("original"), lm=False)["encoder/forward/layer_0/kernel"] == (1024, 16384)
