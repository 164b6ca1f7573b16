"""Freed memory stays with a process that asks for it."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

# In its own process: the cost of a block depends on all that was freed before it.
FAULTS = """
import resource, sys, threading
from bert_elmo_jax.runs.start_run import keep_freed_memory

if sys.argv[1] == "kept":
    keep_freed_memory()

def step():  # as a step's arrays: large ones, all of them freed at its end
    arrays = [b"x" * (size * 1_000_000) for size in (5, 40, 9)]

def steps(count):
    for _ in range(count):
        step()

def run(count):
    thread = threading.Thread(target=steps, args=(count,))
    thread.start()
    thread.join()

for run in (run, steps):  # devices compute in threads
    run(2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    run(20)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how):
    """Return the pages requested in twenty steps, in a thread and outside."""
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, how],
        cwd=Path(__file__).parents[2], env={**os.environ, "GLIBC_TUNABLES": ""}, capture_output=True, text=True,
        timeout=100, check=True,
    )  # fmt: skip
    return [int(line) for line in done.stdout.split()]


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or not hasattr(ctypes.CDLL(None), "mallopt"),
    reason="the C library here is not glibc",
)
@pytest.mark.long
def test_memory_is_asked_for_once():
    given_back, kept_faults = faults("given back"), faults("kept")
    assert all(10 * few < many for few, many in zip(kept_faults, given_back, strict=True)), (given_back, kept_faults)
