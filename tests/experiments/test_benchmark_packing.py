"""The benchmark runs at a toy size, and prints the gain of packing."""

import re
import subprocess
import sys

import pytest


@pytest.mark.long
def test_packed_rows_hold_more_real_tokens():
    command = [
        sys.executable,
        "-m",
        "experiments.benchmarks.packing",
        "--lengths=128",
        "--positions=512",
        "--repeats=2",
    ]
    command.append("--repeats=2")
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    alone, packed = (float(re.search(r"([\d.]+) real tokens per row", line)[1]) for line in lines[1:3])
    assert 128 >= packed > 1.2 * alone
    assert re.search(r"packed over alone: [\d.]+ times", lines[3])
