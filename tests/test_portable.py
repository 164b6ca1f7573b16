"""Everything runs without the system calls that macOS lacks and without the `fork` start method."""

import subprocess
import sys
from pathlib import Path

import pytest

from .sweeps.toy_runs import one_device

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[1]
# Python imports this module in every process that finds it, so children of a run lack the same.
SHIM = """
import multiprocessing
import os
import sys

for name in ("pipe2", "sched_setaffinity", "sched_getaffinity", "wait3", "wait4"):
    if hasattr(os, name):
        delattr(os, name)
multiprocessing.set_start_method("spawn", force=True)
multiprocessing.context._concrete_contexts.pop("fork", None)
if os.environ.get("WITHOUT_FCNTL"):
    sys.modules["fcntl"] = None
if os.environ.get("AS_ON_MACOS"):
    del os.fork
with open(os.environ["PORTABLE_LOG"], "a") as log:
    log.write(f"{os.getpid()}\\n")
"""
BERT = ["--config=experiments/configs/bert.py:toy", "--config.steps=2", "--config.eval_every=2",
        "--config.checkpoint_every=2", "--config.toyworld.documents=60", "--config.eval_batches=1",
        "--config.model.hidden_size=8", "--config.model.num_heads=2", "--config.model.feed_forward_size=8",
        "--config.model.num_layers=1"]  # fmt: skip


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a command without these calls, and returns its output and number of processes."""
    (tmp_path / "shim").mkdir()
    (tmp_path / "shim" / "sitecustomize.py").write_text(SHIM, encoding="utf-8")
    log = tmp_path / "processes.txt"

    def start(*words, **more):
        log.write_text("")
        environment = {**one_device(quick=True), "PYTHONPATH": str(tmp_path / "shim"), "PORTABLE_LOG": str(log), **more}
        done = subprocess.run(
            [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout + done.stderr, len(set(log.read_text().split()))

    return start


def test_load_needs_no_fcntl(run):
    code = "import bert_elmo_jax; print(bert_elmo_jax.load('tests/goldens/bert_tiny').encode(['the ship']))"
    output, _ = run("-W", "ignore", "-c", code, WITHOUT_FCNTL="1")
    assert "Encoded" in output


def test_pretraining_and_fine_tuning(run, tmp_path):
    run("-m", "experiments.pretrain", *BERT, f"--workdir={tmp_path / 'bert'}")
    rows = "text\tlabel\n" + "the ship is at sea\t0\nthe bank has money\t1\n" * 8
    (tmp_path / "rows.tsv").write_text(rows, encoding="utf-8")
    task = ["--task=classification", "--text=text", "--label=label", "--config.epochs=1", f"--init={tmp_path / 'bert'}"]
    files = [f"--{part}={tmp_path / 'rows.tsv'}" for part in ("train", "dev")]
    run("-m", "experiments.finetune", *task, *files, f"--workdir={tmp_path / 'head'}")
    assert (tmp_path / "head" / "result.json").is_file()


SWEEP = '''
"""A sweep of one pretraining."""
from bert_elmo_jax.sweeps.definition import Paper
SCALES = ("toy",)
PAPER = Paper("none", ("loss",), {"a": (1.0,), "b": (None,)}, "a")
SETTINGS = {"steps": 2, "eval_every": 2, "checkpoint_every": 2, "toyworld.documents": 60, "eval_batches": 1,
            "model.hidden_size": 8, "model.num_heads": 2, "model.feed_forward_size": 8, "model.num_layers": 1}


def sweep(add):
    """Two seeds."""
    for seed, row in enumerate(PAPER.rows):
        run = add.pretrain(row, "bert:toy", seed=seed, **SETTINGS)
        add.figure(row, "loss", run, of="perplexity", score="held_out/mlm_perplexity")
'''


@pytest.mark.parametrize("system", [pytest.param({}, id="forkserver"), pytest.param({"AS_ON_MACOS": "1"}, id="spawn")])
def test_a_sweep(run, tmp_path, system):
    file = tmp_path / "small.py"
    file.write_text(SWEEP, encoding="utf-8")
    words = [f"--sweep={file}", f"--workdir={tmp_path / 'w'}", "--jobs=2"]
    output, processes = run("-m", "experiments.sweep", *words, **system)
    assert "2 of 2 done" in output
    assert "| b | " in (tmp_path / "w" / "small-toy" / "table.md").read_text(encoding="utf-8")
    # The sweep, the resource tracker, and either a fork server or two runs.
    assert processes == (4 if system else 3), "the shim reached the processes that the sweep started"


QUICKSTART = """
import sys
from pathlib import Path
from bert_elmo_jax.quickstart.run_quickstart import run_quickstart
from tests.experiments.test_quickstart import CEILINGS, TINY
if __name__ == "__main__":
    sys.exit(run_quickstart(Path(sys.argv[1]), CEILINGS, TINY, jobs=2))
"""


def test_the_quickstart(run, tmp_path):
    (tmp_path / "start.py").write_text(f"import sys\nsys.path.insert(0, {str(ROOT)!r}){QUICKSTART}", encoding="utf-8")
    run(str(tmp_path / "start.py"), str(tmp_path / "w"))
    assert (tmp_path / "w" / "report.html").is_file()
