"""The record of `make proofs`: what passed on a commit is not run again, what failed or was cut off is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

TESTS = """
import os, pytest
def test_passes(): pass
def test_fails(): assert "REPAIRED" in os.environ
@pytest.mark.skip(reason="no card")
def test_skipped(): pass
@pytest.fixture
def broken(): raise OSError("no disk")
def test_without_its_fixture(broken): pass
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "test_three.py").write_text(TESTS)
    (tmp_path / "test_other.py").write_text("def test_stays(): pass\n")
    (tmp_path / ".gitignore").write_text(".pytest_cache\n__pycache__\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    commit(tmp_path)
    return tmp_path


def commit(project: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for arguments in (["add", "-A"], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *arguments], cwd=project, check=True)


def run(project: Path, *options, **variables) -> str:
    return start(project, *options, **variables).stdout


def start(project: Path, *options, **variables) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "pytest", "-p", "tests.recorded_proofs", "-q", *options]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(root), **variables}
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)


def test_passed_tests_of_a_commit_are_not_run_again(project):
    first = run(project, "-n2")
    assert "1 failed, 2 passed, 1 skipped, 1 error" in first
    [record] = (project / ".pytest_cache/proofs").iterdir()
    outcomes = {
        row["test"].split("::")[1]: row["outcome"] for row in map(json.loads, record.read_text().strip().splitlines())
    }
    assert outcomes == {
        "test_stays": "passed",
        "test_passes": "passed",
        "test_fails": "failed",
        "test_skipped": "skipped",
        "test_without_its_fixture": "failed",
    }
    with record.open("a") as file:
        file.write('{"test": "test_three.py::test_fa')  # a kill in the middle of a line
    again = run(project, REPAIRED="1")
    assert "1 passed, 1 skipped, 2 deselected, 1 error" in again
    assert "so far: 1 failed, 3 passed, 1 skipped" in again


def test_with_uncommitted_changes_everything_runs_and_nothing_is_recorded(project):
    run(project)
    (project / "test_three.py").write_text(TESTS + "\n")
    output = run(project)
    assert "2 passed" in output and "not recorded" in output
    assert len(list((project / ".pytest_cache/proofs").iterdir())) == 1


def test_what_passed_holds_on_the_next_commit_if_only_other_tests_differ(project):
    run(project)
    (project / "test_three.py").write_text("def test_passes(): pass\n")
    commit(project)
    output = run(project)
    assert "1 passed, 1 deselected" in output
    assert "so far: 1 passed, and 1 on commits from which only tests differ" in output
    (project / "code.py").write_text("x = 1\n")
    commit(project)
    assert "2 passed" in run(project)


def test_a_run_whose_tests_all_passed_before_is_no_error(project):
    assert start(project, "test_other.py", "-k", "nothing").returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    first = start(project, "test_other.py", "-n2")
    again = start(project, "test_other.py", "-n2")
    assert (first.returncode, again.returncode) == (0, 0), again.stdout
    assert "so far: 1 passed" in again.stdout and "no tests ran" in again.stdout


def test_nothing_holds_where_another_file_imports_the_changed_one(project):
    (project / "test_other.py").write_text("from test_three import test_passes\ndef test_stays(): test_passes()\n")
    (project / "test_three.py").write_text("def test_passes(): pass\n")
    commit(project)
    assert "3 passed" in run(project)
    (project / "test_three.py").write_text("def test_passes(): assert False\n")
    commit(project)
    assert "3 failed" in run(project)
