"""A sweep that is asked to stop: its runs save, and a second interrupt ends at once. The campaigns kill sweeps."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

FOLDER, ROOT = Path(__file__).parent, Path(__file__).parents[2]


def start(file, workdir, jobs=2):
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{FOLDER}", "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen(
        [sys.executable, str(FOLDER / "fake_sweep.py"), file, str(workdir), str(jobs)], env=environment, cwd=ROOT,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def tables(workdir):
    return [(workdir / "small-toy" / name).read_text(encoding="utf-8") for name in ("table.md", "table.csv")]


@pytest.mark.long
def test_stopped_it_says_so_and_what_failed_is_told(write_small, tmp_path):
    file = write_small(more={("b", "NER"): {"text": "fail"}, ("c", "MNLI"): {"text": "saves"}}, seeds=(0, 1))
    stopped = start(file, tmp_path / "w")
    until = time.monotonic() + 60
    while time.monotonic() < until and not list((tmp_path / "w").glob("points/c-MNLI-*/started.txt")):
        time.sleep(0.01)
    time.sleep(0.3)  # until it waits for the signal
    assert (tmp_path / "w" / "small-toy" / "table.md").is_file()
    os.kill(stopped.pid, signal.SIGTERM)
    _, output = stopped.communicate(timeout=60)
    assert stopped.returncode == 75, output
    assert "the same command continues" in output
    again = start(file, tmp_path / "w")
    _, output = again.communicate(timeout=120)
    assert again.returncode == 1
    assert "b, NER, seed 0: failed (status 3), 2 times. The last lines of" in output and "강가에 배가 없다" in output
    assert "failed: failed (status 3)" in tables(tmp_path / "w")[0]
    assert tables(tmp_path / "w")[0].count("±") >= 5, "the others went on"
    changed = write_small(more={("b", "NER"): {"text": "once"}, ("c", "MNLI"): {"text": "saves"}}, seeds=(0, 1))
    mended = start(changed, tmp_path / "w")
    _, output = mended.communicate(timeout=120)
    assert mended.returncode == 0, output
    assert output.count("no longer a point of this sweep; it is left alone") == 2
    assert len(list((tmp_path / "w" / "points").glob("b-NER-*"))) == 4


@pytest.mark.long
@pytest.mark.parametrize(("how", "saved"), [("TERM TERM", True), ("INT", True), ("INT INT", False)])
def test_only_a_second_interrupt_is_in_a_hurry(write_small, tmp_path, how, saved):
    """`timeout` sends SIGTERM twice: a run must still save."""
    file = write_small(steps={"a": 10}, seeds=(0,), more={("a", "NER"): {"text": "saves"}})
    sweep = start(file, tmp_path / "w")
    until = time.monotonic() + 60
    while time.monotonic() < until and not list((tmp_path / "w").glob("points/a-NER-*/started.txt")):
        time.sleep(0.01)
    time.sleep(0.3)
    for name in how.split():
        os.kill(sweep.pid, getattr(signal, f"SIG{name}"))
        time.sleep(0.4)
    _, output = sweep.communicate(timeout=60)
    assert sweep.returncode == 75, output
    assert bool(list((tmp_path / "w").glob("points/a-NER-*/saved.txt"))) == saved
    assert ("ended at once" in output) != saved
