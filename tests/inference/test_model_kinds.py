"""Examples of `bert_elmo_jax.inference.model_kinds`."""

import pytest

from bert_elmo_jax.families import REGISTRY, get_family
from bert_elmo_jax.inference.model_kinds import find_kind, get_kind, read_features


def test_example_of_get_kind():
    assert get_kind("elmo").called == "an ELMo"
    known = ", ".join([*REGISTRY, "tagger", "bcn", "esim", "bidaf"])
    assert known.startswith("bert, elmo, ")
    with pytest.raises(ValueError, match=f"family 'brt' is not known to this version; it knows {known}"):
        get_kind("brt")


def test_example_of_find_kind():
    assert find_kind(get_family("elmo").config()).name == "elmo"


def test_example_of_read_features():
    assert (
        repr(read_features({"layers": [1, 2], "combine": "mix"}, "model.json"))
        == "Features(layers=(1, 2), combine='mix', lstm_layers=0, lstm_size=768, dropout=0.1)"
    )
