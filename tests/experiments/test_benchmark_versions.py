"""Two versions of this project take turns: this code and another checkout."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from absl.testing import flagsaver

ROOT = Path(__file__).parents[2]
LINE = r"^(\w+)( in toy size)?: (.*), (float32|bfloat16): \S+ [\d.]+ s, this [\d.]+ s, ratio ([\d.]+) \((.*)\)(.*)$"
SIDE = """
import json, sys
print(json.dumps({"check": [FIGURE]}), flush=True)
for line in sys.stdin:
    print(SECONDS, flush=True)
"""
WORKS = """
from pathlib import Path
class Work:
    name, cases = "one_text", {"one_text": "one sentence of 11 words, warm"}
    def prepare(self, folder, tiny, texts):
        (folder / "inputs").write_text("here", encoding="utf-8")
WORKS = [Work()]
"""


def write_version(folder, seconds, figure):
    """Write a checkout whose only work takes these seconds and reports this figure."""
    package = folder / "experiments" / "benchmarks"
    package.mkdir(parents=True)
    for name in (package.parent / "__init__.py", package / "__init__.py"):
        name.write_text("", encoding="utf-8")
    (package / "_works.py").write_text(WORKS, encoding="utf-8")
    text = SIDE.replace("SECONDS", str(seconds)).replace("FIGURE", str(figure))
    (package / "_side.py").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def versions(program, monkeypatch, tmp_path):
    module = program("benchmarks.versions")
    monkeypatch.setattr(sys.modules["experiments.benchmarks._turns"], "SETTLE", 0.0)
    monkeypatch.setattr(module, "ROOT", write_version(tmp_path / "new", 1.5, 0.25))
    return module


def test_two_versions_take_turns(versions, tmp_path, capsys):
    base = str(write_version(tmp_path / "old", 3.0, 0.5))
    with flagsaver.flagsaver(base=base, what=["one_text", "tagger"], pairs=2, precisions=["float32"]):
        versions.main()
    first, second = capsys.readouterr().out.splitlines()
    assert re.match(LINE, first)[5] == "0.500"
    assert first.endswith(" ratio 0.500 (2 × 7 turns, 0.500 to 0.500); figures differ by 0.25")
    assert second.startswith("tagger: training, prediction") and second.endswith(f"not in {base}")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_commit_is_unpacked(versions, tmp_path):
    folder = write_version(tmp_path / "kept", 1.0, 0.0)
    (folder / "bert_elmo_jax").mkdir()
    (folder / "bert_elmo_jax" / "__init__.py").write_text("", encoding="utf-8")
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "the first"]):
        subprocess.run([*git, *words], check=True)
    versions.ROOT = folder
    with versions.unpack_base("HEAD") as base:
        assert (base / "experiments" / "benchmarks" / "_side.py").is_file() and base != folder
    assert not base.exists()


@pytest.mark.long
def test_this_checkout_beside_itself(program, capsys):
    versions = program("benchmarks.versions")
    flags = {"base": str(ROOT), "what": ["one_text", "first_call"], "precisions": ["float32"]}
    with flagsaver.flagsaver(**flags, tiny=True, turns=1):
        versions.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and all(re.match(LINE, line) and line.endswith("differ by 0") for line in lines)
