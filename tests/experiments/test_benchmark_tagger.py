"""The benchmark runs at a toy size, on any machine, so that it cannot rot."""

import re
import sys

import pytest
from absl.testing import flagsaver

TINY = {"batches": 2, "batch_size": 2, "longest": 6, "lstm_size": 3, "layers": "2x4", "tags": 3, "repeats": 1}


@pytest.fixture(scope="module")
def benchmark(program):
    return program("benchmarks.tagger")


@pytest.mark.long
def test_ours_alone(benchmark, capsys):
    with flagsaver.flagsaver(**TINY):
        benchmark.main()
    said = capsys.readouterr().out
    assert re.search(r"\d+ words in 2 batches of 2 sentences, layers 2x4\n", said)
    names = [line.partition(":")[0].strip() for line in said.splitlines()[1:]]
    assert names == ["training", "prediction", "prediction, each tag with its probability"]


def test_a_peer_that_says_something_else_or_nothing(benchmark, tmp_path, monkeypatch):
    fake = tmp_path / "python"
    monkeypatch.setattr(benchmark, "make_passes", lambda *given: {})
    for body, error, message in (
        ("raise SystemExit('no torch here')", SystemExit, "ended without an answer"),
        ('print(\'{"loss": -1.0, "about": ""}\', flush=True); input()', AssertionError, "losses differ"),
    ):
        fake.write_text(f"#!{sys.executable}\n{body}\n")
        fake.chmod(0o755)
        with flagsaver.flagsaver(**TINY, peers=str(fake)), pytest.raises(error, match=message):
            benchmark.main()
