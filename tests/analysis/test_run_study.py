"""Examples of `bert_elmo_jax.analysis.run_study` and `studies`."""

import re

import pytest

from bert_elmo_jax.analysis.run_study import check_settings
from bert_elmo_jax.analysis.studies import shorten_names


def test_example_of_check_settings():
    with pytest.raises(ValueError, match=re.escape("--words means nothing for --what=weights: leave it out")):
        check_settings("weights", {"model": ["runs/tagger"]}, ["words"])


def test_example_of_shorten_names():
    assert shorten_names(["runs/elmo", "runs/bert"]) == {"elmo": "runs/elmo", "bert": "runs/bert"}
