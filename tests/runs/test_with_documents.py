"""ULMFiT: the stages of the language model and the classifier, from files to predictions."""

import json

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.awd_lstm.config import AwdLstmConfig
from bert_elmo_jax.families.awd_lstm.model import init_awd_lstm_params
from bert_elmo_jax.inference.run_directory import write_run_directory
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.finetuning import finetune
from bert_elmo_jax.text import WordVocabulary

from ..experiments.task_files import BAD, GOOD, OTHER, write_task

pytestmark = pytest.mark.usefixtures("one_device")

WORDS = ["<S>", "</S>", "<UNK>", *dict.fromkeys((*OTHER, *GOOD, *BAD, ",", "really"))]
SIZES = {"embedding_size": 8, "cell_size": 12, "num_layers": 2}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_task(tmp_path_factory.mktemp("files") / "texts", "classification", count=96)


def write_lm(folder, direction="forward", words=WORDS, seed=0):
    """A language model with a vocabulary of its own."""
    config = AwdLstmConfig(vocab_size=len(words), direction=direction, **SIZES)
    params = init_awd_lstm_params(config, jax.random.key(seed), lm=True)
    write_run_directory(folder, config, params, WordVocabulary(words, rule="punctuation"), run={})
    return str(folder)


@pytest.fixture(scope="module")
def lm(tmp_path_factory):
    return write_lm(tmp_path_factory.mktemp("lm") / "run")


def config_of(files, changes=None):
    config, _ = read_config("experiments/configs/ulmfit.py")
    config.update(files)
    config.update({"epochs": 3.0, "batch_size": 16, "drop_factor": 0.0, "log_every": 1})
    config.lm.update({"epochs": 2.0, "batch_size": 4, "length": 16, "spread": 2, "drop_factor": 0.0})
    config.documents.part = 4
    config.update_from_flattened_dict(changes or {})
    return config


@pytest.fixture(scope="module")
def run(files, lm, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    with pytest.MonkeyPatch.context() as patch:
        import functools

        from bert_elmo_jax import train

        patch.setattr(train, "make_mesh", functools.partial(train.make_mesh, devices=jax.devices()[:1]))
        changes = {"epochs": 12.0, "transfer": "all", "layer_decay": 1.0, "optimizer.learning_rate": 0.02}
        assert finetune(config_of(files, changes), folder, init=lm) == 0
    return folder


def test_it_learns_the_task(run):
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert result["dev"]["accuracy"] > 0.9
    model = load(run)
    found = model.predict([f"a {GOOD[0]} film", f"a {BAD[0]} film"])
    assert [label.label for label in found] == ["재미", "노잼"]
    assert found[0].probability == pytest.approx(max(found[0].probabilities.values()))
    assert sum(found[0].probabilities.values()) == pytest.approx(1, abs=1e-5)
    np.testing.assert_equal(model.encoder.config.classifier, (50, 2))
