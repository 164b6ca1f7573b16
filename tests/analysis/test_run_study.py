"""Examples of `bert_elmo_jax.analysis.run_study`."""

import re

import pytest

from bert_elmo_jax.analysis.run_study import check_settings


def test_example_of_check_settings():
    with pytest.raises(ValueError, match=re.escape("--words means nothing for --what=weights: leave it out")):
        check_settings("weights", {"model": ["runs/tagger"]}, ["words"])
