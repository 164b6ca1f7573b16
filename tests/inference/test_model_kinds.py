"""Examples of `bert_elmo_jax.inference.model_kinds`."""

from types import SimpleNamespace

import pytest

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.pieces import Pieces


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


def test_a_generative_model_that_names_no_pad_piece_takes_the_one_of_its_tokenizer(goldens):
    def find(**fields):
        config = SimpleNamespace(causal=True, **fields)
        return Pieces().find_tokenizer(get_family("gpt"), goldens / "tokenizers" / "roberta_tiny", config, None)

    assert find(pad_id=0, end_id=0).pad_id == 1  # a config.json without pad_token_id
    with pytest.raises(ValueError, match="that of the model has the id 0"):
        find(pad_id=0, end_id=2)
