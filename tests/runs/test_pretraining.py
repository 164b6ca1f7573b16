"""Examples of `bert_elmo_jax.runs.pretraining`."""

import re
from pathlib import Path

import pytest
from ml_collections import ConfigDict

from bert_elmo_jax.families.pieces import Pieces
from bert_elmo_jax.families.words import Words
from bert_elmo_jax.runs.pretraining import read_coefficients
from bert_elmo_jax.runs.pretraining_end import suggest_next


def test_example_of_read_coefficients():
    assert read_coefficients(ConfigDict({"coefficients": {"mlm": 1.0, "nsp": 0.5}}), {"mlm": 1.0, "nsp": 1.0}) == {
        "mlm": 1.0,
        "nsp": 0.5,
    }
    with pytest.raises(
        ValueError,
        match=re.escape(
            "config.coefficients has mlm, npm, but the loss has the terms mlm, nsp: give a number for each term"
        ),
    ):
        read_coefficients(ConfigDict({"coefficients": {"mlm": 1.0, "npm": 0.5}}), {"mlm": 1.0, "nsp": 1.0})


def test_example_of_suggest_next():
    assert "--init=runs/bert " in suggest_next(Path("runs/bert"), Pieces())[1]
    assert "--config.encoder=runs/elmo " in suggest_next(Path("runs/elmo"), Words())[1]
