"""A BART trained here: it repairs texts, and a classifier trains both halves and is exchanged with transformers."""

import importlib

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.inference.run_directory import write_run_directory
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.finetuning import finetune
from bert_elmo_jax.runs.pretraining import pretrain
from bert_elmo_jax.text import train_wordpiece
from bert_elmo_jax.train.checkpoint import load_params
from bert_elmo_jax.train.metrics import read_metrics

from ...experiments.task_files import BAD, GOOD, OTHER, write_task

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("one_device")]


def test_a_classifier_trains_both_halves(tmp_path):
    family, tokenizer = get_family("bart"), train_wordpiece([" ".join((*GOOD, *BAD, *OTHER))] * 9, 120)
    sizes = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "feed_forward_size": 32, "max_positions": 40}
    model = family.config_for(tokenizer, initializer_range=0.2, **sizes)
    params = jax.jit(lambda: init_params(family, model, jax.random.key(0), (), pooler=False))()
    write_run_directory(tmp_path / "bart", model, params, tokenizer, run={})
    config = importlib.import_module("experiments.configs.finetune").get_config()
    config.update({**write_task(tmp_path / "files", "sst2"), "max_length": 32, "epochs": 12.0, "batch_size": 16})
    config.update(eval_every=100, dropout=0.0)
    config.optimizer.update({"name": "adamw", "schedule": "constant", "warmup": 0.0, "learning_rate": 5e-3})
    assert finetune(config, tmp_path / "run", init=str(tmp_path / "bart")) == 0
    tuned = load(tmp_path / "run")
    texts = ["최고 the film", "the film was bad"]
    predictions = tuned.predict(texts)
    assert [prediction.label for prediction in predictions] == ["1", "0"]
    before, after = (load_params(tmp_path / name)[1]["encoder"] for name in ("bart", "run"))
    for part in (before["layer_0"], before["decoder"]["layer_0"]):
        other = after["layer_0"] if part is before["layer_0"] else after["decoder"]["layer_0"]
        assert (part["attention"]["query"]["kernel"] != other["attention"]["query"]["kernel"]).any()
    assert convert(str(tmp_path / "run"), tmp_path / "out")[0] == "huggingface"
    again = load(tmp_path / "out").predict(texts)
    for one, other in zip(predictions, again, strict=True):
        assert one.label == other.label and one.probability == pytest.approx(other.probability, abs=1e-6)


def test_it_learns_to_repair_texts(tmp_path):
    """After a quarter of the toy recipe, most held-out pieces are right, and a damaged text is rewritten."""
    config, _ = read_config("bart:toy")
    config.update(steps=250, checkpoint_every=250, eval_batches=8)
    config.toyworld.documents = 2_000
    assert pretrain(config, tmp_path / "run") == 0
    assert read_metrics(tmp_path / "run")[-1]["held_out/accuracy"] > 0.5
    model, store = load(tmp_path / "run"), open_store(tmp_path / "run" / "toyworld", "heldout")
    originals = [model.tokenizer.decode(np.concatenate(store[number])[:30].tolist()) for number in range(8)]
    damaged = [" ".join("[MASK]" if n == 2 else word for n, word in enumerate(text.split())) for text in originals]
    written = model.generate(damaged, max_new=60, beams=2)
    shares = []
    for original, [best] in zip(originals, written, strict=True):
        words = original.split()
        shares.append(np.mean([word in best.text.split() for word in words]))
        assert "[MASK]" not in best.text
    assert np.mean(shares) > 0.5
    assert model.fill_mask("The old [MASK] was big .", top=1)[0].piece
