"""A sweep that is killed at any moment and restarted has the same table, and runs shared points once."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ..simulated_devices import program_environment

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]


def start(file, workdir, jobs=2):
    asked = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}", "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen(
        [sys.executable, str(HERE / "fake_sweep.py"), file, str(workdir), str(jobs)], env=asked, cwd=ROOT,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def tables(workdir):
    return [(workdir / "small-toy" / name).read_text(encoding="utf-8") for name in ("table.md", "table.csv")]


def points_of(workdir):
    """Return the processes of running points, found by their locks."""
    found = []
    for lock in (workdir / "points").glob("*/lock"):
        for process in Path("/proc").glob("[0-9]*"):
            try:
                names = [str(file.readlink()) for file in (process / "fd").iterdir()]
            except OSError:
                continue
            if str(lock) in names:
                found.append(int(process.name))
    return found


@pytest.mark.long  # the campaign of kills and the test below stop sweeps, too
def test_the_table_is_that_of_the_undisturbed_sweep(write_small, tmp_path):
    file = write_small(more={("b", "NER"): {"text": "once"}, ("c", "MNLI"): {"text": "slow"}}, seeds=(0, 1))
    undisturbed = start(file, tmp_path / "one", jobs=1)
    _, said = undisturbed.communicate(timeout=120)
    assert undisturbed.returncode == 0, said
    assert said.count("trying again") == 2 and "15 of 15 done" in said
    coins = random.Random(0)
    for _ in range(2):
        killed = start(file, tmp_path / "two")
        until = time.monotonic() + 60
        before = len(list((tmp_path / "two").glob("points/*/result.json")))
        while time.monotonic() < until and len(list((tmp_path / "two").glob("points/*/result.json"))) < before + 4:
            time.sleep(0.01)
        time.sleep(coins.random() * 0.3)
        os.kill(killed.pid, signal.SIGKILL)
        killed.communicate()
    last = start(file, tmp_path / "two")
    until = time.monotonic() + 60
    killed_one = False
    while time.monotonic() < until and not killed_one:
        for victim in points_of(tmp_path / "two")[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
                killed_one = True
    _, said = last.communicate(timeout=120)
    assert last.returncode == 0, said
    assert tables(tmp_path / "two") == tables(tmp_path / "one")
    for run in (tmp_path / "one" / "points").glob("BERT-*"):
        assert (run / "started.txt").read_text().count("started") == 1, "shared pretraining is run exactly once"


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
    _, said = stopped.communicate(timeout=60)
    assert stopped.returncode == 75, said
    assert "the same command continues" in said
    again = start(file, tmp_path / "w")
    _, said = again.communicate(timeout=120)
    assert again.returncode == 1
    assert "b, NER, seed 0: failed (status 3), 2 times. The last lines of" in said and "강가에 배가 없다" in said
    assert "failed: failed (status 3)" in tables(tmp_path / "w")[0]
    assert tables(tmp_path / "w")[0].count("±") >= 5, "the others went on"
    changed = write_small(more={("b", "NER"): {"text": "once"}, ("c", "MNLI"): {"text": "saves"}}, seeds=(0, 1))
    mended = start(changed, tmp_path / "w")
    _, said = mended.communicate(timeout=120)
    assert mended.returncode == 0, said
    assert said.count("no longer a point of this sweep; it is left alone") == 2
    assert len(list((tmp_path / "w" / "points").glob("b-NER-*"))) == 4


@pytest.mark.parametrize(
    ("how", "saved"),
    [
        pytest.param("TERM TERM", True, marks=pytest.mark.long),
        pytest.param("INT", True, marks=pytest.mark.long),
        ("INT INT", False),
    ],
)
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
    _, said = sweep.communicate(timeout=60)
    assert sweep.returncode == 75, said
    assert bool(list((tmp_path / "w").glob("points/a-NER-*/saved.txt"))) == saved
    assert ("ended at once" in said) != saved


@pytest.mark.long
def test_ten_random_moments_of_a_real_sweep(write_toy, tmp_path):
    file = write_toy()
    command = [sys.executable, "-m", "experiments.sweep", f"--sweep={file}", "--jobs=2", "--retries=9"]

    def begin(workdir):
        return subprocess.Popen(
            [*command, f"--workdir={workdir}"], cwd=ROOT, env=program_environment(), stderr=subprocess.PIPE, text=True
        )

    whole = begin(tmp_path / "one")
    _, said = whole.communicate(timeout=900)
    assert whole.returncode == 0, said
    coins = random.Random(1)
    for number in range(10):
        sweep = begin(tmp_path / "two")
        time.sleep(4 + 8 * coins.random())
        victims = [sweep.pid] if number % 2 == 0 else points_of(tmp_path / "two")[:1]
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
        if number % 2:
            time.sleep(1)
            sweep.terminate()
        sweep.communicate(timeout=300)
    last = begin(tmp_path / "two")
    _, said = last.communicate(timeout=900)
    assert last.returncode == 0, said
    names = ("table.md", "table.csv")
    for name in names:
        assert (tmp_path / "two" / "tiny-toy" / name).read_bytes() == (
            tmp_path / "one" / "tiny-toy" / name
        ).read_bytes()
