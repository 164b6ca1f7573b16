"""The repository keeps its own promises: layout, import rules, no long or nameless files."""

import configparser
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def setup_cfg() -> configparser.ConfigParser:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    return config


def test_every_subpackage_stands_in_an_import_contract():
    config = setup_cfg()
    contracts = "\n".join(
        value
        for section in config.sections()
        if section.startswith("importlinter:contract")
        for value in config[section].values()
    )
    folders = {p.name for p in (ROOT / "bert_elmo_jax").iterdir() if (p / "__init__.py").exists()}
    unnamed = {f for f in folders if f"bert_elmo_jax.{f}" not in contracts}
    assert not unnamed, f"no import rule speaks of {sorted(unnamed)}: add them to a contract in setup.cfg"


def test_the_lock_pins_every_core_dependency():
    wanted = re.findall(r"^\s*([A-Za-z0-9_-]+)", setup_cfg()["options"]["install_requires"], re.M)
    pinned = {
        line.split("==")[0].strip().lower()
        for line in (ROOT / "requirements.txt").read_text().splitlines()
        if "==" in line
    }
    assert {w.lower() for w in wanted} <= pinned


def test_no_utils_and_no_common():
    names = {p.stem for p in ROOT.glob("bert_elmo_jax/**/*.py")}
    assert not names & {"utils", "util", "common", "helpers", "misc"}


def test_programs_are_short():
    long = {p.name: n for p in ROOT.glob("experiments/*.py") if (n := len(p.read_text().splitlines())) > 150}
    assert not long, f"a program in experiments/ wires things together in about 100 lines: {long}"


def test_missing_interpreter_is_named(tmp_path):
    """Also where the stub of a version manager stands in for it, which exits with 127."""
    stub = tmp_path / "python3.99"
    stub.write_text("#!/bin/sh\necho 'pyenv: python3.99: command not found' >&2\nexit 127\n")
    stub.chmod(0o755)
    for python in (stub, tmp_path / "python3.98"):
        done = subprocess.run(
            ["make", "--silent", "check-python", f"PYTHON={python}", f"VENV={tmp_path / 'venv'}"], cwd=ROOT,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 2 and f"There is no interpreter '{python}'" in done.stderr
        assert "make test PYTHON=python3.11" in done.stderr and not (tmp_path / "venv").exists()
