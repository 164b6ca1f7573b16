"""Examples of `bert_elmo_jax.weights.pickle_machine`."""

import io
import re

import pytest

from bert_elmo_jax.weights.pickle_machine import run_pickle


def test_example_of_run_pickle():
    import pickle

    assert run_pickle(io.BytesIO(pickle.dumps({"a": [1, 2.5]}, 2)), set(), str) == {"a": [1, 2.5]}
    with pytest.raises(
        ValueError,
        match=re.escape(
            "it asks for builtins.print, which is refused: only tensors and containers are read, nothing is executed"
        ),
    ):
        run_pickle(io.BytesIO(pickle.dumps(print, 4)), set(), str)
