"""Export to transformers and back, for every head: the same numbers there, and the same bits on return."""

import json

import numpy as np
import pytest

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.formats import WEIGHTS

from ..huggingface_models import BERT, CLASSES, assert_same, random_params
from ..peers import their_warnings

read_weights, write = WEIGHTS.read_weights, WEIGHTS.write

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("layout", [True, False], ids=["zip", "old"])
def test_a_state_dictionary_as_torch_saves_it_is_read(peers, tmp_path, layout):
    torch, transformers = peers
    model, labels = CLASSES["BertForTokenClassification"], ["O", "B-인명", "I-인명", "B-지명", "I-지명"]
    params = random_params(model)
    write(tmp_path / "ours", params, model.config, labels=labels)
    with their_warnings():
        theirs = transformers.BertForTokenClassification.from_pretrained(tmp_path / "ours")
    assert [theirs.config.id2label[number] for number in range(5)] == labels
    (tmp_path / "pickled").mkdir()
    file = tmp_path / "pickled" / "pytorch_model.bin"
    torch.save(theirs.state_dict(), file, _use_new_zipfile_serialization=layout)
    (tmp_path / "pickled" / "config.json").write_bytes((tmp_path / "ours" / "config.json").read_bytes())
    read, report = read_weights(tmp_path / "pickled")
    assert not (report.unexpected or report.missing)
    assert_same(read, params)


def test_the_golden_exported_gives_their_frozen_outputs(peers, tmp_path, goldens):
    torch, transformers = peers
    folder = goldens / "bert_tiny"
    params, _ = read_weights(folder)
    write(tmp_path / "out", params, BertConfig.from_json(folder / "config.json"))
    inputs = {name: torch.from_numpy(value) for name, value in np.load(folder / "inputs.npz").items()}
    inputs = {name: inputs[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
    with their_warnings(), torch.no_grad():
        models = [
            transformers.BertForPreTraining.from_pretrained(path, attn_implementation="eager").eval()
            for path in (folder, tmp_path / "out")
        ]
        before, after = (model(**inputs, output_hidden_states=True) for model in models)
    for a, b in zip(before.hidden_states, after.hidden_states):
        assert torch.equal(a, b)
    assert torch.equal(before.prediction_logits, after.prediction_logits)
    assert torch.equal(before.seq_relationship_logits, after.seq_relationship_logits)
    frozen = np.load(folder / "outputs.npz")
    np.testing.assert_allclose(after.prediction_logits.numpy(), frozen["mlm_logits"], rtol=1e-4, atol=1e-4)


def test_their_tokenizer_reads_our_vocabulary(peers, tmp_path):
    _, transformers = peers
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "강", "##물", "은", "##은", "the", "River", "river"]
    write(
        tmp_path,
        random_params("BertModel"),
        BERT,
        vocab=pieces,
        tokenizer={"do_lower_case": False, "strip_accents": False},
    )
    with their_warnings():
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    tokens = tokenizer.convert_ids_to_tokens(tokenizer("강물은 the River [MASK]")["input_ids"])
    assert tokens == ["[CLS]", "강", "##물", "##은", "the", "River", "[MASK]", "[SEP]"]
    assert tokenizer.model_max_length == BERT.max_positions
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["tokenizer_class"] == "BertTokenizer"
