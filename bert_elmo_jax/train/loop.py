"""The loop around the step: only the order in which things happen, and what happens when something goes wrong.

After each step, in this order: the metrics of the step before are read (this one is still being computed); on schedule
the held-out evaluation, whose figures join the line of their step; on schedule the checkpoint, after the metrics of
every step it covers are on the disk. A run that is asked to stop saves first. So a run that is killed at any moment and
started again writes every line once, and the same lines.
"""

import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from tqdm import tqdm

from bert_elmo_jax.train.checkpoint import Checkpoints, Restored
from bert_elmo_jax.train.metrics import Metrics
from bert_elmo_jax.train.parallel import Parallel
from bert_elmo_jax.train.prefetch import Batches, Fetched, Prefetch
from bert_elmo_jax.train.run_guard import Interrupt
from bert_elmo_jax.train.state import State, from_arrays, to_arrays

HEARD = "asked to stop: it saves and ends after this step (a second Ctrl-C ends it at once)"
Evaluate = Callable[[State], Mapping[str, float]]


class Diverged(RuntimeError):
    """The loss was not finite too many times in a row."""


@dataclass(frozen=True)
class Schedule:
    """How long a run is, and every how many steps what is done (0: never, or at the end alone).

    `eval_every` and `checkpoint_every` happen at the last step in any case.
    """

    steps: int
    log_every: int = 10
    eval_every: int = 0
    checkpoint_every: int = 0
    stop_after_failures: int = 10


def restore(checkpoints: Checkpoints, state: State, parallel: Parallel) -> tuple[State, Restored | None]:
    """The state to begin with: the newest whole checkpoint's, or the one given; placed on the devices."""
    placed = parallel.place(state)
    like = to_arrays(parallel.gather(placed))
    found = checkpoints.restore(like.pop("params"), like)
    if found is None:
        return placed, None
    return parallel.place(from_arrays({"params": found.params, **found.rest})), found


def train(
    state: State,
    parallel: Parallel,
    batches: Batches,
    *,
    run: str | Path,
    schedule: Schedule,
    checkpoints: Checkpoints,
    evaluate: Evaluate | None = None,
    score: str | None = None,
    size: Callable[[Mapping[str, np.ndarray]], int] | None = None,
    top_speed: float | None = None,
    extra: Callable[[int], Mapping[str, float]] | None = None,
    enough: Callable[[Mapping[str, float]], bool] | None = None,
    progress: bool = True,
    report: Callable[[str], object] = print,
) -> tuple[State, int | None]:
    """Run steps until `schedule.steps`; the state, and the signal that ended it early, if one did.

    `state` and `batches` stand where the run goes on. `score` names the evaluation's figure whose highest checkpoint is
    kept. `size` counts the tokens of a batch, and `top_speed` is how many a second the devices could do at most, both
    for the bar; `extra` gives further figures of a step (its learning rate). `enough`, asked with the figures of each
    evaluation, may end the run before its last step.
    Raises `Diverged` after `stop_after_failures` steps in a row without a finite loss, the last of their batches
    written beside the checkpoints.
    """
    start = int(jax.device_get(jax.tree.leaves(state.step)[0].reshape(-1)[0]))
    bar = tqdm(total=schedule.steps, initial=start, unit="step", disable=not progress or jax.process_index() > 0)
    compiled: set[Any] = set()  # the shapes of the batches so far
    position: Any = batches.state()
    pending: tuple[int, Fetched, Mapping[str, Any]] | None = None
    clock, tokens = time.perf_counter(), 0

    def tell(line: str) -> None:
        """A line of its own, above the bar."""
        with tqdm.external_write_mode(sys.stderr):
            report(line)

    def settle(figures: Mapping[str, float] | None = None) -> None:
        """Read and write the metrics of the step that is still pending."""
        nonlocal pending, clock, tokens
        if pending is None:
            return
        (step, fetched, values), pending = pending, None
        found = {name: float(value) for name, value in jax.device_get(dict(values)).items()}
        failed = int(found.pop("failed"))
        line = {"loss": found.pop("loss"), **found}
        log = step % schedule.log_every == 0 or step == schedule.steps
        if metrics is not None:
            metrics.write(step, {**line, **(extra(step) if extra else {}), **(figures or {})}, events=log)
        bar.update(step - bar.n)
        if log:
            now = time.perf_counter()
            speed = tokens / (now - clock)
            shown = {"tokens/s": f"{speed:,.0f}"} if tokens else {}
            shown |= {"utilisation": f"{speed / top_speed:.0%}"} if tokens and top_speed else {}
            bar.set_postfix({"loss": f"{line['loss']:.4f}", **shown})
            clock, tokens = now, 0
            if metrics is not None:
                metrics.flush()
        bar.set_description(refresh=False)
        if step == start + 1:  # the first step was compiled first: that is no measure of those to come
            clock, tokens = time.perf_counter(), 0
            bar.reset()
            bar.initial = bar.last_print_n = bar.n = step
            bar.refresh()
        if failed:
            tell(f"step {step}: the loss or a gradient is not finite; nothing was updated ({failed} in a row)")
        if failed >= schedule.stop_after_failures:
            aside = Path(run) / f"not_finite_step_{step}.npz"
            arrays: dict[str, Any] = dict(fetched.host)
            np.savez(aside, **arrays)
            raise Diverged(
                f"{failed} steps in a row, up to {step}, had no finite loss or gradient; the checkpoints are intact, "
                f"the last of these batches is in {aside}. Lower the learning rate, clip gradients, or look into it."
            )

    def save(step: int, figures: Mapping[str, float], ending: bool) -> None:
        if metrics is not None:
            metrics.flush()
        arrays = to_arrays(parallel.gather(state))
        facts = {"position": position, "figures": dict(figures)}
        params = arrays.pop("params")
        for attempt in (1, 2):
            try:
                checkpoints.save(step, params, arrays, facts, score=figures.get(score) if score else None)
                return
            except OSError as error:
                # It may be the one before, written in the background, that has failed: then this one has its turn.
                if attempt == 2 and ending:
                    raise
                tell(f"step {step}: {error}")

    with (
        Interrupt(lambda: tell(HEARD)) as interrupt,
        Metrics(run, start) if jax.process_index() == 0 else contextlib.nullcontext() as metrics,
        Prefetch(batches, parallel.put) as fetched_batches,
        bar,
    ):
        for step in range(start + 1, schedule.steps + 1):
            fetched = next(fetched_batches)
            shapes = tuple(sorted((name, np.shape(values)) for name, values in fetched.host.items()))
            if shapes not in compiled:  # each is compiled for, which takes its time
                compiled.add(shapes)
                bar.set_description("compiling")
            state, values = parallel.step(state, fetched.device)
            settle()
            pending, position = (step, fetched, values), fetched.position
            if size is not None:
                tokens += size(fetched.host)
            last = step == schedule.steps
            stop = _all_agree(interrupt.signal is not None, step % schedule.log_every == 0)
            figures: dict[str, float] = {}
            if evaluate is not None and (last or (schedule.eval_every and step % schedule.eval_every == 0)):
                figures = dict(evaluate(parallel.gather(state)))
                if not bar.disable:  # a line of its own, above the bar
                    shown = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
                    bar.write(f"step {step:,}: {shown}", file=sys.stderr)
                clock = time.perf_counter()
                tokens = 0
                last = last or (enough is not None and enough(figures))
            due = last or stop or (schedule.checkpoint_every and step % schedule.checkpoint_every == 0)
            if due or figures:
                settle(figures)
            if due:
                save(step, figures, ending=last or stop)
            if stop:
                tell(f"asked to stop: saved at step {step}; the same command goes on from there")
            if stop or last:
                break
        settle()
        checkpoints.wait()
    return state, interrupt.signal


def _all_agree(stop: bool, meet: bool) -> bool:
    """Whether to stop: where there are several processes, they must do so at the same step, so they ask each other."""
    if jax.process_count() == 1:
        return stop
    return bool(meet and multihost_utils.process_allgather(np.array(stop)).any())
