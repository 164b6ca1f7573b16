"""Rules for the repository: pinned dependencies, names and lengths of files, messages of the Makefile."""

import configparser
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]


def setup_cfg() -> configparser.ConfigParser:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    return config


def test_the_lock_pins_every_core_dependency():
    requirements = re.findall(r"^\s*([A-Za-z0-9_-]+)", setup_cfg()["options"]["install_requires"], re.M)
    pinned = {
        line.split("==")[0].strip().lower()
        for line in (ROOT / "requirements.txt").read_text().splitlines()
        if "==" in line
    }
    assert {name.lower() for name in requirements} <= pinned


def test_no_utils_and_no_common():
    names = {p.stem for p in ROOT.glob("bert_elmo_jax/**/*.py")}
    assert not names & {"utils", "util", "common", "helpers", "misc"}


@pytest.fixture
def make(tmp_path):
    """Run `make test` with an interpreter, and return its message without make's own lines."""

    def run(python):
        done = subprocess.run(
            ["make", "--silent", "test", f"PYTHON={python}", f"VENV={tmp_path / 'venv'}"],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 2 and not (tmp_path / "venv").exists()
        return [line for line in done.stderr.splitlines() if not line.startswith("make")]

    return run


@pytest.mark.parametrize("stub", [True, False])
def test_missing_interpreter_is_named(make, tmp_path, stub):
    python = tmp_path / "python3.99"
    if stub:  # a version manager's, here pyenv's
        message = "pyenv: python3.99: command not found\n\nThe `python3.99' command exists in:\n  3.99.1"
        python.write_text(f'#!/bin/sh\ncat >&2 <<"END"\n{message}\nEND\nexit 127\n')
        python.chmod(0o755)
    [line] = make(python)
    assert f"There is no interpreter '{python}'" in line
    assert "pyenv install 3.99" in line and "make test PYTHON=" in line


def test_old_interpreter_is_named(make, tmp_path):
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\ncase "$*" in *exit*) exit 1;; *--version*) echo Python 3.9.1;; esac\n')
    python.chmod(0o755)
    [line] = make(python)
    assert "needs Python 3.11 or newer" in line and "is Python 3.9.1" in line and "make test PYTHON=" in line


def test_tests_of_several_devices_have_a_run_with_eight():
    done = subprocess.run(["make", "--dry-run", "test"], cwd=ROOT, capture_output=True, text=True, check=True)
    [line] = [line for line in done.stdout.splitlines() if line.startswith("TEST_DEVICES=8")]
    marked = [p for p in (ROOT / "tests").rglob("test_*.py") if "pytest.mark.devices" in p.read_text(encoding="utf-8")]
    assert len(marked) > 15 and all(str(path.relative_to(ROOT)) in line for path in marked)


def test_one_address():
    """The address is in `setup.cfg`; to replace it everywhere: `git grep -l OLD | xargs sed -i`."""
    address = re.search(r"^url = (\S+)$", (ROOT / "setup.cfg").read_text(encoding="utf-8"), re.M)[1]
    files = [
        ROOT / "CITATION.cff",
        *ROOT.glob("*.md"),
        *(ROOT / "notebooks").glob("*.ipynb"),
        *ROOT.glob("docs/**/*.md"),
        ROOT / "bert_elmo_jax" / "sharing" / "model_card.py",
    ]
    mentions = {
        (file.name, match)
        for file in files
        for match in re.findall(r"https://github\.com/[\w.-]+/bert_elmo_jax\b", file.read_text(encoding="utf-8"))
    }
    assert ("CITATION.cff", address) in mentions
    assert {match for _, match in mentions} == {address}


def test_one_version():
    version = setup_cfg()["metadata"]["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (\S+)$", citation, re.M)[1] == version
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+) ", changelog, re.M)[1] == version


def test_the_workflows_run_what_developers_run():
    """The only name to be replaced is OWNER; each make target exists."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    python = {line.rpartition(" ")[2] for line in setup_cfg()["metadata"]["classifiers"].split("\n") if ":: 3." in line}
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
        for job in workflow["jobs"].values():
            versions = job.get("strategy", {}).get("matrix", {}).get("python", [])
            assert file.name != "tests.yml" or not versions or python <= set(versions)
            for step in job["steps"]:
                targets = re.findall(r"^make (\w+)", step.get("run", ""), re.M)
                assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets)
                actions = ("actions/", "pypa/gh-action-pypi-publish")
                assert "run" in step or step["uses"].startswith(actions)
