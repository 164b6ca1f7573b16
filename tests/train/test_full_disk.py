"""A checkpoint that cannot be written is one clear error, without the tracebacks of the libraries underneath."""

import contextlib

import numpy as np
import pytest

from bert_elmo_jax.train.checkpoint import Checkpoints, save_params
from bert_elmo_jax.train.metrics import Metrics

resource = pytest.importorskip("resource", reason="only Unix has limits on the size of files")
TREE = {f"w{n}": np.random.default_rng(n).normal(size=4096).astype("f4") for n in range(30)}


@contextlib.contextmanager
def limited(size):
    """Limit the size of files, which acts like a full disk: the system refuses the same writes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def save_all(folder):
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(3, TREE, TREE, {})
        checkpoints.wait()


@pytest.mark.parametrize(
    ("save", "message"),
    [
        (lambda folder: save_params(folder, 3, TREE), r"checkpoints/3 could not be written: File too large$"),
        (save_all, "^the checkpoint of step 3 could not be written; there is no earlier one: File too large$"),
    ],
)
def test_one_error(save, message, tmp_path, capfd):
    with limited(20_000), pytest.raises(OSError, match=message) as raised:
        save(tmp_path / "run")
    error = raised.value
    while error is not None:  # our own error, and those that caused it
        assert error.__context__ is error.__cause__ or error.__suppress_context__
        error = error.__cause__
    assert "E1" not in capfd.readouterr().err
    assert not list(tmp_path.glob("run/checkpoints/3/files.json"))


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("flushed", [True, False])
def test_metrics_that_cannot_be_written(flushed, tmp_path):
    with limited(2_000), pytest.raises(OSError, match="File too large"), Metrics(tmp_path, 0) as metrics:
        for step in range(2_000):
            metrics.write(step, {"loss": 1.0})
        if flushed:
            metrics.flush()
