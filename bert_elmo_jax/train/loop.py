"""The training loop: the order of events, and the handling of failures.

After each step the loop reads the metrics of the previous step, while this one is still being computed. On schedule it
then evaluates, adding the figures to the metrics of that step, and saves a checkpoint, after flushing the metrics of
all steps it covers. A run that is asked to stop saves first. A run that is killed and restarted therefore writes the
same lines, each of them once.
"""

import collections
import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.typing import ArrayLike

from bert_elmo_jax.progress_bars import progress_bar
from bert_elmo_jax.train.checkpoint import Checkpoints, Restored
from bert_elmo_jax.train.metrics import Metrics, Writer
from bert_elmo_jax.train.parallel import Parallel
from bert_elmo_jax.train.run_guard import Diverged, Interrupt
from bert_elmo_jax.train.step import State, from_arrays, to_arrays

STOPPING = "asked to stop: saving and ending after this step (a second Ctrl-C ends at once)"
Evaluate = Callable[[State], Mapping[str, float]]


@runtime_checkable
class Batches(Protocol):
    """The data of a training run: an iterator of batches with a position that JSON can hold."""

    def __next__(self) -> Mapping[str, np.ndarray]:
        """Return the next batch."""
        ...

    def state(self) -> Any:
        """Return the position after the last batch."""
        ...


class Fetched(NamedTuple):
    """A batch on the host and on the devices, and the position after it."""

    host: Mapping[str, np.ndarray]
    device: Any
    position: Any


class Prefetch:
    """Read and place up to `ahead` batches while the devices work; an error is raised in place of its batch."""

    def __init__(self, batches: Batches, put: Callable[[Mapping[str, np.ndarray]], Any], ahead: int = 3):
        self._batches, self._put = batches, put
        self._thread = ThreadPoolExecutor(1, "prefetch")
        self._coming = collections.deque([self._thread.submit(self._fetch, None)])
        for _ in range(ahead - 1):
            self._fetch_more()

    def _fetch(self, previous: Future[Fetched] | None) -> Fetched:
        if previous is not None:
            previous.result()  # after an error, raise it again instead of reading on
        batch = next(self._batches)
        return Fetched(batch, self._put(batch), self._batches.state())

    def _fetch_more(self) -> None:
        self._coming.append(self._thread.submit(self._fetch, self._coming[-1]))

    def __next__(self) -> Fetched:
        fetched = self._coming[0].result()
        self._fetch_more()
        self._coming.popleft()
        return fetched

    def __enter__(self) -> "Prefetch":
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class Schedule:
    """The length of a run and the intervals of its actions, in steps. The last step always evaluates and saves."""

    steps: int
    log_every: int = 10
    eval_every: int = 0
    checkpoint_every: int = 0
    stop_after_failures: int = 10


def restore(checkpoints: Checkpoints, state: State, parallel: Parallel) -> tuple[State, Restored | None]:
    """Return the newest complete checkpoint as a state on the devices, or else the given state."""
    placed = parallel.place(state)
    like = to_arrays(parallel.gather(placed))
    checkpoint = checkpoints.restore(like.pop("params"), like)
    if checkpoint is None:
        return placed, None
    return parallel.place(from_arrays({"params": checkpoint.params, **checkpoint.training_state})), checkpoint


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
    extra: Callable[[int], Mapping[str, ArrayLike]] | None = None,
    enough: Callable[[Mapping[str, float]], bool] | None = None,
    progress: bool = True,
    report: Callable[[str], object] = print,
    writers: Sequence[Writer] = (),
) -> tuple[State, int | None]:
    """Run steps until `schedule.steps`; return the state, and the signal that ended the run early, if any.

    `state` and `batches` must be at the same position. The checkpoint with the highest evaluation figure `score` is
    kept. For the progress bar, `size` counts the tokens of a batch and `top_speed` is the highest possible number of
    tokens per second. `extra` returns further figures of a step, such as the learning rate. `enough` receives the
    figures of each evaluation and may end the run early. `writers` get the figures that TensorBoard gets. Raise
    `Diverged` after `stop_after_failures` steps in a row without a finite loss, after saving the last of their batches
    in the run directory.
    """
    start = int(jax.device_get(jax.tree.leaves(state.step)[0].reshape(-1)[0]))
    bar = progress_bar(schedule.steps, "", "step", initial=start, shown=progress and jax.process_index() == 0)
    compiled: set[Any] = set()  # the shapes of the batches so far
    position: Any = batches.state()
    pending: tuple[int, Fetched, Mapping[str, Any]] | None = None
    clock, tokens, evaluated = time.perf_counter(), 0, False

    def tell(line: str) -> None:
        """Report a line above the bar."""
        with bar.external_write_mode(sys.stderr):
            report(line)

    def settle(figures: Mapping[str, float] | None = None) -> None:
        """Read and write the metrics of the pending step."""
        nonlocal pending, clock, tokens
        if pending is None:
            return
        (step, fetched, values), pending = pending, None
        metric_values = {name: float(value) for name, value in jax.device_get(dict(values)).items()}
        failed = int(metric_values.pop("failed"))
        line = {"loss": metric_values.pop("loss"), **metric_values}
        log = step % schedule.log_every == 0 or step == schedule.steps
        if metrics is not None:
            metrics.write(step, {**line, **(figures or {})}, events=log or bool(figures))
        is_first = step == start + 1  # it includes compilation, so that the clock begins again below
        bar.set_description(refresh=False)
        if not is_first:
            bar.update(step - bar.n)
        if log:
            now = time.perf_counter()
            speed = tokens / (now - clock)
            shown = {"tokens/s": f"{speed:,.0f}"} if tokens else {}
            shown |= {"utilisation": f"{speed / top_speed:.0%}"} if tokens and top_speed else {}
            bar.set_postfix({"loss": f"{line['loss']:.4f}", **shown}, refresh=not is_first)
            clock, tokens = now, 0
            if metrics is not None:
                metrics.flush()
        if is_first:
            clock, tokens = time.perf_counter(), 0
            bar.start_at(step)
        if failed:
            tell(f"step {step}: the loss or a gradient is not finite; nothing was updated ({failed} in a row)")
        if failed == step == schedule.steps:
            raise Diverged(
                f"none of the {step} steps had a finite loss or gradient, so nothing was trained. Look at the data, "
                "lower the learning rate, or clip gradients."
            )
        if failed >= schedule.stop_after_failures:
            aside = Path(run) / f"not_finite_step_{step}.npz"
            arrays: dict[str, Any] = dict(fetched.host)
            np.savez(aside, **arrays)
            raise Diverged(
                f"{failed} steps in a row, up to {step}, had no finite loss or gradient; the checkpoints are intact, "
                f"the last of these batches is in {aside}. Inspect it, lower the learning rate, or clip gradients."
            )

    def demand_finite(step: int) -> None:
        """Raise `Diverged` if the last update has made a parameter infinite or not a number."""
        if _all_finite(parallel.gather(state).params):
            return
        settle()
        raise Diverged(
            f"step {step}: the parameters are no longer finite, so they are not saved; earlier checkpoints are intact. "
            "Lower the learning rate, or clip gradients."
        )

    def save(step: int, figures: Mapping[str, float], ending: bool, scheduled: bool) -> None:
        if not figures:  # otherwise they were looked at before the evaluation
            demand_finite(step)
        if metrics is not None:
            metrics.flush()
        arrays = to_arrays(parallel.gather(state))
        record = {"position": position, "figures": dict(figures)}
        params = arrays.pop("params")
        for attempt in (1, 2):
            try:
                scored = figures.get(score) if score else None
                checkpoints.save(step, params, arrays, record, score=scored, scheduled=scheduled)
                return
            except OSError as error:
                # The error may come from the previous checkpoint, written in the background: try this one again.
                if attempt == 2 and ending:
                    raise
                tell(f"step {step}: {error}")

    with (
        Interrupt(lambda: tell(STOPPING)) as interrupt,
        Metrics(run, start, writers) if jax.process_index() == 0 else contextlib.nullcontext() as metrics,
        Prefetch(batches, parallel.put) as fetched_batches,
        bar,
    ):
        for step in range(start + 1, schedule.steps + 1):
            fetched = next(fetched_batches)
            shapes = tuple(sorted((name, np.shape(values)) for name, values in fetched.host.items()))
            if shapes not in compiled:
                compiled.add(shapes)
                bar.announce("compiling the step")
            state, values = parallel.step(state, fetched.device)
            if extra is not None:  # computed by the device after this step: read now, it would wait for the next one
                values = {**values, **extra(step)}
            settle()
            pending, position = (step, fetched, values), fetched.position
            if size is not None:
                tokens += size(fetched.host)
            last = step == schedule.steps
            stop = _all_agree(interrupt.signal is not None, step % schedule.log_every == 0)
            figures: dict[str, float] = {}
            if evaluate is not None and (last or (schedule.eval_every and step % schedule.eval_every == 0)):
                demand_finite(step)
                with bar.waiting_for("evaluating" if evaluated else "compiling the evaluation"):
                    figures = dict(evaluate(parallel.gather(state)))
                evaluated = True
                if not bar.disable:
                    shown = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
                    bar.write(f"step {step:,}: {shown}", file=sys.stderr)
                clock, tokens = time.perf_counter(), 0
                last = last or (enough is not None and enough(figures))
            scheduled = last or bool(schedule.checkpoint_every and step % schedule.checkpoint_every == 0)
            due = scheduled or stop
            if due or figures:
                settle(figures)
            if due:
                save(step, figures, ending=last or stop, scheduled=scheduled)
            if stop:
                tell(f"asked to stop: saved at step {step}; run the same command to resume")
            if stop or last:
                break
        settle()
        checkpoints.wait()
    return state, interrupt.signal


class Patience:
    """Return True once `patience` evaluations in a row have not raised the best `score`; never if `patience` is 0.

    Call it with the figures of each evaluation. `lines` of `metrics.jsonl` restore the count of a resumed run.

    >>> patience = Patience("dev/f1", 2)
    >>> [patience({"dev/f1": value}) for value in (0.5, 0.6, 0.6, 0.4)]
    [False, False, False, True]
    """

    def __init__(self, score: str, patience: int, lines: Iterable[Mapping[str, Any]] = ()):
        self._score, self._patience = score, patience
        self._best, self._waited = -math.inf, 0
        for line in lines:
            if score in line:
                self(line)

    @property
    def spent(self) -> bool:
        """True if the run should end."""
        return 0 < self._patience <= self._waited

    def __call__(self, figures: Mapping[str, Any]) -> bool:
        """Record an evaluation; return `spent`."""
        value = figures[self._score]
        if value is not None and value > self._best:
            self._best, self._waited = value, 0
        else:
            self._waited += 1
        return self.spent


@jax.jit
def _all_finite(params: Any) -> Any:
    """Return True if no parameter is infinite or not a number."""
    leaves = [jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(params)]
    return jnp.stack(leaves).all() if leaves else jnp.array(True)


def _all_agree(stop: bool, meet: bool) -> bool:
    """Return whether to stop; all processes must stop at the same step, so they agree at each `meet`."""
    if jax.process_count() == 1:
        return stop
    return bool(meet and multihost_utils.process_allgather(np.array(stop)).any())
