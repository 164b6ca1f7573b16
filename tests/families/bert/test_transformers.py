"""Exported vocabularies in transformers; `test_huggingface_contract.py` compares weights and numbers of every class."""

import json

import pytest

from bert_elmo_jax.families.bert.formats import WEIGHTS

from ..huggingface_models import BERT, random_params
from ..peers import their_warnings

pytestmark = pytest.mark.peers


def test_their_tokenizer_reads_our_vocabulary(peers, tmp_path):
    _, transformers = peers
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "강", "##물", "은", "##은", "the", "River", "river"]
    settings = {"do_lower_case": False, "strip_accents": False}
    WEIGHTS.write(tmp_path, random_params("BertModel"), BERT, vocab=pieces, tokenizer=settings)
    with their_warnings():
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    tokens = tokenizer.convert_ids_to_tokens(tokenizer("강물은 the River [MASK]")["input_ids"])
    assert tokens == ["[CLS]", "강", "##물", "##은", "the", "River", "[MASK]", "[SEP]"]
    assert tokenizer.model_max_length == BERT.max_positions
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["tokenizer_class"] == "BertTokenizer"
