"""The benchmark of `predict` runs, on its own sentences."""

import pytest
from absl.testing import flagsaver


@pytest.mark.long
def test_it_says_how_often(program, capsys):
    benchmark = program("benchmarks.predict")
    with flagsaver.flagsaver(preset="tiny", repeats=1, sentences=8):
        benchmark.main()
    assert "times as long as the bare forward pass" in capsys.readouterr().out
