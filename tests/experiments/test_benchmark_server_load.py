"""The server under load: figures of a load generator, a peer that must agree, a kill and a restart."""

import re
import sys
from pathlib import Path

import pytest
from absl.testing import flagsaver

from bert_elmo_jax import load
from bert_elmo_jax.heads.sentence_head import SentenceHead

ROOT = Path(__file__).parents[2]
LINE = (
    r"^ours, float32, 2 clients: \d+ requests per second, p50 2.0 ms, p95 3.0 ms, p99 4.0 ms, max 5.0 ms; 3 answers, "
)
GENERATOR = """
import json, pathlib, sys, urllib.request
(script,) = [pathlib.Path(word[2:]) for word in sys.argv if word.startswith("-s")]
bodies = (script.parent / "bodies.jsonl").read_text().splitlines()
for body in bodies[:3]:
    kind = {"Content-Type": "application/json"}
    request = urllib.request.Request(sys.argv[-1] + "/v1/embeddings", body.encode(), kind)
    assert json.load(urllib.request.urlopen(request))["data"]
print("Running")
print(json.dumps({"requests": 3, "microseconds": 10, "errors": 0, "p50": 2000, "p95": 3000, "p99": 4000, "max": 5000}))
"""


@pytest.fixture
def server_load(program):
    return program("benchmarks.server_load")


@pytest.fixture
def generator(tmp_path, monkeypatch):
    """Put a load generator of three requests in front of the path."""
    file = tmp_path / "bin" / "wrk"
    file.parent.mkdir()
    file.write_text(f"#!{sys.executable}\n{GENERATOR}", encoding="utf-8")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", str(file.parent), prepend=":")
    return file


@pytest.mark.long
def test_a_server_is_measured_killed_and_started_again(server_load, generator, tmp_path, capsys):
    encoder = load(ROOT / "tests" / "goldens" / "bert_tiny")
    encoder.sentence_head = SentenceHead(("mean",), ("normalize",))
    encoder.save_sentences(tmp_path / "model")
    with flagsaver.flagsaver(model=str(tmp_path / "model"), clients=["2"], seconds=1):
        server_load.main()
    measured, again = capsys.readouterr().out.splitlines()
    assert re.match(LINE + r"0 errors; \d+ MiB before, \d+ after$", measured), measured
    assert again.startswith("killed under load and started again: ready after ")


def test_a_generator_that_fails(server_load, generator, tmp_path):
    generator.write_text(f"#!{sys.executable}\nraise SystemExit('unable to connect')\n", encoding="utf-8")
    with pytest.raises(OSError, match="wrk ended with status 1: unable to connect"):
        server_load.send_load(tmp_path, 1, 1, 1)


def test_without_a_generator(server_load, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with flagsaver.flagsaver(model=str(tmp_path)), pytest.raises(ValueError, match="wrk is not installed: apt-get"):
        server_load.main()


def test_a_server_that_ends_at_once(server_load):
    with (
        pytest.raises(OSError, match="ended with status 3"),
        server_load.running(lambda port: [sys.executable, "-c", "raise SystemExit(3)"]),
    ):
        pass


def test_servers_must_agree(server_load):
    server_load.check_same([1.0, 0.5], [1.0, 0.50001])
    with pytest.raises(ValueError, match=r"differ by 0\.1"):
        server_load.check_same([1.0, 0.5], [1.0, 0.6])
