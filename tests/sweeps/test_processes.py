"""Real processes: their logs, statuses, devices and cores; and none survives the process that started it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bert_elmo_jax import platform_support
from bert_elmo_jax.sweeps.runners import Job, Processes, show_device, stop_asked

FOLDER, ROOT = Path(__file__).parent, Path(__file__).parents[2]


@pytest.fixture
def odd(tmp_path, monkeypatch):
    """Return jobs of `odd_calls`, selected by their action."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import odd_calls

    def job(action):
        config = str(ROOT / "experiments" / "configs" / "finetune.py")
        return Job(action, odd_calls.behave, config, {"seed": "3"}, str(tmp_path / action), {"action": action})

    return job


def collect(runner, count):
    ended_jobs = {}
    until = time.monotonic() + 60
    while len(ended_jobs) < count and time.monotonic() < until:
        ended_jobs |= {ended.key: ended for ended in runner.wait(0.2)}
    return ended_jobs


def wait_for(file, text, seconds=60):
    until = time.monotonic() + seconds
    while time.monotonic() < until and not (file.is_file() and text in file.read_text(encoding="utf-8")):
        time.sleep(0.02)
    assert text in file.read_text(encoding="utf-8")


ENDS = {"0": 0, "7": 7, "refuse": 2, "break": 1, "kill": -9, "text": 1}


@pytest.mark.parametrize(
    ("method", "words"),
    [
        pytest.param("forkserver", list(ENDS), id="forkserver", marks=pytest.mark.long),
        pytest.param("spawn", ["refuse", "7"], id="spawn"),
    ],
)
def test_every_way_to_end(odd, tmp_path, monkeypatch, method, words):
    monkeypatch.setattr(platform_support, "start_method", lambda: method)
    runner = Processes(2, devices=["3", "5"])
    ended_jobs = {}
    try:
        for pair in zip(words[::2], words[1::2]):
            for word in pair:
                runner.start(odd(word))
            ended_jobs |= collect(runner, 2)
    finally:
        runner.close()
    assert {key: ended.status for key, ended in ended_jobs.items()} == {word: ENDS[word] for word in words}
    logs = {word: (tmp_path / word / "log.txt").read_text(encoding="utf-8") for word in words}
    assert logs["refuse"].endswith("behave: 강가에\n"), "one line for an expected error"
    if len(words) == len(ENDS):
        assert "KeyError: '강가에'" in logs["break"] and "Traceback" in logs["break"]
        assert logs["text"].endswith("in words\n")
    for pair in zip(words[::2], words[1::2]):
        assert {logs[word].split()[1] for word in pair} == {"3", "5"}, "a device each"


@pytest.mark.long
def test_each_has_its_own_cores(odd, tmp_path, monkeypatch):
    with monkeypatch.context() as five:
        five.setattr(os, "sched_getaffinity", lambda _: {5, 2, 7, 3, 11})
        assert platform_support.split_cores(2) == [[2, 5], [3, 7]], "equally many for each"
        assert platform_support.split_cores(1) == [[]] and platform_support.split_cores(6) == [[]] * 6
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        pytest.skip("this machine has one core")
    runner = Processes(2)
    try:
        for key in "ab":
            runner.start(odd("cores")._replace(key=key, workdir=str(tmp_path / key)))
        assert {ended.status for ended in collect(runner, 2).values()} == {0}
    finally:
        runner.close()
    a, b = (set(map(int, (tmp_path / key / "log.txt").read_text().split("\n")[1].split())) for key in "ab")
    assert a and b and not a & b and a | b <= cores


def test_without_affinity_the_number_of_threads_is_limited(monkeypatch):
    for name in ("sched_setaffinity", "sched_getaffinity"):
        monkeypatch.delattr(os, name, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    for name in platform_support.THREAD_LIMITS:
        monkeypatch.setenv(name, "9")
        monkeypatch.delenv(name)
    assert platform_support.split_cores(2) == [[0, 2], [1, 3]]
    platform_support.limit_to_cores([1, 3])
    assert os.environ["NPROC"] == os.environ["OMP_NUM_THREADS"] == "2"


def test_asked_to_stop_they_save(odd, tmp_path):
    runner = Processes(1)
    try:
        runner.start(odd("wait"))
        wait_for(tmp_path / "wait" / "log.txt", "waiting")
        runner.stop()
        assert collect(runner, 1)["wait"].status == 75
    finally:
        runner.close()


SWEEP = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
sys.path.insert(0, {here!r})
import odd_calls
from bert_elmo_jax.sweeps.runners import Job, Processes
if __name__ == "__main__":
    runner = Processes(1)
    try:
        job = Job("w", odd_calls.behave, "experiments/configs/finetune.py", {{}}, sys.argv[1], {{"action": "wait"}})
        runner.start(job)
        print(runner.wait(60))
    finally:
        runner.close()
"""


@pytest.fixture
def sweep(tmp_path):
    """Return a process that runs a job, and the job's log."""
    file = tmp_path / "sweep.py"
    file.write_text(SWEEP.format(here=str(FOLDER)), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, str(file), str(tmp_path / "w")], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )  # fmt: skip
    wait_for(tmp_path / "w" / "log.txt", "waiting")
    yield process, tmp_path / "w" / "log.txt"
    process.kill()
    process.wait()


def test_a_killed_sweep_leaves_nobody_behind(sweep):
    process, log = sweep
    os.kill(process.pid, signal.SIGKILL)
    wait_for(log, "saved")


def test_a_signal_to_the_whole_group_reaches_no_run(sweep):
    """`timeout` and terminals signal a process group: only the sweep itself may stop its runs."""
    process, log = sweep
    os.killpg(process.pid, signal.SIGINT)
    process.wait(60)
    assert log.read_text(encoding="utf-8").endswith("saved\n"), "by the sweep, which has waited for it"


@pytest.mark.long
def test_the_library_can_be_preloaded():
    """Importing what runs need starts no thread and no device, so that a fork server may fork."""
    code = (
        "import sys, threading, bert_elmo_jax.sweeps.run_sweep, bert_elmo_jax.quickstart.run_quickstart\n"
        "assert threading.enumerate() == [threading.main_thread()], threading.enumerate()\n"
        "assert not sys.modules['jax._src.xla_bridge']._backends"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=120, check=True)


def test_jobs_that_share_a_device_share_its_memory():
    assert show_device("0", 2)["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.450"
    assert "XLA_PYTHON_CLIENT_MEM_FRACTION" not in show_device("0")


def test_timeout_sends_sigterm_twice():
    with stop_asked() as stop_requests:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert stop_requests() == 1
