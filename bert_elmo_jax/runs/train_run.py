"""The order of events of every run.

refuse     fields, flags and files that cannot be used           `start_config`, and the program's own checks
lock       one process writes a run directory, with one          `lock_run`
           configuration; the cost of each start is recorded
build      the data are read; a `Trainable` is built             `build_pretraining`, `build_task`
describe   run.json, model.json, the tokenizer                   `train_run`, from here on
restore    the newest whole checkpoint, and its place in the data
loop       steps, evaluations, checkpoints
finish     the figures of the trained model
report     report.html and result.json

A refused run leaves no `run.json`. The parameters come from the first of these that applies: the newest whole
checkpoint, the checkpoint before a damaged one, the weights of `--init`, the seed.
"""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
from ml_collections import ConfigDict

from bert_elmo_jax import train
from bert_elmo_jax.compilation_cache import share_compiled
from bert_elmo_jax.files import read_json, write_json
from bert_elmo_jax.report.language import Language, translator
from bert_elmo_jax.runs.field_ranges import check_fields
from bert_elmo_jax.runs.initial_state import apply_compute
from bert_elmo_jax.runs.run_report import show_figures, write_report
from bert_elmo_jax.runs.start_run import Clock, cost_kept, keep_freed_memory, say
from bert_elmo_jax.runs.trackers import Tracker, list_scores, open_trackers, replay
from bert_elmo_jax.runs.trainable import BEFORE, Feed, Figures, Trainable
from bert_elmo_jax.train.devices import describe_devices
from bert_elmo_jax.train.metrics import read_metrics

REPORT = "report.html"  # in the directory of a finished run
RESULT = "result.json"  # in the directory of a finished run on a task; written last
SharedBy = Literal["jit", "pmap"]  # how several devices share the work


class PageOptions(NamedTuple):
    """The language of a run's report, and the command that it shows."""

    language: Language = "en"
    command: str = ""


class Run(NamedTuple):
    """A run directory, and the settings that its `run.json` records.

    The fields `free` may change when it is resumed. Earlier versions lack the fields `added`, which had these values.
    `track` names the trackers that have a record of the run.
    """

    workdir: Path
    settings: Mapping[str, Any]
    free: tuple[str, ...] = ()
    added: Mapping[str, Any] = {}
    page: PageOptions = PageOptions()
    track: tuple[str, ...] = ()

    def check_same(self) -> None:
        """Write `run.json`, or raise if the directory was started with other settings."""
        train.same_run(self.workdir, self.settings, self.free, self.added)

    def record_free(self) -> None:
        """Write the values that free fields have now to `run.json`."""
        train.record_free(self.workdir, self.settings, self.free)


def start_config(config: ConfigDict) -> ConfigDict:
    """Return the config of a run with the fields that suit its device; raise for numbers outside of their range."""
    check_fields(config)
    keep_freed_memory()
    return apply_compute(config)


@contextlib.contextmanager
def lock_run(run: Run, began: Clock) -> Iterator[None]:
    """Lock a run directory and record the cost since `began`; raise if it was started with other settings."""
    first = jax.process_index() == 0
    with train.only_process(run.workdir) if first else contextlib.nullcontext(), cost_kept(run.workdir, first, began):
        if (run.workdir / "run.json").is_file():
            run.check_same()
        train.meet("run directory")
        share_compiled()
        yield


def place_run(config: ConfigDict, parallel: SharedBy) -> train.Placement:
    """Return the devices of a run: the mesh of its config, or for pmap all devices of this process."""
    if parallel == "pmap":
        data, fsdp, tensor = (config.mesh[axis] for axis in ("data", "fsdp", "tensor"))
        if (fsdp, tensor) != (1, 1) or data not in (-1, jax.device_count()):
            raise ValueError(
                f"a mesh of data={data} × fsdp={fsdp} × tensor={tensor} with --parallel=pmap, which only splits rows "
                "among all devices: leave out the mesh, or use --parallel=jit"
            )
        return train.Placement(axis=train.DEVICES)
    return train.Placement(train.make_mesh(**config.mesh))


def train_run(run: Run, placement: train.Placement, trainable: Trainable) -> int | None:
    """Describe, train and report a run in its directory; return the number of the signal that stopped it, or None."""
    first = jax.process_index() == 0
    for remark in trainable.remarks:
        say(remark)
    if first:
        run.check_same()
        run.record_free()
        trainable.describe(run.workdir)
        say(f"{run.workdir}: {trainable.summary}, on {describe_devices()}")
    state, parallel = compile_step(trainable, placement)
    feed = trainable.open(run.workdir, parallel)
    with (
        open_trackers(run.track if first else (), run.workdir, run.settings) as trackers,
        train.Checkpoints(run.workdir, keep=trainable.keep) as checkpoints,
        contextlib.closing(feed.batches),
    ):
        if first and (unfinished := checkpoints.discard_unfinished()):
            say(f"removed the unfinished checkpoint of step {', '.join(map(str, unfinished))}")
        state, step = restore(checkpoints, state, parallel, feed)
        if step == 0 and trainable.evaluate_first:
            measure_start(run.workdir, feed.evaluate(parallel.gather(state)))
        if step and trackers:
            log_every = trainable.schedule.log_every
            lines = [line for line in read_metrics(run.workdir) if line["step"] <= step]
            # The lines that the loop passes to trackers; an evaluation, such as that of the last step, has the score.
            replay(trackers, [line for line in lines if line["step"] % log_every == 0 or trainable.score in line])
        state, stopped = loop(run.workdir, trainable, parallel, feed, checkpoints, state, step, trackers)
        if stopped is None:
            finish(run, trainable, parallel.gather(state), feed)
            attach_results(run.workdir, trackers)
    return stopped


def attach_results(workdir: Path, trackers: Sequence[Tracker]) -> None:
    """Attach the report and the scores of a finished run to its records."""
    files = [workdir / name for name in (REPORT, RESULT) if (workdir / name).is_file()]
    scores = list_scores(read_json(workdir / RESULT, default={}))
    for tracker in trackers:
        tracker.attach(files, scores)


def compile_step(trainable: Trainable, placement: train.Placement) -> tuple[train.State, train.Parallel]:
    """Return the state before the first step, and the step for these devices."""
    step = train.make_step(
        trainable.loss, trainable.optimizer, trainable.coefficients, carry_axis=trainable.carry_axis or 0,
        axis=placement.axis, **trainable.step_options,
    )  # fmt: skip
    state = train.new_state(trainable.params, trainable.optimizer, jax.random.key(trainable.seed), trainable.carry)
    rules = (*trainable.sharding, *train.RULES)
    return state, placement.compile(
        trainable.change_step(step), state, rules, trainable.carry_axis, trainable.constants
    )


def restore(
    checkpoints: train.Checkpoints, state: train.State, parallel: train.Parallel, feed: Feed
) -> tuple[train.State, int]:
    """Return the state of the newest whole checkpoint, with the batches at its position, and its step; or else 0."""
    state, checkpoint = train.restore(checkpoints, state, parallel)
    if checkpoint is None:
        return state, 0
    for line in checkpoint.damaged:
        say(line)
    feed.batches.restore(checkpoint.record["position"])
    say(f"resuming from step {checkpoint.step:,}")
    return state, checkpoint.step


def measure_start(workdir: Path, figures: Figures) -> None:
    """Write and print the held-out figures before the first step."""
    if jax.process_index() == 0:
        write_json(workdir / BEFORE, figures)
        say(f"before the first step: {show_figures(figures)}")


def loop(
    workdir: Path,
    trainable: Trainable,
    parallel: train.Parallel,
    feed: Feed,
    checkpoints: train.Checkpoints,
    state: train.State,
    step: int,
    trackers: Sequence[Tracker] = (),
) -> tuple[train.State, int | None]:
    """Train from a step on; return the last state, and the signal that ended the run early, or None."""
    schedule, patience = trainable.schedule, None
    if trainable.patience:
        lines = [line for line in read_metrics(workdir) if line["step"] <= step] if step else []
        patience = train.Patience(trainable.score, trainable.patience, lines)
        if patience.spent:  # the run has ended early
            schedule = dataclasses.replace(schedule, steps=0)
    return train.train(
        state, parallel, feed.batches, run=workdir, checkpoints=checkpoints, schedule=schedule,
        evaluate=feed.evaluate, score=trainable.score, size=trainable.size, enough=patience,
        top_speed=None if trainable.top_speed is None else trainable.top_speed(),
        extra=jax.jit(lambda step: {"learning_rate": trainable.rate(step - 1)}), report=say, writers=trackers,
    )  # fmt: skip


def finish(run: Run, trainable: Trainable, state: train.State, feed: Feed) -> None:
    """Compute the outcome of a run, in all of its processes; the first one writes the report and `result.json`."""
    ending = trainable.finish(run.workdir, state, feed.evaluate, translator(run.page.language))
    if jax.process_index() > 0:
        return
    remarks = [*trainable.remarks, *ending.remarks]
    report = write_report(run.workdir, ending.sections, remarks, title=ending.title, **run.page._asdict())
    if ending.result is not None:
        write_json(run.workdir / RESULT, ending.result)
    say(f"{report}: {trainable.report_holds}")
