"""Examples of `bert_elmo_jax.inference.model_kinds`."""

import re

import pytest

from bert_elmo_jax.inference.model_kinds import check_kind


def test_example_of_check_kind():
    with pytest.raises(ValueError, match=re.escape("model.json: hidden_size is '64'; expected a whole number")):
        check_kind("model.json", "hidden_size", "64", "a whole number")
