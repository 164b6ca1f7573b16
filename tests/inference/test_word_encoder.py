"""Examples of `bert_elmo_jax.inference.word_encoder`."""

import numpy as np

from bert_elmo_jax.inference.word_encoder import (
    encode_words,
    frozen_layers,
    layer_shape,
    stack_layers,
    trained_layers,
    word_encoder,
)


def test_example_of_frozen_layers():
    from bert_elmo_jax.data.tasks.word_rows import WordRow

    row = WordRow(0, ("강가의", "은행"), np.zeros(2, np.int32))
    assert frozen_layers(word_encoder("tests/goldens/elmo_tiny"))([row], 2, 8)["layers"].shape == (2, 3, 8, 24)


def test_example_of_stack_layers():
    assert stack_layers([np.ones((3, 2, 4), np.float32)], 2, 8)["layers"].shape == (2, 3, 8, 4)


def test_example_of_trained_layers():
    from bert_elmo_jax.data.tasks.word_rows import WordRow

    row = WordRow(0, ("강가의", "은행"), np.zeros(2, np.int32))
    assert sorted(trained_layers(word_encoder("tests/goldens/elmo_tiny"))([row], 2, 8)) == [
        "elmo_characters",
        "elmo_lengths",
        "elmo_words",
    ]


def test_example_of_layer_shape():
    assert (
        layer_shape(word_encoder("tests/goldens/elmo_tiny")),
        layer_shape(word_encoder("tests/goldens/bert_tiny")),
        layer_shape(word_encoder("tests/goldens/cove_tiny")),
    ) == ((3, 24), (4, 64), (3, 48))


def test_example_of_encode_words():
    encoder = word_encoder("tests/goldens/elmo_tiny")
    assert [layers.shape for layers in encode_words(encoder, [["강가의", "작은", "은행"], ["배"]])] == [
        (3, 3, 24),
        (3, 1, 24),
    ]
