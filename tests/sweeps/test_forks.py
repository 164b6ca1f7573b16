"""Real processes: their words, logs, statuses and devices; and none is left when whoever started them is gone."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
ODD = """
import os, signal, sys, time
what = sys.argv[1]
print(what, __name__, os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
def save(*_):
    print("saved", flush=True)
    sys.exit(75)
if what == "wait":
    signal.signal(signal.SIGTERM, save)
    time.sleep(60)
elif what == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
elif what == "raise":
    raise ValueError("강가에")
elif what == "text":
    sys.exit("in words")
elif what == "work":
    sum(range(3_000_000))
else:
    sys.exit(int(what))
"""


@pytest.fixture
def odd(tmp_path, monkeypatch):
    """A module that does odd things, where the processes find it."""
    (tmp_path / "odd.py").write_text(ODD, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def collect(runner, count):
    found = {}
    until = time.monotonic() + 30
    while len(found) < count and time.monotonic() < until:
        found |= {ended.key: ended for ended in runner.wait(0.2)}
    return found


def test_every_way_to_end(sweeps, odd):
    runner = sweeps.forks.Forks(2, devices=["3", "5"], preloaded=())
    try:
        words = ["0", "7", "raise", "text", "kill", "work"]
        found = {}
        for pair in zip(words[::2], words[1::2]):
            for word in pair:
                runner.start(sweeps.forks.Launch(word, "odd", [word], str(odd / f"{word}.txt")))
            found |= collect(runner, 2)
    finally:
        runner.close()
    assert {key: ended.status for key, ended in found.items()} == {
        "0": 0, "7": 7, "raise": 1, "text": 1, "kill": -9, "work": 0,
    }  # fmt: skip
    logs = {word: (odd / f"{word}.txt").read_text(encoding="utf-8") for word in words}
    assert "ValueError: 강가에" in logs["raise"] and "in words" in logs["text"]
    for pair in zip(words[::2], words[1::2]):
        lines = [logs[word].splitlines()[0] for word in pair]
        assert [line.split()[:2] for line in lines] == [[word, "__main__"] for word in pair]
        assert {line.split()[2] for line in lines} == {"3", "5"}, "a device each"
    assert found["work"].seconds > 0 and found["work"].processor > 0.01


def test_each_has_cores_of_its_own(sweeps, odd, monkeypatch):
    with monkeypatch.context() as five:
        five.setattr(os, "sched_getaffinity", lambda _: {5, 2, 7, 3, 11})
        assert sweeps.forks.cores_of(2) == [[2, 5], [3, 7]], "as many for each"
        assert sweeps.forks.cores_of(1) == [[]] and sweeps.forks.cores_of(6) == [[]] * 6
    there = os.sched_getaffinity(0)
    if len(there) < 2:
        pytest.skip("this machine has one core")
    (odd / "cores.py").write_text("import os, time\nprint(*os.sched_getaffinity(0))\ntime.sleep(0.2)\n")
    runner = sweeps.forks.Forks(2, preloaded=())
    try:
        for key in "ab":
            runner.start(sweeps.forks.Launch(key, "cores", [], str(odd / f"{key}.txt")))
        assert {ended.status for ended in collect(runner, 2).values()} == {0}
    finally:
        runner.close()
    a, b = (set(map(int, (odd / f"{key}.txt").read_text().split())) for key in "ab")
    assert a and b and not a & b and a | b <= there


def test_asked_to_stop_they_save(sweeps, odd):
    runner = sweeps.forks.Forks(1, preloaded=())
    try:
        runner.start(sweeps.forks.Launch("w", "odd", ["wait"], str(odd / "w.txt")))
        while "wait" not in ((odd / "w.txt").read_text() if (odd / "w.txt").is_file() else ""):
            time.sleep(0.02)
        time.sleep(0.1)
        runner.stop()
        assert collect(runner, 1)["w"].status == 75
    finally:
        runner.close()


def test_a_killed_sweep_leaves_nobody_behind(sweeps, odd):
    code = (
        "from bert_elmo_jax.sweeps.forks import *; import time\n"
        f"r = Forks(1, preloaded=()); r.start(Launch('w', 'odd', ['wait'], {str(odd / 'w.txt')!r})); time.sleep(60)"
    )
    asked = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{odd}"}
    sweep = subprocess.Popen([sys.executable, "-c", code], env=asked)
    log = odd / "w.txt"
    until = time.monotonic() + 30
    while not (log.is_file() and "wait" in log.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.1)
    os.kill(sweep.pid, signal.SIGKILL)
    sweep.wait()
    while "saved" not in log.read_text() and time.monotonic() < until:
        time.sleep(0.02)
    assert "saved" in log.read_text()
    while not (odd / "unheard.jsonl").is_file() and time.monotonic() < until:
        time.sleep(0.02)
    for _ in range(2):  # what it cost until then is known to the next sweep, and counted once
        facts = sweeps.schedule.facts_of(odd)
        assert [start["status"] for start in facts["starts"]] == [75]
        assert 0.1 < sweeps.schedule.seconds_of(facts) < 60 and sweeps.schedule.seconds_of(facts, "processor") > 0
        (odd / "point.json").write_text(json.dumps(facts))


def test_the_library_can_be_preloaded():
    """What is imported before the forks starts no thread and no device; the server says so of itself."""
    code = "from bert_elmo_jax.sweeps.fork_server import serve; serve"
    done = subprocess.run(
        [sys.executable, "-c", code], input="", capture_output=True, text=True, cwd=ROOT, timeout=120, check=True
    )
    assert "ready" in done.stdout and not done.stderr


def test_threads_and_devices_are_refused(sweeps, monkeypatch):
    import threading

    monkeypatch.setattr(threading, "enumerate", lambda: [threading.main_thread(), threading.Thread(name="other")])
    with pytest.raises(RuntimeError, match="must not start threads"):
        sweeps.fork_server.check_forkable()


def test_jobs_that_share_a_device_share_its_memory(sweeps):
    assert sweeps.forks.environment("0", 2)["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.450"
    assert "XLA_PYTHON_CLIENT_MEM_FRACTION" not in sweeps.forks.environment("0")


def test_a_worker_of_ray_begins_anew_where_its_process_is_gone(sweeps, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = []

    class Gone:
        def __init__(self, jobs, cache):
            made.append(self)

        def start(self, launch, given):
            assert not hasattr(self, "started"), "the second start is that of another process"
            self.started = launch

        def wait(self, seconds):
            raise OSError("the process that runs the points ended")

    monkeypatch.setattr(sweeps.ray_runner, "Forks", Gone)
    for count in (1, 2):
        with pytest.raises(OSError, match="ended"):
            sweeps.ray_runner.run_launch(sweeps.forks.Launch("a", "odd", [], "log.txt"), str(tmp_path), str(tmp_path))
        assert len(made) == count
