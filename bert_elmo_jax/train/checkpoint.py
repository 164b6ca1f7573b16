"""Checkpoints: one folder per step, ignored until it is complete.

`checkpoints/<step>/params` holds the parameters, which is enough to use a model. A training run adds `rest` (optimiser,
carried state, key, counters) and `facts.json` (the position in the data and other values that are not arrays).
`files.json` with the hash of every file is written last: a folder without it is unfinished.
"""

import contextlib
import json
import logging
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from jax.experimental import multihost_utils

from bert_elmo_jax.files import UNWRITABLE, hash_file, read_json, write_json
from bert_elmo_jax.train.run_guard import ClockWentBack

FILES = "files.json"
# Seconds that a checkpoint may take once the machine's clock has gone back by more than this. The library that writes
# the arrays waits for moments of that clock, so it can wait for as long as the clock went back.
PATIENCE = 300.0
LARGE, MOST_PACKED = 1 << 28, 100  # bytes of arrays that must not be compressed to less than a hundredth of them
_BEFORE: list[Callable[..., object]] = []  # the hooks for errors that `_show_ours` replaces


def save_params(run: str | Path, step: int, params: Mapping[str, Any]) -> Path:
    """Write a parameter tree as the checkpoint of a step."""
    folder = _folder(run, step)
    quiet_orbax()
    try:
        with ocp.StandardCheckpointer() as checkpointer:  # waits on exit until all is written
            arrays = jax.tree.map(np.asarray, dict(params))
            checkpointer.save(folder / "params", arrays)
        check_written(folder / "params", _list_arrays(arrays))
        write_file_list(folder)
    except (OSError, ValueError) as error:
        raise OSError(f"{folder} could not be written: {_short(error)}") from error
    return folder


def saved_steps(run: str | Path) -> list[int]:
    """Return the steps with a complete checkpoint, in order."""
    folders = (file.parent for file in Path(run).glob(f"checkpoints/*/{FILES}"))
    return sorted(int(folder.name) for folder in folders if folder.name.isdecimal())


def scheduled_steps(run: str | Path) -> list[int]:
    """Return the steps with a complete checkpoint, without those that a stop saved off schedule."""
    return [step for step in saved_steps(run) if _read_record(run, step).get("scheduled", True)]


def load_params(run: str | Path, step: int | None = None) -> tuple[int, dict[str, Any]]:
    """Read the parameters of a step, by default the newest; return the step and the tree."""
    steps = saved_steps(run)
    if not steps:
        raise FileNotFoundError(
            f"{run} has no checkpoint: looked for {Path(run) / 'checkpoints'}/<step>/{FILES}, which is written last"
        )
    step = steps[-1] if step is None else step
    if step not in steps:
        raise FileNotFoundError(f"{run} has no checkpoint of step {step}; it has {', '.join(map(str, steps))}")
    folder = _folder(run, step)
    # Checked here because orbax does not notice flipped bits, and its errors about truncated files are unreadable.
    if wrong := damage(folder):
        remaining = ", ".join(str(other) for other in steps if other != step)
        advice = f"use another step ({remaining}), or copy it again" if remaining else "copy it again"
        raise ValueError(f"{folder} is damaged: {_few(wrong)}; {advice}")
    return step, read_tree(folder / "params")


@dataclass(frozen=True)
class Restored:
    """A checkpoint that was read; `damaged` describes newer ones that were skipped."""

    step: int
    params: dict[str, Any]
    training_state: Any
    record: dict[str, Any]
    damaged: tuple[str, ...] = ()


class Checkpoints:
    """Write, prune and read the checkpoints of a training run, writing in the background.

    Keeps the newest `keep` scheduled checkpoints and the one of them with the highest `score`. A checkpoint off
    schedule, which a stop saves, is kept until the next one.

    >>> import tempfile
    >>> with Checkpoints(tempfile.mkdtemp(), keep=1) as checkpoints:
    ...     for step in (1, 2):
    ...         checkpoints.save(step, {"w": np.ones(2)}, {"momentum": np.zeros(2)}, {"position": step})
    ...     checkpoints.wait()
    ...     checkpoints.restore({"w": np.zeros(2)}, {"momentum": np.zeros(2)}).record["position"]
    2
    """

    def __init__(self, run: str | Path, *, keep: int = 3):
        self.run, self.keep = Path(run), keep
        _folder(run, 0)  # a name that cannot be written is refused before anything is computed
        quiet_orbax()
        self._writers = {name: ocp.StandardCheckpointer() for name in ("params", "rest")}
        self._background = ThreadPoolExecutor(1)
        self._pending: Future[None] | None = None
        self._clock = _clock_offset()  # when the pending checkpoint was begun
        self._stuck = False

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, *error: object) -> None:
        try:
            if error[0] is None:
                self.wait()
        finally:
            self._background.shutdown(wait=not self._stuck)
            for writer in self._writers.values() if not self._stuck else ():
                writer.close()

    def discard_unfinished(self) -> list[int]:
        """Remove unfinished checkpoints and return their steps. Only for the process that owns the run."""
        folders = {int(path.name): path for path in self.run.glob("checkpoints/*") if path.name.isdecimal()}
        unfinished = sorted(folders.keys() - set(saved_steps(self.run)))
        for step in unfinished:
            shutil.rmtree(folders[step])
        return unfinished

    def save(
        self,
        step: int,
        params: Any,
        training_state: Any,
        record: Mapping[str, Any],
        *,
        score: float | None = None,
        scheduled: bool = True,
    ) -> None:
        """Start writing a checkpoint; the arrays may be donated on return. Raise the error of the previous one."""
        self.wait()
        folder, self._clock = _folder(self.run, step), _clock_offset()
        if step in saved_steps(self.run) and not damage(folder):
            return  # a resumed run that is stopped at once
        try:
            if jax.process_index() == 0:
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
                facts = {**record, "score": None if score is None or math.isnan(score) else score}
                facts |= {} if scheduled else {"scheduled": False}
                (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
            meet(f"checkpoint {step}")
            trees = {"params": params, "rest": training_state}
            expected = {name: _list_arrays(tree) for name, tree in trees.items()}
            for name, tree in trees.items():
                self._writers[name].save(folder / name, tree)
        except Exception as error:
            raise self._failure(step, error) from error
        self._pending = self._background.submit(self._finish, step, expected)

    def wait(self) -> None:
        """Wait until the pending checkpoint is written; raise its error if it failed."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        noticed = None
        while not wait_for([pending], timeout=PATIENCE / 100).done:
            back = self._clock - _clock_offset()
            if back <= PATIENCE:
                noticed = None
                continue
            noticed = time.monotonic() if noticed is None else noticed
            if time.monotonic() - noticed > PATIENCE:
                self._stuck = True
                raise ClockWentBack(
                    f"the clock of this machine went back by {back:,.0f} seconds while a checkpoint was being written "
                    f"to {self.run}, and the writing does not end; earlier checkpoints are intact: start again"
                )
        pending.result()

    def _finish(self, step: int, expected: Mapping[str, Sequence[str]]) -> None:
        try:
            for name, writer in self._writers.items():
                writer.wait_until_finished()
                if jax.process_index() == 0:
                    check_written(_folder(self.run, step) / name, expected[name])
            if jax.process_index() == 0:
                write_file_list(_folder(self.run, step))
        except Exception as error:
            raise self._failure(step, error) from error
        if jax.process_index() == 0:
            try:
                self._prune(step)
            except OSError as error:  # the new checkpoint is complete
                message = "an old checkpoint of %s could not be removed: %s"
                logging.getLogger(__name__).warning(message, self.run, _short(error))

    def _failure(self, step: int, error: Exception) -> OSError:
        for writer in self._writers.values():  # one may still be writing after the other failed
            with contextlib.suppress(Exception):
                writer.wait_until_finished()
        shutil.rmtree(_folder(self.run, step), ignore_errors=True)  # frees the disk
        steps = [other for other in saved_steps(self.run) if other != step]
        intact = f"the one of step {steps[-1]} is intact" if steps else "there is no earlier one"
        return OSError(f"the checkpoint of step {step} could not be written; {intact}: {_short(error)}")

    def _prune(self, saved: int) -> None:
        records = {}
        for step in saved_steps(self.run):
            try:
                records[step] = _read_record(self.run, step)
            except ValueError:  # a damaged one, which is of no use
                records[step] = {"scheduled": False}
        scheduled = [step for step, record in records.items() if record.get("scheduled", True)]
        scores = {step: score for step in scheduled if (score := records[step].get("score")) is not None}
        steps_to_keep = {
            saved,
            *scheduled[-self.keep :],
            *([max(scores, key=lambda step: (scores[step], step))] if scores else []),
        }
        for step in records.keys() - steps_to_keep:
            folder = _folder(self.run, step)
            (folder / FILES).unlink()  # first, so that an interrupted removal leaves an unfinished checkpoint
            shutil.rmtree(folder)

    def restore(self, params: Any, training_state: Any) -> Restored | None:
        """Read the newest complete checkpoint into trees like those given; return None if there is none.

        Leaves are arrays, or `jax.ShapeDtypeStruct` with the shardings to read into. Damaged checkpoints are skipped.
        """
        damaged = []
        for candidate in reversed(saved_steps(self.run)):
            folder = _folder(self.run, candidate)
            if wrong := damage(folder):
                damaged.append(f"the checkpoint of step {candidate} is damaged and was skipped: {_few(wrong)}")
                continue
            trees = (read_tree(folder / "params", params), read_tree(folder / "rest", training_state))
            return Restored(candidate, *trees, _read_record(self.run, candidate), tuple(damaged))
        if damaged:
            raise ValueError(
                f"no checkpoint of {self.run} can be read: {'; '.join(damaged)}; copy one back, or start in an empty "
                "run directory"
            )
        return None


def _clock_offset() -> float:
    """Return the difference between the clock, which can be set, and the time since the machine started."""
    return time.time() - time.monotonic()


def quiet_orbax() -> None:
    """Leave out what orbax and asyncio log about a write that failed, dozens of tracebacks: we raise its error."""
    for name in ("absl", "asyncio"):
        logging.getLogger(name).addFilter(_is_ours)  # once: a second time changes nothing
    if sys.unraisablehook is not _show_ours:
        _BEFORE.append(sys.unraisablehook)
        sys.unraisablehook = _show_ours


def _show_ours(error: Any) -> None:
    # Other writes of the checkpoint end after the failed one, and the library finds its event loop closed.
    if str(error.exc_value) != "Event loop is closed":
        _BEFORE[-1](error)


def _is_ours(record: logging.LogRecord) -> bool:
    orbax = "orbax" in record.pathname or (record.name == "asyncio" and "orbax" in record.getMessage())
    return not (orbax and record.levelno >= logging.ERROR)


def meet(where: str) -> None:
    """Wait until all processes of the run get here."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(where)


def check_written(path: Path, expected: Sequence[str]) -> None:
    """Raise OSError if the arrays on the disk, by their types and shapes, are not those that were to be written."""
    with ocp.StandardCheckpointer() as checkpointer:
        written = _list_arrays(checkpointer.metadata(path).item_metadata.tree)
    if written != expected:
        lost = [array for array in expected if array not in written] or [f"{len(expected)} arrays, not {len(written)}"]
        raise OSError(f"{path} lacks arrays that were to be written: {_few(lost)}")


def _list_arrays(tree: Any) -> list[str]:
    """Return type and shape of every array, sorted: a tree comes back with other nodes."""
    return sorted(f"{leaf.dtype}{list(np.shape(leaf))}" for leaf in jax.tree.leaves(tree))


def write_file_list(folder: Path) -> None:
    """Write size and hash of every file of a folder into the folder, atomically; this marks it as complete.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("강")
    >>> write_file_list(folder)
    >>> damage(folder)
    []
    """
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file != folder / FILES)
    hashes = {file.relative_to(folder).as_posix(): [file.stat().st_size, hash_file(file)] for file in files}
    write_json(folder / FILES, hashes)


def damage(folder: Path) -> list[str]:
    """Return the differences between a folder's files and its list, empty if there are none."""
    try:
        listed = read_json(folder / FILES).items()
        expected = {str(name): (int(size), str(digest)) for name, (size, digest) in listed}
        if any(Path(name).is_absolute() or ".." in Path(name).parts for name in expected):
            raise ValueError("a file outside the folder")
    except (OSError, ValueError, TypeError, OverflowError):
        return [f"{FILES} is not a list of files"]
    if not expected:
        return [f"{FILES} lists no files"]
    files = [file for part in ("params", "rest") for file in (folder / part).rglob("*") if file.is_file()]
    unlisted = sorted({file.relative_to(folder).as_posix() for file in files} - expected.keys())
    wrong = [f"{name} is not listed in {FILES}" for name in unlisted]
    for name, (size, digest) in expected.items():
        file = folder / name
        if not file.is_file():
            wrong.append(f"{name} is missing")
        elif file.stat().st_size != size:
            wrong.append(f"{name} has {file.stat().st_size:,} bytes, {size:,} were written")
        elif hash_file(file) != digest:
            wrong.append(f"{name} has changed (its hash differs)")
    return wrong


def _folder(run: str | Path, step: int) -> Path:
    """Return the folder of a checkpoint; raise if orbax cannot take its name."""
    folder = Path(run).absolute() / "checkpoints" / str(step)
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"the name of {os.fsencode(run).decode(errors='replace')} is not text in the encoding of this system's "
            f"file names, {sys.getfilesystemencoding()}: set PYTHONUTF8=1, or a locale such as C.UTF-8"
        ) from None
    return folder


def _read_record(run: str | Path, step: int) -> dict[str, Any]:
    return read_json(_folder(run, step) / "facts.json", default={})


def read_tree(path: Path, like: Any = None) -> Any:
    """Read a tree of arrays, by default as numpy arrays; `like` gives shapes and shardings."""
    try:
        with ocp.StandardCheckpointer() as checkpointer:
            if like is not None:
                return checkpointer.restore(path, jax.tree.map(_shape, like))
            # Onto one device: by default orbax asks for as many devices as wrote the checkpoint.
            one_device = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
            stored_tree = checkpointer.metadata(path).item_metadata.tree
            check_stored(path, stored_tree)
            shapes = jax.tree.map(
                lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=one_device), stored_tree
            )
            return jax.tree.map(np.asarray, checkpointer.restore(path, shapes))
    except Exception as error:  # the library has no error of its own for what it cannot read
        raise ValueError(
            f"{path} is undamaged, but cannot be read here ({_short(error)}): the model, the optimiser or the "
            "installed orbax differs from the one that wrote it"
        ) from error


def check_stored(path: Path, tree: Any) -> None:
    """Raise if the described arrays are many times larger than the files: the library fills in missing parts."""
    described = sum(math.prod(leaf.shape) * np.dtype(leaf.dtype).itemsize for leaf in jax.tree.leaves(tree))
    stored = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    if described > max(LARGE, MOST_PACKED * stored):
        raise ValueError(f"{described:,} bytes of numbers are described, and its files have {stored:,}")


def _shape(leaf: Any) -> Any:
    sharding = leaf.sharding if isinstance(leaf, jax.Array | jax.ShapeDtypeStruct) else None
    return jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype, sharding=sharding)


def _few(wrong: Sequence[str]) -> str:
    return "; ".join(wrong[:3]) + (f"; and {len(wrong) - 3} more" if len(wrong) > 3 else "")


def _short(error: Exception) -> str:
    for number in UNWRITABLE:  # orbax has pages of text around it
        if os.strerror(number) in str(error):
            return os.strerror(number)
    text = (str(error).splitlines() or [""])[0][:200]
    return text or type(error).__name__
