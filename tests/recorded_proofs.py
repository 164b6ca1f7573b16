"""`make proofs` takes hours, so it records each test that passed; started again on the same commit, it continues.

The record is `.pytest_cache/proofs/COMMIT.jsonl`: one line per test, with its outcome and seconds. With
uncommitted changes there is no commit that the results belong to, so no test is recorded and no test is left out.

What passed on another commit holds if nothing but files of tests differ, except for the tests of these files, and if
no other file imports them. The tests that read all files (of the structure, of imports) are short, so
`make test` runs them on each commit.
"""

import json
import re
import subprocess
from pathlib import Path

import pytest

TESTS = re.compile(r"(.*/)?test_\w+\.py")


def git(root: Path, *arguments: str) -> str:
    """Return what git prints in a folder."""
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


def record_of_commit(root: Path) -> Path | None:
    """Return the file that records the tests of this commit, or None where files differ from it."""
    try:
        if git(root, "status", "--porcelain", "--untracked-files=no"):
            return None
        return root / ".pytest_cache" / "proofs" / f"{git(root, 'rev-parse', 'HEAD')}.jsonl"
    except (OSError, subprocess.CalledProcessError):
        return None


def read_other_commits(root: Path, record: Path) -> set[str]:
    """Return the tests that passed on commits from which only files of other tests differ."""
    passed = set()
    for other in record.parent.glob("*.jsonl"):
        if other == record:
            continue
        try:
            changed = git(root, "diff", "--name-only", other.stem, record.stem).splitlines()
        except subprocess.CalledProcessError:  # a commit that is gone
            continue
        if all(TESTS.fullmatch(path) for path in changed) and not are_imported(root, changed):
            outcomes = read_outcomes(other)
            passed |= {test for test in outcomes if outcomes[test] == "passed" and test.split("::")[0] not in changed}
    return passed


def are_imported(root: Path, changed: list[str]) -> bool:
    """Return True if another file imports one of these modules."""
    if not changed:
        return False
    modules = "|".join(Path(path).stem for path in changed)
    imports = re.compile(rf"^\s*(from|import)\b.*\b({modules})\b", re.MULTILINE)
    files = set(git(root, "ls-files", "*.py").splitlines()) - set(changed)
    return any(imports.search((root / file).read_text(encoding="utf-8")) for file in files)


def read_outcomes(record: Path) -> dict[str, str]:
    """Return the last outcome of each test; a line that a kill cut off is left out."""
    outcomes = {}
    for line in record.read_text().splitlines() if record.exists() else []:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        outcomes[row["test"]] = row["outcome"]
    return outcomes


class Recorder:
    """Leave out the tests that passed on this commit, and write down those that end now.

    `elsewhere` are tests that passed on another commit, and need not run on this one.
    """

    def __init__(self, record: Path, writes: bool, elsewhere: set[str]):
        self.record, self.writes, self.elsewhere = record, writes, elsewhere
        self.running = {}  # test -> outcome and seconds so far
        if writes:
            record.parent.mkdir(parents=True, exist_ok=True)
            with record.open("a") as file:
                file.write("\n")  # ends a line that a kill cut off

    def pytest_collection_modifyitems(self, config, items):
        outcomes = dict.fromkeys(self.elsewhere, "passed") | read_outcomes(self.record)
        passed = [item for item in items if outcomes.get(item.nodeid) == "passed"]
        if passed:
            config.hook.pytest_deselected(items=passed)
            items[:] = [item for item in items if outcomes.get(item.nodeid) != "passed"]

    def pytest_sessionfinish(self, session, exitstatus):
        # Where all tests passed before, none is collected, which pytest counts as an error.
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and (self.elsewhere or read_outcomes(self.record)):
            session.exitstatus = pytest.ExitCode.OK

    def pytest_runtest_logreport(self, report):
        # A test has three parts; a skipped or failed part decides its outcome.
        outcome, seconds = self.running.get(report.nodeid, ("passed", 0.0))
        if report.outcome != "passed" and outcome != "failed":
            outcome = report.outcome
        self.running[report.nodeid] = outcome, seconds + report.duration
        if report.when == "teardown" and self.writes:
            outcome, seconds = self.running.pop(report.nodeid)
            row = {"test": report.nodeid, "outcome": outcome, "seconds": round(seconds, 2)}
            with self.record.open("a") as file:
                file.write(json.dumps(row) + "\n")

    def pytest_terminal_summary(self, terminalreporter):
        outcomes = read_outcomes(self.record)
        kinds = list(outcomes.values())
        counts = ", ".join(f"{kinds.count(name):,} {name}" for name in sorted(set(kinds)))
        others = len(self.elsewhere - outcomes.keys())
        more = f", and {others:,} on commits from which only tests differ" if others else ""
        terminalreporter.write_line(f"on commit {self.record.stem[:12]} so far: {counts}{more}")


def pytest_configure(config):
    if (record := record_of_commit(config.rootpath)) is None:
        message = "files differ from the last commit, so what passes is not recorded"
        config.issue_config_time_warning(pytest.PytestWarning(message), stacklevel=1)
    else:
        # Workers of xdist leave out the same tests; only the process that collects their reports writes.
        in_worker = hasattr(config, "workerinput")
        elsewhere = read_other_commits(config.rootpath, record)
        config.pluginmanager.register(Recorder(record, not in_worker, elsewhere), "recorded_proofs")
