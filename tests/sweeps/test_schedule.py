"""The order of runs: needs first, at most as many as slots at once, failures retried and then reported."""

import json
import os
import shutil
import time

import pytest
from filelock import FileLock

from bert_elmo_jax.runs.start_run import add_cost, read_costs
from bert_elmo_jax.train.run_guard import same_run


class Scripted:
    """A runner without processes: each start writes its program's files and ends with the next of its statuses."""

    def __init__(self, processes, folders, points, slots=2, ends=None):
        self.slots, self._ends, self._Ended = slots, ends or {}, processes.Ended
        self.folders, self.of = folders, {point.identity: point for point in points}
        self.started, self.most, self.running, self.stopped = [], 0, [], []

    def start(self, job):
        self.started.append(self.of[job.key].name)
        self.running.append(job.key)
        self.most = max(self.most, len(self.running))

    def wait(self, seconds):
        if not self.running:
            time.sleep(0.01)
            return []
        key = self.running.pop(0)
        point = self.of[key]
        statuses = self._ends.get(point.name, [])
        status = statuses.pop(0) if statuses else 0
        run = self.folders.run(point)
        (run / "log.txt").write_bytes(f"step 1\r배 {status}\rthe last words\n".encode())
        if status == 0:
            done = "result.json" if point.program == "finetune" else "report.html"
            (run / done).write_text(json.dumps({"score": "f1", "dev": {"f1": 0.5}}))
        if status >= 0:
            add_cost(run, 2.0, 0.5)
        return [self._Ended(key, status, 1.0)]

    def stop(self, hard=False):
        self.stopped.append(hard)

    def close(self):
        """Do nothing."""


@pytest.fixture
def go(sweeps, write_small, tmp_path):
    """Return a function that runs the small sweep; its points end with given statuses."""

    def run(ends=None, retries=1, slots=2, stop=lambda: 0, **changes):
        sweep = sweeps.definition.read_sweep(write_small(**changes), "toy")
        folders = sweeps.folders.Folders(tmp_path / "w")
        runner = Scripted(sweeps.runners, folders, sweep.points, slots, ends)
        lines = []
        state = sweeps.schedule.run_points(sweep.points, folders, runner, retries=retries, say=lines.append, stop=stop)
        return state, runner, "\n".join(lines), folders

    return run


def test_needs_come_first_and_all_is_done_once(go):
    state, runner, _, _ = go()
    assert len(state.done) == 3 + 3 * 2 * 3 == len(runner.started) == len(set(runner.started))
    for row in "abc":
        first = runner.started.index(f"BERT {row}")
        assert all(runner.started.index(f"{row}, NER, seed {n}") > first for n in range(3))
    assert runner.most == 2
    _, again, _, _ = go()
    assert again.started == [], "done is done"


def test_a_changed_definition_runs_again_only_what_it_changes(go):
    go()
    _, runner, _, _ = go(steps={"a": 10, "b": 21, "c": 30})
    assert sorted(runner.started) == sorted(
        ["BERT b", *(f"b, {c}, seed {n}" for c in ("NER", "MNLI") for n in range(3))]
    )
    _, runner, _, _ = go(more={("c", "NER"): {"epochs": 9.0}})
    assert sorted(runner.started) == [f"c, NER, seed {n}" for n in range(3)]


def test_a_failure_is_tried_again(go, sweeps):
    state, runner, output, folders = go({"BERT a": [-9], "b, NER, seed 1": [1]})
    assert not state.failed and runner.started.count("BERT a") == 2 == runner.started.count("b, NER, seed 1")
    assert "BERT a: killed by signal 9; trying again (1 of 1)" in output
    [point] = [point for point in state.points if point.name == "BERT a"]
    run = folders.run(point)
    assert json.loads((run / "point.json").read_text(encoding="utf-8"))["statuses"] == [-9, 0]
    assert [cost["seconds"] for cost in read_costs(run)] == [1.0, 2.0], "a killed start costs what the sweep has seen"


def test_and_then_reported_while_the_others_go_on(go):
    state, _, output, _ = go({"BERT a": [76, 76], "b, NER, seed 1": [2, 2, 2]}, retries=1)
    names = {point.identity: point.name for point in state.points}
    assert {names[n]: why for n, why in state.failed.items()} == {
        "BERT a": "diverged (status 76)",
        "b, NER, seed 1": "refused (status 2)",
    }
    assert {names[n] for n in state.blocked} == {f"a, {c}, seed {n}" for c in ("NER", "MNLI") for n in range(3)}
    assert set(state.blocked.values()) == {"BERT a"}
    assert len(state.done) == 21 - 2 - 6
    assert "the last words" in output and "배 2" not in output, "only the visible part of an overwritten line"


def test_no_retries(go):
    state, runner, _, _ = go({"BERT c": [1]}, retries=0)
    assert runner.started.count("BERT c") == 1 and len(state.blocked) == 6


def test_asked_to_stop(go):
    stop_requests = iter([0, 0, 1, 1, 2, *[2] * 99])
    state, runner, output, _ = go(slots=4, stop=lambda: next(stop_requests))
    assert runner.stopped[:2] == [False, True]
    assert state.stopping and not state.running and 0 < len(state.done) < 21
    assert "save and stop" in output


def test_a_run_that_is_still_held_is_waited_for(go, sweeps, write_small, tmp_path):
    sweep = sweeps.definition.read_sweep(write_small(), "toy")
    run = sweeps.folders.Folders(tmp_path / "w").run(sweep.points[0])
    run.mkdir(parents=True)
    run_lock = FileLock(run / "lock")
    run_lock.acquire()
    left = time.monotonic() + 1.0

    def stop():
        if time.monotonic() > left:
            run_lock.release()
        return 0

    state, runner, output, _ = go(stop=stop)
    assert output.count(f"{sweep.points[0].name}: another process still writes") == 1
    assert len(state.done) == 21 and runner.started[0] != sweep.points[0].name


def test_sweeps_that_begin_at_once_run_what_they_share_once(go, sweeps, write_small, tmp_path):
    """Both sweeps name the point differently, and look for it before either has started it."""
    Point, folders = sweeps.points.Point, [sweeps.folders.Folders(tmp_path / "w") for _ in range(2)]
    named = [Point(name, "pretrain", "bert:toy", {"steps": 10}) for name in ("BERT", "another name")]
    assert folders[0].run(named[0]).name != folders[1].run(named[1]).name
    assert folders[0].claim(named[0]) == folders[1].claim(named[1]) == folders[1].run(named[1])
    assert len(list((tmp_path / "w" / "points").iterdir())) == 1
    # Of two copies, the one that is done counts.
    copied = tmp_path / "w" / "points" / f"A-{named[0].identity}"
    copied.mkdir()
    (copied / "report.html").write_text("")
    assert sweeps.folders.Folders(tmp_path / "w").run(named[0]) == copied


def test_a_begun_point_resumes_in_a_working_directory_that_has_moved(sweeps, tmp_path):
    """As on another machine, where the cache of a bucket has another path."""
    Point, Folders = sweeps.points.Point, sweeps.folders.Folders
    bert = Point("BERT", "pretrain", "bert:toy", {"steps": 10})
    task = {"task": "uner", "train": sweeps.points.File("train.tsv")}
    point = Point("NER", "finetune", "finetune", {**task, "init": sweeps.points.Step(bert, 10)})

    def start(workdir, **fields):
        folders = Folders(tmp_path / workdir)
        folders.claim(bert)
        run, init = folders.claim(point), folders.locate(point.settings["init"])
        for folder in (run, run / "runs" / "seed=0"):
            folder.mkdir(parents=True, exist_ok=True)
            same_run(folder, {"init": init, "encoder": "/models/other", **fields})

    start("first/w", seed=0)
    (tmp_path / "first").rename(tmp_path / "second")
    start("second/w", seed=0)
    with pytest.raises(ValueError, match=r"another configuration:\nseed: 0 then, 1 now\nResume"):
        start("second/w", seed=1)


def test_a_point_is_claimed_while_a_folder_of_its_run_vanishes(sweeps, tmp_path, monkeypatch):
    """A worker that outlives a killed sweep for a moment is still writing a checkpoint."""
    point = sweeps.points.Point("BERT", "pretrain", "bert:toy", {"steps": 10})
    folders = sweeps.folders.Folders(tmp_path)
    (folders.claim(point) / "checkpoints" / "8.tmp").mkdir(parents=True)
    scan = os.scandir

    def vanish(path="."):
        if os.fspath(path).endswith(".tmp"):
            raise FileNotFoundError(2, "No such file or directory", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", vanish)
    assert folders.claim(point).is_dir()


def test_refused_because_another_was_first(go, sweeps, write_small, tmp_path):
    """No try is used up: the sweep waits for the run."""
    point = sweeps.definition.read_sweep(write_small(), "toy").points[0]
    run = sweeps.folders.Folders(tmp_path / "w").claim(point)
    run_lock = FileLock(run / "lock")

    class Late(list):
        def pop(self, n=0):
            run_lock.acquire()  # between the check and the start
            return super().pop(n)

    looks = []

    def stop():
        """Give the lock back once the sweep has looked for points to start while it was held."""
        looks.extend([1] * run_lock.is_locked)
        if len(looks) == 2:
            run_lock.release()
        return 0

    state, runner, output, _ = go({point.name: Late([2])}, retries=0, stop=stop)
    assert not state.failed and len(state.done) == 21 and runner.started.count(point.name) == 2
    assert f"{point.name}: another process still writes" in output


def test_a_run_directory_that_is_deleted_is_no_end(go, sweeps, monkeypatch):
    deletions = []
    is_done = sweeps.folders.Folders.is_done

    def gone(folders, point):
        if not deletions and point.name == "b, NER, seed 1" and folders.run(point).is_dir() and is_done(folders, point):
            deletions.append(folders.run(point))
            shutil.rmtree(folders.run(point))
        return is_done(folders, point)

    monkeypatch.setattr(sweeps.folders.Folders, "is_done", gone)
    state, runner, _, _ = go()
    assert deletions and len(state.done) == 21 and runner.started.count("b, NER, seed 1") == 2


@pytest.mark.parametrize("text", ["", "[]", '{"statuses"', "3"])
def test_damaged_facts_are_written_again(go, sweeps, text):
    state, _, _, folders = go()
    file = folders.run(state.points[0]) / "point.json"
    file.write_text(text)
    (file.parent / "report.html").unlink()
    go()
    assert json.loads(file.read_text(encoding="utf-8"))["statuses"] == [0]


def test_the_end_of_a_log(sweeps, tmp_path):
    log = tmp_path / "log.txt"
    log.write_bytes("처음\n".encode() + b"x" * 3_000_000 + "\n\x1b[31m끝\x07\n".encode())
    tail = sweeps.schedule.read_last_lines(log)
    assert tail.endswith("[31m끝") and "\x1b" not in tail and len(tail) < 1000 and "처음" not in tail


def test_the_time_left_is_that_of_the_longest(sweeps, tmp_path):
    a, b = (sweeps.points.Point(name, "pretrain", "bert:toy", {"seed": n}) for n, name in enumerate("ab"))
    state = sweeps.schedule.SweepState([a, b], done={a.identity}, running={b.identity: time.monotonic()})
    folders = sweeps.folders.Folders(tmp_path)
    add_cost(folders.claim(a), 2400.0)
    progress = sweeps.schedule.Progress(folders, jobs=8)
    assert progress.time_left(state) is None
    progress.changed(state)
    assert progress.time_left(state) == pytest.approx(2400.0, abs=5)
    (folders.claim(b) / "log.txt").write_bytes("step 3\r 75%|███▌ | 3/4 [00:01".encode())
    assert progress.time_left(state) == pytest.approx(600.0, abs=5), "by its own bar"
    progress._bar.close()


def test_progress_in_the_terminal(sweeps, write_small, tmp_path, capsys):
    sweep = sweeps.definition.read_sweep(write_small(), "toy")
    folders = sweeps.folders.Folders(tmp_path)
    progress = sweeps.schedule.Progress(folders, 2)
    state = sweeps.schedule.SweepState(sweep.points)
    progress.changed(state)
    assert capsys.readouterr().err == "0 of 21 done\n"
    state.running[sweep.points[0].identity] = time.monotonic()
    assert progress.describe(state, names=True) == "0 of 21 done · BERT a 0%"
    state.failed[sweep.points[1].identity] = "…"
    state.done.add(sweep.points[2].identity)
    add_cost(folders.claim(sweep.points[2]), 60.0)
    progress.changed(state)
    progress.tick(state)
    progress.say("a line")
    progress._bar.close()
    name = sweep.points[2].name
    expected_output = f"{name}: done · 1 of 21 done · about 10 minutes left · 1 failed or lost by it\na line\n"
    assert capsys.readouterr().err == expected_output
