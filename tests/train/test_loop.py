"""A run that was stopped, killed or damaged resumes exactly, or fails with a clear error."""

import functools
import json
import os
import re
import signal
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bert_elmo_jax.train import (
    Checkpoints,
    Diverged,
    Patience,
    Schedule,
    make_mesh,
    make_step,
    new_state,
    only_process,
    over_mesh,
    record_free,
    restore,
    same_run,
    train,
)
from bert_elmo_jax.train.checkpoint import saved_steps
from bert_elmo_jax.train.loop import Prefetch
from bert_elmo_jax.train.metrics import read_metrics

OPTIMIZER = optax.adam(0.05)
STEPS = 12


class Batches:
    """Batch n is a function of n alone; its position is n."""

    def __init__(self, at=0, spoiled=(), fail=None, on=None):
        self.at, self.spoiled, self.fail, self.on = at, spoiled, fail, on

    def __next__(self):
        self.at += 1
        if self.on and self.at == self.on[0]:
            self.on[1]()
        if self.at == self.fail:
            raise FileNotFoundError("shard-00003/tokens.npy is gone")
        x = np.random.default_rng(self.at).normal(size=(8, 4)).astype(np.float32)
        return {"x": np.full_like(x, np.nan) if self.at in self.spoiled else x}

    def state(self):
        return {"at": self.at}


def loss(params, batch, key, carry):
    x = batch["x"] + 0.1 * jax.random.normal(key, batch["x"].shape)
    hidden = jnp.tanh(carry * 0.5 + x @ params["w"])
    return {"square": (((hidden - x) ** 2).sum(), x.size)}, {}, hidden


def evaluate(state):
    return {"heldout/norm": float(optax.tree.norm(state.params))}


@functools.cache
def compile_step(devices, spoil):
    optimizer = OPTIMIZER if spoil is None else optax.GradientTransformation(OPTIMIZER.init, spoil)
    step = make_step(loss, optimizer, {"square": 1.0})
    return over_mesh(step, fresh(), make_mesh(devices=jax.devices()[:devices]))


def run(
    folder, batches=None, *, log_every=2, checkpoint_every=3, devices=1, keep=20, progress=False, failures=3,
    spoil=None, **options
):  # fmt: skip
    """Start or resume the run; return the state and the reported lines."""
    reports = []
    parallel = compile_step(devices, spoil)
    schedule = Schedule(
        STEPS, log_every=log_every, eval_every=4, checkpoint_every=checkpoint_every, stop_after_failures=failures
    )
    with only_process(folder), Checkpoints(folder, keep=keep) as checkpoints:
        checkpoints.discard_unfinished()
        state, restored = restore(checkpoints, fresh(), parallel)
        reports += restored.damaged if restored else ()
        batches = batches or Batches()
        batches.at = restored.record["position"]["at"] if restored else 0
        options = {"report": reports.append, "evaluate": evaluate, "score": "heldout/norm", **options}
        state, stopped = train(
            state, parallel, batches, run=folder, schedule=schedule, checkpoints=checkpoints, progress=progress,
            **options,
        )  # fmt: skip
    return jax.device_get(parallel.gather(state)), reports, stopped


def fresh():
    return new_state({"w": jnp.eye(4)}, OPTIMIZER, jax.random.key(0), carry=jnp.zeros((8, 4)))


def lines(folder):
    return (folder / "metrics.jsonl").read_text()


@pytest.fixture(scope="module")
def full_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    state, reports, stopped = run(folder)
    assert (reports, stopped) == ([], None)
    return state, lines(folder)


def same(state, other):
    for ours, theirs in zip(jax.tree.leaves(state), jax.tree.leaves(other), strict=True):
        if jax.dtypes.issubdtype(ours.dtype, jax.dtypes.prng_key):
            ours, theirs = jax.random.key_data(ours), jax.random.key_data(theirs)
        np.testing.assert_array_equal(ours, theirs)


def test_a_terminal_shows_the_evaluations(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    run(tmp_path, progress=True)
    output = capsys.readouterr().err
    evaluations = [line for line in map(json.loads, lines(tmp_path).splitlines()) if "heldout/norm" in line]
    assert len(evaluations) == 3
    for line in evaluations:
        assert f"step {line['step']}: heldout/norm {line['heldout/norm']:.4g}\n" in output
    shown = output.split("\r")
    assert any(line.startswith("compiling the evaluation: ") for line in shown)
    compiling = [n for n, line in enumerate(shown) if line.startswith("compiling the step")]
    stepped = [n for n, line in enumerate(shown) if re.match(r" *\d+%\|.*[2-9]/12", line)]
    assert compiling
    assert max(compiling) < min(stepped)  # and no more of it, once the first step is done


def test_reports_beside_the_bar_have_lines_of_their_own(tmp_path, capsys):
    batches = Batches(on=(5, lambda: os.kill(os.getpid(), signal.SIGTERM)))
    run(tmp_path, batches, progress=True, report=lambda line: print(line, file=sys.stderr))
    output = capsys.readouterr().err
    for line in ("asked to stop: saving and ending", "asked to stop: saved at step"):
        before = output[: output.index(line)].rpartition("\n")[2]
        assert not before.rpartition("\r")[2].strip(), before  # the bar was cleared away
    assert output.index("saving and ending") < output.index("saved at step")


def test_a_line_a_step(full_run):
    records = [json.loads(line) for line in full_run[1].splitlines()]
    assert [line["step"] for line in records] == list(range(1, STEPS + 1))
    assert [line["step"] for line in records if "heldout/norm" in line] == [4, 8, 12]
    assert all(np.isfinite(line["loss"]) for line in records)


class Killed(BaseException):
    pass


@pytest.mark.parametrize("at", [2, 4, 7])  # before the first checkpoint, and after one and two
def test_going_on_is_as_if_nothing_had_been(tmp_path, full_run, at):
    def kill():
        raise Killed

    with pytest.raises(Killed):
        run(tmp_path, Batches(on=(at, kill)))
    state, _, _ = run(tmp_path)
    same(state, full_run[0])
    assert lines(tmp_path) == full_run[1]


def test_a_signal_saves_and_the_next_start_goes_on(tmp_path, full_run):
    before = signal.getsignal(signal.SIGTERM)
    batches = Batches(on=(5, lambda: os.kill(os.getpid(), signal.SIGTERM)))
    state, reports, stopped = run(tmp_path, batches, checkpoint_every=0)
    assert stopped == signal.SIGTERM
    assert 1 <= int(state.step) < STEPS
    assert reports == [
        "asked to stop: saving and ending after this step (a second Ctrl-C ends at once)",  # said when it comes
        f"asked to stop: saved at step {int(state.step)}; run the same command to resume",
    ]
    assert signal.getsignal(signal.SIGTERM) == before
    state, _, stopped = run(tmp_path, checkpoint_every=0)
    assert stopped is None
    same(state, full_run[0])
    assert lines(tmp_path) == full_run[1]


def test_a_stop_between_checkpoints_leaves_those_of_the_schedule(tmp_path, full_run):
    def evaluate_and_stop(state):
        os.kill(os.getpid(), signal.SIGTERM)  # at step 4, noticed at step 5
        return evaluate(state)

    _, _, stopped = run(tmp_path, keep=1, evaluate=evaluate_and_stop)
    assert stopped and saved_steps(tmp_path) == [3, 5]
    state, _, _ = run(tmp_path, keep=1)
    assert saved_steps(tmp_path) == [STEPS]
    same(state, full_run[0])


@pytest.mark.devices
def test_on_another_mesh(tmp_path, full_run):
    with pytest.raises(FileNotFoundError):
        run(tmp_path, Batches(fail=9), devices=4)
    state, _, _ = run(tmp_path, devices=2)
    for ours, theirs in zip(jax.tree.leaves(state.params), jax.tree.leaves(full_run[0].params), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_finished_is_finished(tmp_path, full_run):
    run(tmp_path)
    state, _, _ = run(tmp_path)
    same(state, full_run[0])
    assert lines(tmp_path) == full_run[1]


def test_a_deleted_shard_is_said_and_nothing_lost(tmp_path, full_run):
    with pytest.raises(FileNotFoundError, match="shard-00003"):
        run(tmp_path, Batches(fail=8))
    state, _, _ = run(tmp_path)
    same(state, full_run[0])


def test_one_batch_that_is_not_finite(tmp_path):
    state, reports, _ = run(tmp_path, Batches(spoiled=(5, 6)))
    assert int(state.failed) == 0
    assert [line for line in reports if "not finite" in line] == [
        "step 5: the loss or a gradient is not finite; nothing was updated (1 in a row)",
        "step 6: the loss or a gradient is not finite; nothing was updated (2 in a row)",
    ]
    assert np.isfinite(state.params["w"]).all()
    assert [line["loss"] for line in read_metrics(tmp_path)][4:6] == [None, None]


def test_too_many_in_a_row_stop_the_run(tmp_path):
    with pytest.raises(Diverged, match=r"3 steps in a row, up to 7, .* the last of these batches is in .*step_7.npz"):
        run(tmp_path, Batches(spoiled=(5, 6, 7)))
    assert np.isnan(np.load(tmp_path / "not_finite_step_7.npz")["x"]).all()
    with Checkpoints(tmp_path) as checkpoints:
        arrays = {name: value for name, value in vars_of(fresh()).items() if name != "params"}
        assert checkpoints.restore(fresh().params, arrays).step in (3, 6)


def test_a_run_that_was_never_finite_does_not_end_well(tmp_path):
    with pytest.raises(Diverged, match=r"none of the 12 steps had a finite loss or gradient, so nothing was trained"):
        run(tmp_path, Batches(spoiled=range(1, STEPS + 1)), failures=100, checkpoint_every=0, evaluate=None)
    assert len(read_metrics(tmp_path)) == STEPS
    assert not list(tmp_path.glob("checkpoints/*/files.json"))


def test_a_run_with_one_finite_step_ends_as_ever(tmp_path):
    state, _, stopped = run(tmp_path, Batches(spoiled=range(2, STEPS + 1)), failures=100)
    assert stopped is None and int(state.failed) == STEPS - 1


def spoil(updates, state, params=None):
    """Update with Adam, and with an infinite rate from step 5 on."""
    updates, state = OPTIMIZER.update(updates, state, params)
    return jax.tree.map(lambda u: jnp.where(state[0].count >= 5, jnp.inf, u), updates), state


@pytest.mark.parametrize("options", [{}, {"evaluate": None}, {"checkpoint_every": 0}])
def test_parameters_that_are_not_finite_are_not_saved(tmp_path, options):
    with pytest.raises(Diverged, match=r"step \d+: the parameters are no longer finite, so they are not saved"):
        run(tmp_path, spoil=spoil, failures=100, **options)
    saved = [int(file.parent.name) for file in tmp_path.glob("checkpoints/*/files.json")]
    assert saved == ([] if "checkpoint_every" in options else [3])
    assert read_metrics(tmp_path)[-1]["step"] >= 6


def vars_of(state):
    from bert_elmo_jax.train.step import to_arrays

    return to_arrays(state)


def test_a_damaged_newest_checkpoint_is_passed_over(tmp_path, full_run):
    with pytest.raises(FileNotFoundError):
        run(tmp_path, Batches(fail=8))
    newest = max((tmp_path / "checkpoints").iterdir(), key=lambda path: int(path.name))
    victim = max((path for path in newest.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    victim.write_bytes(victim.read_bytes()[:-7])
    state, reports, _ = run(tmp_path)
    assert any(f"the checkpoint of step {newest.name} is damaged and was skipped" in line for line in reports)
    same(state, full_run[0])
    assert lines(tmp_path) == full_run[1]


def test_all_damaged_is_an_error(tmp_path):
    run(tmp_path)
    for file in (tmp_path / "checkpoints").glob("*/files.json"):
        file.write_text("{")
    with pytest.raises(ValueError, match=r"no checkpoint of .* can be read: .*; copy one back"):
        run(tmp_path)


@pytest.mark.parametrize("where", ["save", "wait_until_finished"])
def test_a_full_disk_during_a_save(tmp_path, full_run, monkeypatch, where):
    import orbax.checkpoint as ocp

    real, calls = getattr(ocp.StandardCheckpointer, where), []

    def full(self, *args, **kwargs):
        calls.append(1)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        return real(self, *args, **kwargs)

    monkeypatch.setattr(ocp.StandardCheckpointer, where, full)
    state, reports, _ = run(tmp_path)
    (line,) = (line for line in reports if "could not be written" in line)
    assert re.search(
        "the checkpoint of step (3|6) could not be written; (the one of step 3 is|there is no earlier one)", line
    )
    assert "No space left on device" in line
    same(state, full_run[0])
    assert {int(path.name) for path in (tmp_path / "checkpoints").iterdir()} >= {9, 12}


def test_a_disk_that_stays_full(tmp_path, monkeypatch):
    import orbax.checkpoint as ocp

    def full(self, *args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ocp.StandardCheckpointer, "save", full)
    with pytest.raises(OSError, match=r"the checkpoint of step 12 could not be written; there is no earlier one"):
        run(tmp_path)


def test_the_newest_and_the_best_are_kept(tmp_path):
    run(tmp_path, keep=2)
    assert {int(path.name) for path in (tmp_path / "checkpoints").iterdir()} >= {9, 12}
    assert len(list((tmp_path / "checkpoints").iterdir())) <= 3


def test_one_process_at_a_time(tmp_path):
    message = rf"written by process {os.getpid()}: wait for it"
    with only_process(tmp_path), pytest.raises(BlockingIOError, match=message):
        run(tmp_path)


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"file/run cannot be written .*: choose another run directory"):
        run(tmp_path / "file" / "run")


class Points(list):
    """A writer that keeps the steps with their figures."""

    def write(self, step, values):
        self.append((step, dict(values)))

    def flush(self):
        pass

    close = flush


def test_writers_get_evaluations_between_the_steps_that_are_logged(tmp_path):
    points = Points()
    run(tmp_path, log_every=5, writers=[points])
    assert [step for step, _ in points] == [4, 5, 8, 10, 12]
    assert [step for step, values in points if "heldout/norm" in values] == [4, 8, 12]


def test_enough_ends_it_after_an_evaluation(tmp_path):
    evaluations = []
    state, _, stopped = run(tmp_path, enough=lambda figures: evaluations.append(figures) or len(evaluations) == 2)
    assert stopped is None
    assert int(state.step) == 8
    assert [line["step"] for line in read_metrics(tmp_path)] == list(range(1, 9))
    assert {int(path.name) for path in (tmp_path / "checkpoints").iterdir()} == {3, 6, 8}


def test_another_configuration_is_refused(tmp_path):
    config = {"steps": 10, "model": {"layers": 2, "name": "배"}, "mesh": "data"}
    same_run(tmp_path, config, free=("mesh",))
    same_run(tmp_path, {**config, "mesh": "fsdp"}, free=("mesh",))
    record_free(tmp_path, {**config, "mesh": "fsdp", "steps": 11}, ("mesh",))
    assert json.loads((tmp_path / "run.json").read_text(encoding="utf-8")) == {**config, "mesh": "fsdp"}
    with pytest.raises(
        ValueError, match=r'model.layers: 2 then, 3 now\nmodel.name: "배" then, nothing now\nseed: nothing'
    ):
        same_run(tmp_path, {"steps": 10, "model": {"layers": 3}, "seed": 1}, free=("mesh",))
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ValueError, match="is not JSON"):
        same_run(tmp_path, config)


def test_fields_that_an_earlier_version_did_not_have(tmp_path):
    same_run(tmp_path, {"steps": 10, "model": {"layers": 2}})
    added = {"model.norm": "post", "model.theta": 1e4}
    now = {"steps": 10, "model": {"layers": 2, "norm": "post", "theta": 1e4, "later": None}}
    same_run(tmp_path, now, added=added)
    with pytest.raises(ValueError, match=r'configuration:\nmodel.norm: "post" then, "pre" now\nResume'):
        same_run(tmp_path, {**now, "model": {**now["model"], "norm": "pre"}}, added=added)
    with pytest.raises(ValueError, match=r"model.theta: nothing then, 10000.0 now"):
        same_run(tmp_path, now, added={"model.norm": "post"})


def test_a_torn_last_line_is_dropped(tmp_path, full_run):
    with pytest.raises(FileNotFoundError):
        run(tmp_path, Batches(fail=10))
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"step": 9, "lo')
    assert [line["step"] for line in read_metrics(tmp_path)][:3] == [1, 2, 3]
    run(tmp_path)
    assert lines(tmp_path) == full_run[1]


def test_prefetching_ends_with_its_reader():
    before = threading.active_count()
    with Prefetch(Batches(), dict) as batches:
        next(batches)
    assert threading.active_count() == before
    with Prefetch(Batches(fail=2), dict) as batches:
        next(batches)
        for _ in range(2):
            with pytest.raises(FileNotFoundError):
                next(batches)


def test_the_bar_and_the_events(tmp_path, capsys):
    run(tmp_path, size=lambda batch: batch["x"].size, extra=lambda step: {"learning_rate": 0.1 * step}, progress=True)
    shown = capsys.readouterr().err
    assert "12/12" in shown
    assert "loss=" in shown
    assert read_metrics(tmp_path)[1]["learning_rate"] == pytest.approx(0.2)
    assert any((tmp_path / "events").iterdir())


def test_patience_is_restored_from_the_lines_of_a_run():
    lines = [{"step": 1, "loss": 2.0}, {"dev/f1": 0.5}, {"dev/f1": 0.5}]
    assert Patience("dev/f1", 2, lines)({"dev/f1": 0.1})
    assert not Patience("dev/f1", 3, lines)({"dev/f1": 0.1})
