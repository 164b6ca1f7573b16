"""A run with a teacher: it resumes exactly, recognises its teacher, and reports errors."""

import functools
import json
import re
import shutil

import jax
import numpy as np
import pytest

from bert_elmo_jax import load, train
from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus
from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.families.pieces import Pieces
from bert_elmo_jax.inference.run_directory import write_run_directory
from bert_elmo_jax.plan.chips import find_topology
from bert_elmo_jax.plan.plan import plan
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.pretraining import load_corpus_tokenizer, pretrain
from bert_elmo_jax.train.checkpoint import load_params
from bert_elmo_jax.train.metrics import read_metrics

pytestmark = pytest.mark.usefixtures("one_device")
SIZES = {"hidden_size": 16, "num_heads": 2, "feed_forward_size": 32, "max_positions": 64}


def write_model(folder, corpus, seed=0, heads=("mlm", "nsp"), **sizes):
    """Write a run directory with an untrained BERT."""
    tokenizer = load_corpus_tokenizer({str(corpus): 1.0}, Pieces())
    family = get_family("bert")
    config = family.config_for(tokenizer, **SIZES, num_layers=2, **sizes)
    params = jax.tree.map(np.asarray, init_params(family, config, jax.random.key(seed), heads))
    write_run_directory(folder, config, params, tokenizer, run={})
    return folder


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return toy_corpus(tmp_path_factory.mktemp("data") / "corpus", documents=60)


@pytest.fixture(scope="module")
def teacher(tmp_path_factory, corpus):
    return write_model(tmp_path_factory.mktemp("teachers") / "bert", corpus)


def make_config(corpus, teacher, fields=()):
    config, _ = read_config("experiments/configs/distilbert.py:distil_toy")
    config.update({"data": str(corpus), "teacher": str(teacher), "batch_size": 8, "length": 32, "eval_batches": 1})
    config.update({"steps": 6, "checkpoint_every": 2, "eval_every": 3, "log_every": 1})
    config.model.update({**SIZES, "dropout": 0.1})
    config.update_from_flattened_dict(dict(fields))
    return config


@pytest.fixture(scope="module")
def uninterrupted_run(tmp_path_factory, corpus, teacher):
    """An uninterrupted run."""
    workdir = tmp_path_factory.mktemp("runs") / "alone"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "make_mesh", functools.partial(train.make_mesh, devices=jax.devices()[:1]))
        assert pretrain(make_config(corpus, teacher), workdir) == 0
    return workdir


@pytest.mark.long
def test_a_run_is_complete_without_its_teacher(uninterrupted_run):
    lines = read_metrics(uninterrupted_run)
    assert {"mlm", "soft", "cosine"} <= set(lines[-1])
    assert lines[-1]["loss"] == pytest.approx(
        2 * lines[-1]["mlm"] + 5 * lines[-1]["soft"] + lines[-1]["cosine"], rel=1e-5
    )
    assert {"held_out/soft", "held_out/cosine", "held_out/mlm_perplexity"} <= set(lines[-1])
    student = load(uninterrupted_run)
    assert student.num_layers == 1
    assert sorted(student.params) == ["encoder", "mlm"]
    assert json.loads((uninterrupted_run / "teacher.json").read_text())["fingerprint"]


@pytest.mark.long
def test_it_resumes_exactly_with_a_teacher_that_has_moved(uninterrupted_run, corpus, teacher, tmp_path):
    workdir, moved = tmp_path / "run", tmp_path / "moved"
    shutil.copytree(teacher, moved)
    shutil.copytree(uninterrupted_run, workdir)
    for step in (4, 6):
        shutil.rmtree(workdir / "checkpoints" / str(step), ignore_errors=True)
    assert [folder.name for folder in (workdir / "checkpoints").iterdir()] == ["2"]
    assert pretrain(make_config(corpus, moved), workdir) == 0
    assert (workdir / "metrics.jsonl").read_bytes() == (uninterrupted_run / "metrics.jsonl").read_bytes()
    jax.tree.map(np.testing.assert_array_equal, load_params(workdir)[1], load_params(uninterrupted_run)[1])


@pytest.mark.long
def test_another_teacher_is_refused(uninterrupted_run, corpus, tmp_path):
    other = write_model(tmp_path / "other", corpus, seed=3)
    with pytest.raises(ValueError, match=re.escape(f"config.teacher={other} is another model (")):
        pretrain(make_config(corpus, other), uninterrupted_run)


def test_wrong_inputs_are_refused(corpus, teacher, tmp_path):
    """No file is written."""
    elsewhere = toy_corpus(tmp_path / "elsewhere", documents=60, language="ko", vocab_size=1500)
    wide = {"model.hidden_size": 32}
    cases = [
        ({"teacher": ""}, None, "--config.teacher=… is needed: a pretrained model with a head for masked pieces"),
        ({"teacher": "/nowhere/at/all"}, None, "config.teacher: /nowhere/at/all does not exist"),
        (
            {"teacher": str(write_model(tmp_path / "ko", elsewhere))},
            None,
            "was not prepared with the tokenizer of conf",
        ),
        ({"teacher": str(write_model(tmp_path / "bare", corpus, heads=()))}, None, "has no head `mlm`"),
        ({"temperature": 0.0}, None, "temperature=0.0: expected a number above 0"),
        (wide, None, "needs equal widths; use --config.coefficients.cosine=0"),
        ({"length": 128}, None, "config.length=128, but the model has 64 positions"),
        ({}, str(teacher), "is not a DistilBERT"),
    ]
    for fields, init, message in cases:
        with pytest.raises((ValueError, OSError), match=re.escape(message)):
            pretrain(make_config(corpus, teacher, fields), tmp_path / "new", init=init)
        assert not (tmp_path / "new" / "run.json").exists()


@pytest.mark.long
def test_given_weights_and_the_teachers_contradict_each_other(uninterrupted_run, corpus, teacher, tmp_path):
    with pytest.raises(ValueError, match=r"both choose the first parameters: add --config\.init_from_teacher=False"):
        pretrain(make_config(corpus, teacher), tmp_path, init=str(uninterrupted_run))


@pytest.mark.long
def test_a_plan_counts_the_teacher(corpus, teacher, capsys):
    """The teacher's parameters are arguments of the step."""
    arguments = []
    for recipe in (make_config(corpus, teacher), make_config(corpus, teacher)):
        if arguments:
            with recipe.unlocked():
                del recipe.teacher
        assert plan(recipe, find_topology("cpu:1"), None, None, 0)
        arguments.append(float(re.search(r"arguments ([\d.]+) GiB", capsys.readouterr().out)[1]))
    assert arguments[0] >= arguments[1]
