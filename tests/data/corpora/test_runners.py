"""The runner on Ray, with a stand-in for the cluster."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from bert_elmo_jax.data.corpora.runners import ray_runner


class RayError(Exception):
    """The base of Ray's errors."""


class RayTaskError(RayError):
    """The error of a job."""

    cause = ValueError("of the job")


class OutOfMemoryError(RayError):
    """The error of a job that was killed."""


class WorkerCrashedError(RayError):
    """The error of a worker that is gone."""


class NodeDiedError(RayError):
    """The error of a machine that is gone."""


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    """Replace Ray by a cluster of one worker, whose folder is another one; `error` is what its jobs end with."""
    errors = (RayError, RayTaskError, OutOfMemoryError, WorkerCrashedError)
    state = SimpleNamespace(error=None, cancelled=[])
    (tmp_path / "worker").mkdir()

    def get(job):
        if state.error:
            raise state.error
        caller = Path.cwd()
        os.chdir(tmp_path / "worker")
        job()
        os.chdir(caller)

    ray = SimpleNamespace(
        is_initialized=lambda: True,
        remote=lambda **_: lambda function: SimpleNamespace(remote=lambda *values: lambda: function(*values)),
        wait=lambda jobs, **_: (jobs[:1], jobs[1:]),
        get=get,
        cancel=state.cancelled.append,
        exceptions=SimpleNamespace(**{error.__name__: error for error in errors}),
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    for name in ("RAYON_NUM_THREADS", "TOKENIZERS_PARALLELISM"):  # which a worker sets
        monkeypatch.setenv(name, "1")
    monkeypatch.chdir(tmp_path)
    return state


def write(path, report):
    Path(path).touch()


def test_relative_paths_are_those_of_the_caller(cluster, tmp_path):
    ray_runner()(write, ["out"], lambda size: None)
    assert (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (RayTaskError(), ValueError, "of the job"),
        (OutOfMemoryError("long\ntext"), MemoryError, "a worker of the Ray cluster was killed"),
        (WorkerCrashedError(), MemoryError, "a worker of the Ray cluster was killed"),
        (NodeDiedError("gone\nlong text"), ConnectionError, r"lost a job \(NodeDiedError: gone; see `ray status`\)"),
        (RayError(), ConnectionError, r"lost a job \(RayError: no reason; see"),
    ],
)
def test_a_lost_worker_ends_in_one_line(cluster, error, expected, message):
    cluster.error = error
    with pytest.raises(expected, match=message) as raised:
        ray_runner()(write, ["out", "out2"], lambda size: None)
    assert "\n" not in str(raised.value)
    assert len(cluster.cancelled) == 1
