"""Progress on a terminal and elsewhere: a bar that is redrawn, or a line every ten seconds."""

import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from bert_elmo_jax import progress_bars
from bert_elmo_jax.progress_bars import BarPart, LineBar, count_rows, progress_bar

ROOT = Path(__file__).parents[1]
# A clock that runs a second in each step.
SLOW = """
import time
now = 1000.0
time.time = lambda: now
from bert_elmo_jax.progress_bars import progress_bar
with progress_bar({total}, "predicting", "texts") as bar:
    bar.announce("compiling")
    bar.announce("predicting")
    for _ in range(300):
        now += 1
        bar.update()
    with bar.waiting_for("compiling the evaluation"):
        now += 60
"""


def run_in_pipe(code):
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stderr


def run_in_terminal(code):
    """Return the output of a program in a terminal."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=theirs) as process:
        os.close(theirs)
        output = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # Linux, at the end
                break
            if not part:
                break
            output += part
        process.wait()
    os.close(ours)
    return output.decode()


def test_a_pipe_gets_a_line_every_ten_seconds():
    lines = run_in_pipe(SLOW.format(total=300)).splitlines()
    assert len(lines) == 2 + 30 + 1 + 1, lines  # the names, 300 seconds, the evaluation, and the end
    assert "\r" not in "".join(lines) and all(lines)
    assert lines[0].startswith("compiling:   0%| 0/300 texts [00:00<?")
    assert re.fullmatch(r"predicting:  10%\| 30/300 texts \[00:30<04:30, +1\.00texts/s\]", lines[4]), lines[4]
    assert lines[-2].startswith("compiling the evaluation: 100%| 300/300")
    assert lines[-1].startswith("predicting: 100%| 300/300 texts [06:00<00:00") and lines[-2] != lines[-1]


def test_a_terminal_gets_a_bar():
    output = run_in_terminal(SLOW.format(total=300))
    assert output.count("\r") > 100 and "predicting: 100%|█" in output
    assert "\rcompiling:   0%|" in output and "compiling the evaluation: 100%|" in output
    assert output.strip("\r\n").count("\n") == 0


def test_a_stream_has_no_total():
    lines = run_in_pipe(SLOW.format(total=None)).splitlines()
    assert lines[3] == "predicting: 20 texts [00:20,  1.00texts/s]" and "%" not in "".join(lines)


@pytest.fixture
def clock(monkeypatch):
    seconds = [1000.0]
    monkeypatch.setattr("tqdm.std.time", lambda: seconds[0])
    return seconds


def test_waits_are_left_out_of_the_time_left(clock, capsys):
    with progress_bar(100, "", "step") as bar:
        assert isinstance(bar, LineBar)
        for _ in range(50):
            clock[0] += 1
            bar.update()
        with bar.waiting_for("evaluating"):
            clock[0] += 1000
        before = bar.last_print_t
        clock[0] += 10
        bar.update(10)
        assert bar.last_print_t == before + 10
    assert "60/100 step [17:40<00:40" in capsys.readouterr().err.splitlines()[-1]


def test_a_resumed_run_counts_from_its_step(clock, capsys):
    with progress_bar(100, "", "step", initial=40) as bar:
        clock[0] += 30  # of a compilation
        bar.start_at(41)
        clock[0] += 10
        bar.update(10)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(" 41%| 41/100 step [00:00") and "-" not in "".join(lines)
    assert lines[-1].startswith(" 51%| 51/100 step [00:10<00:49,")


def test_a_part_of_a_bar(capsys):
    with progress_bar(10, "predicting", "examples") as bar:
        bar.shapes = set()
        bar.pass_over(4)
        with count_rows(BarPart(bar, 6), 12) as counter:
            for shape in (1, 1, 2):
                with counter.computing(shape):
                    pass
                counter.update(4)
                assert bar.n in (6, 8, 10)
        assert (bar.n, bar.initial, bar.shapes) == (10, 4, {1, 2})
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["compiling", "predicting"]
    with count_rows(False, 3) as hidden:
        hidden.update(3)
        with hidden.computing(1), hidden.waiting_for("a moment"):
            pass
    assert capsys.readouterr().err == "" and progress_bars.EVERY == 10
