"""Real sweeps, started by their command, and checks of the tables of the toy scale."""

import contextlib
import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..simulated_devices import program_environment

ROOT = Path(__file__).parents[2]
SWEEPS = ROOT / "experiments" / "sweeps"
NAMES = sorted(file.stem for file in SWEEPS.glob("[!_]*.py"))


def marked(names):
    """Return sweeps as parameters of a test of `make tables`."""
    return [pytest.param(name, marks=pytest.mark.tables) for name in names]


def run_toy(file, workdir, *more, quick=False):
    """Run a sweep on one device, with the compiler's optimisations unless `quick`."""
    done = subprocess.run(
        [sys.executable, "-m", "experiments.sweep", f"--sweep={file}", f"--workdir={workdir}", *more],
        cwd=ROOT, env=one_device(quick), capture_output=True, text=True, timeout=1800,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def one_device(quick=False):
    """Return the environment of such a run."""
    environment = program_environment()
    return environment if quick else {**environment, "XLA_FLAGS": "", "JAX_DISABLE_MOST_OPTIMIZATIONS": "0"}


def check_toy_scale(name, workdir, quick=False):
    """Run a sweep to its end, and look at its table.

    Where several workers share the cores, a sweep has one job and keeps to the core of its worker.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    with worker_core() if workers > 1 else contextlib.nullcontext():
        run_toy(f"experiments/sweeps/{name}.py", workdir, f"--jobs={1 if workers > 1 else 2}", quick=quick)
    text = (workdir / f"{name}-toy" / "table.md").read_text(encoding="utf-8")
    assert "–" not in text and (text.count("±") > 3 or "(one seed)" in text)
    lines = list(csv.DictReader((workdir / f"{name}-toy" / "table.csv").read_text(encoding="utf-8-sig").splitlines()))
    assert lines and all(line["n"] == line["seeds"] and line["mean"] for line in lines)


@contextlib.contextmanager
def worker_core():
    """Give the processes that this test worker starts one core, a different one from the next worker's."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = sorted(os.sched_getaffinity(0))
    worker = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    os.sched_setaffinity(0, {cores[worker % len(cores)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
