"""A run of replaced-token pretraining: exact resume, the discriminator by `load`, and both networks converted."""

import shutil

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.electra.model import take_generator
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.pretraining import pretrain
from bert_elmo_jax.train.checkpoint import load_params


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Four steps with dropout, a checkpoint every two."""
    config, _ = read_config("experiments/configs/electra.py:toy")
    config.update(steps=4, batch_size=8, length=16, sequences=1, checkpoint_every=2, eval_every=4, eval_batches=1)
    config.model.update(num_layers=1, hidden_size=16, embedding_size=8, num_heads=2, feed_forward_size=16, dropout=0.1)
    config.toyworld.update(language="en", documents=60, vocab_size=400)
    folder = tmp_path_factory.mktemp("electra") / "run"
    assert pretrain(config, folder) == 0
    return config, folder


def test_exact_resume(run, tmp_path):
    config, folder = run
    shutil.copytree(folder, tmp_path / "again")
    shutil.rmtree(tmp_path / "again" / "checkpoints" / "4")
    assert pretrain(config, tmp_path / "again") == 0
    (step, ours), (also, theirs) = load_params(tmp_path / "again"), load_params(folder)
    assert step == also == 4
    assert set(ours) == {"encoder", "generator", "replaced"} and set(ours["generator"]) == {"encoder", "mlm"}
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    assert (tmp_path / "again" / "metrics.jsonl").read_bytes() == (folder / "metrics.jsonl").read_bytes()


def test_a_run_is_its_discriminator_and_converts_to_both(run, tmp_path):
    _, folder = run
    found = load(folder)
    assert found.heads == ("generator", "replaced")
    ids = found.tokenizer.encode("the bank of the river").ids[None].astype(np.int32)
    logits = found.forward(ids).logits
    assert logits.shape == ids.shape
    convert(str(folder), tmp_path / "out")
    discriminator, generator = load(tmp_path / "out"), load(tmp_path / "out" / "generator")
    np.testing.assert_allclose(discriminator.forward(ids).logits, logits, rtol=1e-6)
    jax.tree.map(np.testing.assert_array_equal, generator.params, take_generator(found.config, found.params)[1])
    assert len(generator.fill_mask("the [MASK] of the river")) == 5
