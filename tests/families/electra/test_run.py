"""A run of replaced-token pretraining: exact resume; `load` gives the discriminator, and both networks convert."""

import shutil

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.electra.config import ElectraConfig
from bert_elmo_jax.families.electra.family import FAMILY
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.families.replaced import take_generator
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.inference.run_directory import write_run_directory
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.pretraining import pretrain
from bert_elmo_jax.train.checkpoint import load_params

CONFIG = ElectraConfig(220, 16, 1, 2, 16, 48, embedding_size=8, dropout=0.1, generator_size=0.5)


@pytest.mark.long
def test_exact_resume(tmp_path):
    """The run has four steps with dropout, and a checkpoint every two."""
    config, _ = read_config("experiments/configs/electra.py:toy")
    config.update(steps=4, batch_size=8, length=16, sequences=1, checkpoint_every=2, eval_every=4, eval_batches=1)
    config.model.update(num_layers=1, hidden_size=16, embedding_size=8, num_heads=2, feed_forward_size=16, dropout=0.1)
    config.toyworld.update(language="en", documents=60, vocab_size=400)
    unbroken_run, again = tmp_path / "alone", tmp_path / "again"
    assert pretrain(config, unbroken_run) == 0
    shutil.copytree(unbroken_run, again)
    shutil.rmtree(again / "checkpoints" / "4")
    assert pretrain(config, again) == 0
    (step, ours), (also, theirs) = load_params(again), load_params(unbroken_run)
    assert step == also == 4
    assert set(ours) == {"encoder", "generator", "replaced"} and set(ours["generator"]) == {"encoder", "mlm"}
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    assert (again / "metrics.jsonl").read_bytes() == (unbroken_run / "metrics.jsonl").read_bytes()
    assert load(again).heads == ("generator", "replaced")


@pytest.mark.long
def test_a_run_is_its_discriminator_and_converts_to_both(goldens, tmp_path):
    init = jax.jit(lambda: init_params(FAMILY, CONFIG, jax.random.key(0), ("generator", "replaced"), pooler=False))
    tokenizer = load(goldens / "electra_tiny" / "generator").tokenizer
    write_run_directory(tmp_path / "run", CONFIG, jax.device_get(init()), tokenizer, run={})
    model = load(tmp_path / "run")
    ids = model.tokenizer.encode("the bank of the river").ids[None].astype(np.int32)
    logits = model.forward(ids).logits
    assert model.heads == ("generator", "replaced") and logits.shape == ids.shape
    convert(str(tmp_path / "run"), tmp_path / "out")
    discriminator, generator = load(tmp_path / "out"), load(tmp_path / "out" / "generator")
    assert discriminator.heads == ("replaced",)
    np.testing.assert_array_equal(discriminator.forward(ids).logits, logits)
    jax.tree.map(np.testing.assert_array_equal, generator.params, take_generator(model.config, model.params)[1])
    assert len(generator.fill_mask("the [MASK] of the river")) == 5
