"""A new family, defined in one file of the tests, passes the same tests as BERT and ELMo."""

import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families import REGISTRY
from bert_elmo_jax.runs.config_files import read_config

from ..experiments.programs import run_program

ROOT = Path(__file__).parents[2]
FILE = "tests/families/bag.py"
PRETRAIN = [f"--config={FILE}", "--config.eval_every=12"]
TEXTS = ["강가의 은행", "the bank of the river"]


def start(program, *words):
    """Start a program in a process that knows the family."""
    code = f"import runpy; runpy.run_path({FILE!r}); runpy.run_module('experiments.{program}', run_name='__main__')"
    code = f"import sys; sys.argv[0] = {program!r}; {code}"
    return subprocess.Popen(
        [sys.executable, "-c", code, *words], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def run(program, *words):
    """Run a program to its end in this process, and return what it printed."""
    status, out, err = run_program(program, *words)
    assert status == 0, err
    return out + err


def read_losses(folder):
    return [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module", autouse=True)
def bag():
    """Return the family's module; the family is registered only for the tests of this file."""
    module = SimpleNamespace(**runpy.run_path(str(ROOT / FILE)))
    yield module
    del REGISTRY["bag"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return the folder of a pretraining."""
    folder = tmp_path_factory.mktemp("bag") / "run"
    run("pretrain", *PRETRAIN, f"--workdir={folder}")
    assert len(read_losses(folder)) == 12
    return folder


@pytest.mark.long
def test_exact_resume(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "12")
    run("pretrain", *PRETRAIN, f"--workdir={tmp_path / 'run'}")
    jax.tree.map(np.testing.assert_array_equal, load(trained).params, load(tmp_path / "run").params)
    assert read_losses(trained) == read_losses(tmp_path / "run")


@pytest.mark.long
def test_exact_resume_after_a_kill(trained, tmp_path):
    killed = start("pretrain", *PRETRAIN, f"--workdir={tmp_path / 'run'}")
    while not (tmp_path / "run" / "checkpoints" / "6").is_dir() and killed.poll() is None:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    run("pretrain", *PRETRAIN, f"--workdir={tmp_path / 'run'}")
    jax.tree.map(np.testing.assert_array_equal, load(trained).params, load(tmp_path / "run").params)
    assert read_losses(trained)[-3:] == read_losses(tmp_path / "run")[-3:]


def test_load_and_encode(trained):
    model = load(trained)
    encoding = model.encode(TEXTS, layers="all")
    assert encoding.layers.shape[0] == 2 and model.family is REGISTRY["bag"]
    single_encoding = model.encode(TEXTS[:1])
    np.testing.assert_allclose(encoding[0].last, single_encoding.last, atol=1e-6)
    assert len(model.fill_mask("the [MASK] of the river", top=3)) == 3
    assert model.forward(np.array([[2, 5, 3]])).mlm_logits.shape[:2] == (1, 3)


def test_extract(trained, tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    out = tmp_path / "vectors.npz"
    run("extract", f"--model={trained}", f"--input={tmp_path / 'texts.txt'}", f"--output={out}", "--units=words")
    assert np.load(out)["1"].shape == (1, 5, 32)


def write_tags(folder):
    lines = [("강", "N"), ("가다", "V"), ("the", "D"), ("boat", "N")]
    text = "\n\n".join("\n".join(f"{word}\t{tag}" for word, tag in lines[n % 3 :]) for n in range(12)) + "\n"
    for part in ("train", "dev"):
        (folder / f"{part}.conll").write_text(text, encoding="utf-8")


def write_texts(folder):
    rows = [f"{word} {n}\t{label}" for n in range(12) for word, label in (("강가", "water"), ("눈", "snow"))]
    for part in ("train", "dev"):
        (folder / f"{part}.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n", encoding="utf-8")


def test_probe(trained, tmp_path):
    treebank = "\n\n".join(
        "# text = a\n1\tthe\tthe\tDET\t_\t_\t2\tdet\t_\t_\n2\tboat\tboat\tNOUN\t_\t_\t3\tnsubj\t_\t_\n"
        "3\tgoes\tgo\tVERB\t_\t_\t0\troot\t_\t_" for _ in range(6)
    )  # fmt: skip
    for part in ("train", "dev", "test"):
        (tmp_path / f"{part}.conllu").write_text(treebank + "\n\n", encoding="utf-8")
    files = [f"--{part}={tmp_path / part}.conllu" for part in ("train", "dev", "test")]
    printed = run("probe", "--what=probe", f"--model={trained}", *files, f"--output={tmp_path}", "--tasks=pos")
    assert "pos" in printed and (tmp_path / "probe" / "report.html").is_file()


@pytest.mark.long
def test_fine_tuning_of_a_head(trained, tmp_path):
    write_texts(tmp_path)
    run(
        "finetune", "--task=classification", f"--train={tmp_path}/train.tsv", f"--dev={tmp_path}/dev.tsv",
        "--text=text", "--label=label", f"--init={trained}", f"--workdir={tmp_path / 'run'}",
        "--config.epochs=8", "--config.optimizer.learning_rate=1e-2", "--config.layer_decay=0.9",
    )  # fmt: skip
    model = load(tmp_path / "run")
    assert [prediction.label for prediction in model.predict(["강가 1", "눈 2"])] == ["water", "snow"]


@pytest.mark.long
def test_features_in_the_tagger(trained, tmp_path):
    write_tags(tmp_path)
    run(
        "finetune", "--config=experiments/configs/tagger.py", "--task=tags", f"--train={tmp_path}/train.conll",
        f"--dev={tmp_path}/dev.conll", "--text=0", "--label=1", f"--config.encoder={trained}",
        f"--workdir={tmp_path / 'run'}", "--config.epochs=2", "--config.lstm_size=8", "--config.tune_encoder=true",
        "--config.unknown=unk",
    )  # fmt: skip
    assert len(load(tmp_path / "run").predict(["강 가다"])[0].tags) == 2


@pytest.mark.devices
def test_plan(capsys, bag):
    from bert_elmo_jax.plan.chips import find_topology
    from bert_elmo_jax.plan.plan import plan

    config = bag.get_config()
    config.update({"data": "", "batch_size": 8})
    assert plan(config, find_topology("cpu:8"), 300, None, 0)
    assert "parameters on 8 devices" in capsys.readouterr().out


@pytest.mark.long
def test_point_of_a_sweep(tmp_path):
    sweep = f'''
"""A sweep of the new family.

Paper and expected score: none. Scales: toy. Cost: seconds. Command: none.
"""

from bert_elmo_jax.sweeps.definition import Paper

SCALES = ("toy",)
PAPER = Paper("none", ("perplexity",), {{"a": (None,)}}, "a")


def sweep(add):
    """Add one pretraining."""
    add.figure("a", "perplexity", add.pretrain("bag", {FILE!r}, steps=3, eval_every=3), of="pieces",
               score="held_out/mlm_perplexity")
'''
    (tmp_path / "small.py").write_text(sweep, encoding="utf-8")
    run("sweep", f"--sweep={tmp_path / 'small.py'}", "--scale=toy", f"--workdir={tmp_path}", "--jobs=1")
    [table] = tmp_path.glob("small-*/table.csv")
    assert "bag" not in table.read_text() and "perplexity" in table.read_text()


def test_no_file_names_the_family():
    """The family is the test's own: no file of the package or of the programs names it."""
    names = [path for folder in ("bert_elmo_jax", "experiments") for path in (ROOT / folder).rglob("*.py")]
    assert not [path for path in names if "families.bag" in path.read_text(encoding="utf-8")]
    assert read_config(FILE)[0].family == "bag"
