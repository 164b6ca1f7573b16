"""Every frozen model becomes a run directory, and a folder of its own format again: the same model each time."""

import json
import shutil

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.weights.parameter_tree import flatten

FOLDERS = {
    "bert_tiny": "huggingface", "roberta_tiny": "huggingface", "distilbert_tiny": "huggingface",
    "electra_tiny/discriminator": "huggingface", "gpt2_tiny": "huggingface", "gpt_tiny": "huggingface",
    "deberta_v3_tiny/tagger": "huggingface", "deberta_v1_tiny/mlm": "huggingface",
    "modernbert_tiny": "huggingface", "mpnet_tiny": "huggingface", "albert_tiny/pretraining": "huggingface",
    "transformer_tiny": "huggingface", "bart_tiny": "huggingface", "elmo_tiny": "elmo", "awd_lstm_tiny": "fastai",
    "cove_tiny": "cove", "eurobert_tiny/mlm": "huggingface",
}  # fmt: skip


@pytest.mark.parametrize("name", FOLDERS)
def test_converted_to_a_run_directory_and_back(goldens, tmp_path, name):
    before = load(goldens / name)
    assert convert(str(goldens / name), tmp_path / "run", to_format="run")[0] == "run"
    assert convert(str(tmp_path / "run"), tmp_path / "out")[0] == FOLDERS[name]
    assert load(tmp_path / "run").fingerprint == before.fingerprint
    tokenizer = getattr(before.reads, "fingerprint", None)
    for folder in ("run", "out"):
        again = load(tmp_path / folder)
        assert again.config == before.config and getattr(again.reads, "fingerprint", None) == tokenizer
        ours, theirs = flatten(again.params), flatten(before.params)
        assert ours.keys() == theirs.keys()
        for path in ours:  # of the two biases of torch's LSTMs the sum is kept
            np.testing.assert_allclose(
                ours[path], theirs[path], rtol=0, atol=1e-6 * path.endswith("bias"), err_msg=path
            )
    file = tmp_path / "out" / "tokenizer_config.json"
    if file.exists():
        settings = json.loads(file.read_text("utf-8"))
        assert settings["model_max_length"] == before.config.max_positions
        if name in ("roberta_tiny", "gpt2_tiny", "mpnet_tiny", "bart_tiny"):
            assert "token_type_ids" not in settings["model_input_names"]
        if name in ("albert_tiny/pretraining", "bert_tiny"):  # or transformers 5 would read pairs as single texts
            assert "token_type_ids" in settings["model_input_names"]


@pytest.mark.parametrize("name", ["gpt2_tiny", "bert_tiny"])
def test_labels_of_a_model_without_a_classifier_are_left_out(goldens, tmp_path, name):
    """A GPT2DoubleHeadsModel or a base model of transformers may have id2label."""
    shutil.copytree(goldens / name, tmp_path / "in")
    file = tmp_path / "in" / "config.json"
    file.chmod(0o644)
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | {"id2label": {"0": "LABEL_0"}}))
    convert(str(tmp_path / "in"), tmp_path / "out")
    assert load(tmp_path / "out").fingerprint == load(goldens / name).fingerprint
    assert "id2label" not in json.loads((tmp_path / "out" / "config.json").read_text("utf-8"))
