"""Examples of `bert_elmo_jax.inference.model_kinds`."""

from types import SimpleNamespace

import pytest

from bert_elmo_jax.families import REGISTRY, get_family
from bert_elmo_jax.families.pieces import Pieces, read_features
from bert_elmo_jax.inference.model_kinds import find_kind, get_kind


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


def test_the_pad_piece_of_another_model_raises(goldens, tmp_path):
    def find(folder, pad_id):
        return Pieces().find_tokenizer(get_family("bert"), folder, SimpleNamespace(pad_id=pad_id), None)

    folder = goldens / "tokenizers" / "roberta_tiny"
    assert find(folder, 1).pad_id == 1
    with pytest.raises(ValueError, match=r"pad piece of the tokenizer is '<pad>' with the id 1, that of the model has"):
        find(folder, 0)
    assert find(goldens / "tokenizers" / "gpt2_tiny", 7).pad_id == 0
    (tmp_path / "vocab.json").write_text("{}")
    with pytest.raises(FileNotFoundError, match=r"lacks merges\.txt"):
        find(tmp_path, 0)
