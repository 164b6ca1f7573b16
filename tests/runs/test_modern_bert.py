"""Pretraining with all fields of the modern BERT: resumes exactly, can be loaded, and resumes older runs."""

import json
import shutil

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.pretraining import pretrain
from bert_elmo_jax.train.checkpoint import load_params
from bert_elmo_jax.train.metrics import read_metrics

SMALL = {"num_layers": 1, "hidden_size": 16, "num_heads": 2, "feed_forward_size": 20, "max_positions": 32}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return toy_corpus(tmp_path_factory.mktemp("toy"), documents=60)


def make_config(recipe, corpus):
    config, _ = read_config(f"experiments/configs/{recipe}")
    config.update(data=str(corpus), steps=8, batch_size=16, length=32, sequences=2, eval_batches=1)
    config.update(eval_every=4, checkpoint_every=1, keep=9)
    config.model.update(SMALL)
    return config


@pytest.mark.long
def test_a_modern_bert_resumes_exactly_and_is_loaded(corpus, tmp_path):
    config = make_config("bert_modern.py:toy", corpus)
    config.update(causal_share=0.25)
    config.model.dropout = 0.1  # so that a key that went wrong would show
    config.masking.rates = 3
    config.batch_warmup.update(rows=(8,), share=0.25)
    config.optimizer.cooldown = 4.0  # steps
    run, other = tmp_path / "run", tmp_path / "other"
    assert pretrain(config, run) == 0
    lines = read_metrics(run)
    assert lines[-1]["learning_rate"] < lines[-2]["learning_rate"] < lines[4]["learning_rate"]
    assert 0 <= lines[-1]["held_out/mlm_accuracy"] <= 1

    shutil.copytree(run, other)
    for folder in (other / "checkpoints").iterdir():
        if int(folder.name) > 2:  # the last causal step
            shutil.rmtree(folder)
    assert pretrain(config, other) == 0
    assert (other / "metrics.jsonl").read_bytes() == (run / "metrics.jsonl").read_bytes()
    (_, ours), (_, theirs) = load_params(run), load_params(other)
    np.testing.assert_array_equal(ours["encoder"]["norm"]["scale"], theirs["encoder"]["norm"]["scale"])

    encoder = load(run)
    assert encoder.config.changed.keys() == {"norm", "feed_forward", "position", "layer_bias"}
    assert not encoder.config.causal
    texts = ["the river bank", "a bank"]
    packed, single_encodings = encoder.encode(texts), [encoder.encode([text]) for text in texts]
    for number, one in enumerate(single_encodings):
        size = one.last.shape[1]
        np.testing.assert_allclose(packed.last[number, :size], one.last[0], atol=1e-5)


@pytest.mark.long
def test_a_run_from_before_these_fields_goes_on(corpus, tmp_path):
    config = make_config("bert.py:toy", corpus)
    config.steps = 2
    assert pretrain(config, tmp_path) == 0
    before = {}
    for name in ("model.json", "run.json"):
        content = json.loads((tmp_path / name).read_text(encoding="utf-8"))
        fields = content["config" if name == "model.json" else "model"]
        assert set(BertConfig.ADDED) <= set(fields)
        for field in BertConfig.ADDED:
            del fields[field]
        before[name] = json.dumps(content)
        (tmp_path / name).write_text(before[name], encoding="utf-8")
    assert not load(tmp_path).config.changed
    assert pretrain(config, tmp_path) == 0
    config.model.norm = "pre"
    with pytest.raises(ValueError, match=r'model.norm: "post" then, "pre" now'):
        pretrain(config, tmp_path)
