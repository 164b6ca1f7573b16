"""A checkpoint that cannot be written is one clear error, without the tracebacks of the libraries underneath."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# A limit on the size of files acts like a full disk: the system refuses the same writes.
SAVE = """
import resource, sys
import numpy as np
from absl import logging
from bert_elmo_jax.train.checkpoint import Checkpoints, save_params
logging.set_verbosity(logging.WARNING)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
tree = {f"w{n}": np.random.default_rng(n).normal(size=4096).astype("f4") for n in range(30)}
if sys.argv[2] == "params":
    save_params(sys.argv[1], 3, tree)
with Checkpoints(sys.argv[1]) as checkpoints:
    checkpoints.save(3, tree, tree, {})
    checkpoints.wait()
"""


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("params", r"checkpoints/3 could not be written: File too large"),
        ("all", "the checkpoint of step 3 could not be written; there is no earlier one: File too large"),
    ],
)
def test_one_error(what, message, tmp_path):
    words = [sys.executable, "-W", "ignore", "-c", SAVE, str(tmp_path / "run"), what]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=200)
    *_, last = done.stderr.strip().splitlines()
    assert last.startswith("OSError: ") and last.endswith(message)
    assert "E1" not in done.stderr.partition("Traceback")[0]
    # Our own error, and those that caused it.
    assert done.stderr.count("Traceback") == 1 + done.stderr.count("The above exception was the direct cause")
    assert not list(tmp_path.glob("run/checkpoints/3/files.json"))


METRICS = """
import resource, sys
from bert_elmo_jax.train.metrics import Metrics
try:
    with Metrics(sys.argv[1], 0) as metrics:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))
        for step in range(2_000):
            metrics.write(step, {"loss": 1.0})
        if sys.argv[2] == "flush":
            metrics.flush()
except OSError as error:
    print("told:", error, file=sys.stderr)
"""


@pytest.mark.parametrize("when", ["flush", "close"])
def test_metrics_that_cannot_be_written(when, tmp_path):
    words = [sys.executable, "-W", "ignore", "-c", METRICS, str(tmp_path), when]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert done.stderr == "told: [Errno 27] File too large\n"
