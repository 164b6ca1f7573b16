"""Examples of `bert_elmo_jax.inference.word_encoder`."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from bert_elmo_jax.inference.word_encoder import encode_words, find_columns, word_encoder


def test_a_direction_is_its_language_model_alone():
    """The columns of one direction at a word depend only on the words before it, or only on those after it."""
    encoder = word_encoder("tests/goldens/elmo_tiny")
    words = ["강가의", "작은", "은행", "the", "bank"]
    [original, changed] = encode_words(encoder, [words, [*words[:2], "river", *words[3:]]])
    for direction, same in (("forward", slice(0, 2)), ("backward", slice(3, 5))):
        columns = slice(*find_columns(encoder, direction))
        assert columns.stop - columns.start == encoder.width // 2
        differs = np.abs(original - changed)[1:, :, columns].max(axis=(0, 2))
        assert not differs[same].any()
        assert differs[2] > 1e-3
    np.testing.assert_array_equal(original[0, :, :12], original[0, :, 12:])  # the token vector, twice


def test_directions_of_other_families():
    forward = word_encoder("tests/goldens/awd_lstm_tiny")
    assert find_columns(forward, "forward") == find_columns(forward, "both") == ()
    with pytest.raises(ValueError, match=r"directions=backward, and .*awd_lstm_tiny is an AWD-LSTM that reads forward"):
        find_columns(forward, "backward")
    config = dataclasses.replace(forward.config, direction="backward")
    backward = SimpleNamespace(config=config, width=forward.width, source="x")
    assert find_columns(backward, "backward") == ()
    for name, called in (("bert_tiny", "a BERT"), ("cove_tiny", "a CoVe")):
        with pytest.raises(ValueError, match=f"{name} is {called}, whose layers have no direction of their own: leave"):
            find_columns(word_encoder(f"tests/goldens/{name}"), "forward")
    with pytest.raises(ValueError, match=r"config\.directions=forward needs an encoder: give --config\.encoder="):
        find_columns(None, "forward")
    with pytest.raises(ValueError, match="directions='foward' is not known; use both, forward, backward; did you mean"):
        find_columns(None, "foward")
    assert find_columns(None, "both") == ()
