"""Fine-tuning the encoder of a translator with a head: it learns, predicts, and leaves its decoder behind."""

import importlib

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.inference.run_directory import write_run_directory
from bert_elmo_jax.runs.finetuning import finetune
from bert_elmo_jax.runs.task_data import read_data
from bert_elmo_jax.text import train_wordpiece
from bert_elmo_jax.train.checkpoint import load_params

from ...experiments.task_files import BAD, GOOD, OTHER, write_task


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """Return the run directory of a small untrained translator."""
    family, tokenizer = get_family("transformer"), train_wordpiece([" ".join((*GOOD, *BAD, *OTHER))] * 9, 120)
    config = family.config_for(
        tokenizer, hidden_size=16, num_layers=1, num_heads=2, feed_forward_size=32, max_positions=40
    )
    folder = tmp_path_factory.mktemp("translator")
    params = jax.jit(lambda: init_params(family, config, jax.random.key(0), ("decoder",), pooler=False))()
    write_run_directory(folder, config, params, tokenizer, run={})
    return folder


@pytest.mark.long
@pytest.mark.usefixtures("one_device")
def test_it_learns_and_predicts(translator, tmp_path):
    config = importlib.import_module("experiments.configs.finetune").get_config()
    config.update({**write_task(tmp_path / "files", "sst2"), "max_length": 32, "epochs": 12.0, "batch_size": 16})
    config.update(eval_every=100, dropout=0.0)
    config.optimizer.update({"name": "adamw", "schedule": "constant", "warmup": 0.0, "learning_rate": 5e-3})
    assert finetune(config, tmp_path / "run", init=str(translator)) == 0
    data = read_data(config)
    tuned = load(tmp_path / "run")
    assert [p.label for p in tuned.predict(["최고 the film", "the film was bad"])] == ["1", "0"]
    right = [p.label == e.label for p, e in zip(tuned.predict_examples(data.dev), data.dev)]
    assert np.mean(right) > 0.9
    assert set(tuned.params) == {"encoder", "classify"}
    before, after = (load_params(folder)[1]["encoder"] for folder in (translator, tmp_path / "run"))
    assert (before["layer_0"]["attention"]["query"]["kernel"] != after["layer_0"]["attention"]["query"]["kernel"]).any()
