"""`make proofs` takes hours, so it records each test that passed; started again on the same commit, it continues.

The record is `.pytest_cache/proofs/COMMIT.jsonl`: one line per test, with its outcome and seconds. With
uncommitted changes there is no commit that the results belong to, so no test is recorded and no test is left out.
"""

import json
import subprocess
from pathlib import Path

import pytest


def record_of_commit(root: Path) -> Path | None:
    """Return the file that records the tests of this commit, or None where files differ from it."""

    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()

    try:
        if git("status", "--porcelain", "--untracked-files=no"):
            return None
        return root / ".pytest_cache" / "proofs" / f"{git('rev-parse', 'HEAD')}.jsonl"
    except (OSError, subprocess.CalledProcessError):
        return None


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
    """Leave out the tests that passed on this commit, and write down those that end now."""

    def __init__(self, record: Path, writes: bool):
        self.record, self.writes = record, writes
        self.running = {}  # test -> outcome and seconds so far
        if writes:
            record.parent.mkdir(parents=True, exist_ok=True)
            with record.open("a") as file:
                file.write("\n")  # ends a line that a kill cut off

    def pytest_collection_modifyitems(self, config, items):
        outcomes = read_outcomes(self.record)
        passed = [item for item in items if outcomes.get(item.nodeid) == "passed"]
        if passed:
            config.hook.pytest_deselected(items=passed)
            items[:] = [item for item in items if outcomes.get(item.nodeid) != "passed"]

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
        outcomes = list(read_outcomes(self.record).values())
        counts = ", ".join(f"{outcomes.count(name):,} {name}" for name in sorted(set(outcomes)))
        terminalreporter.write_line(f"on commit {self.record.stem[:12]} so far: {counts}")


def pytest_configure(config):
    if (record := record_of_commit(config.rootpath)) is None:
        message = "files differ from the last commit, so what passes is not recorded"
        config.issue_config_time_warning(pytest.PytestWarning(message), stacklevel=1)
    else:
        # Workers of xdist leave out the same tests; only the process that collects their reports writes.
        in_worker = hasattr(config, "workerinput")
        config.pluginmanager.register(Recorder(record, writes=not in_worker), "recorded_proofs")
