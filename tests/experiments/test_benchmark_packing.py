"""The benchmark runs at a toy size, and prints the gain of packing."""

import re

import pytest

from .programs import run_program


@pytest.mark.long
def test_packed_rows_hold_more_real_tokens():
    status, out, err = run_program("benchmarks.packing", "--lengths=128", "--positions=512", "--repeats=2")
    assert status == 0, err
    lines = out.splitlines()
    unpacked, packed = (float(re.search(r"([\d.]+) real tokens per row", line)[1]) for line in lines[1:3])
    assert 128 >= packed > 1.2 * unpacked
    assert re.search(r"packed over alone: [\d.]+ times", lines[3])
