"""Guards of a run directory: one process at a time, one configuration, and clean interruption."""

import contextlib
import json
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any

from bert_elmo_jax.earlier_names import rename_fields
from bert_elmo_jax.files import LockHeld, lock, read_json, write_text

# Exit codes; with the last two, a scheduler can distinguish "restart me" from failure.
REFUSED = 2  # wrong flags, files or data
INTERRUPTED = 130  # Ctrl-C
STOPPED = 75  # stopped by a signal and saved: the same command resumes
DIVERGED = 76  # too many steps in a row without a finite loss


class ClockWentBack(OSError):
    """Raised for a checkpoint that is not written because the clock went back; its threads cannot be ended."""


class Diverged(RuntimeError):
    """The loss was not finite too many times in a row."""


NOTHING: Mapping[str, Any] = MappingProxyType({})


# Files from a start that was stopped before it wrote `run.json`, from a sweep, or from the shell.
OWN_FILES = re.compile(
    r"\..*|lost\+found|lock|costs\.jsonl|point\.json|skipped\.jsonl|examples\.json|log\.txt|toyworld(\..*)?"
    r"|(adapted_)?backward|adapted|.*\.partial|.*\.(log|out|err)"
)


def refuse_other_files(run: str | Path) -> None:
    """Raise if a folder without a run has other files, so that a run does not write among them.

    >>> import tempfile
    >>> run = tempfile.mkdtemp()
    >>> (Path(run) / "thesis.docx").touch()
    >>> refuse_other_files(run)
    Traceback (most recent call last):
    FileExistsError: ... holds other files than a run's (thesis.docx): give a new folder
    """
    folder = Path(run)
    if not folder.is_dir() or (folder / "run.json").is_file():
        return
    names = sorted(path.name for path in folder.iterdir() if not OWN_FILES.fullmatch(path.name))
    if names:
        raise FileExistsError(f"{folder} holds other files than a run's ({', '.join(names[:5])}): give a new folder")


@contextlib.contextmanager
def only_process(run: str | Path) -> Iterator[None]:
    """Lock a run directory, creating it if needed; raise if another process holds it.

    >>> import tempfile
    >>> run = tempfile.mkdtemp()
    >>> with only_process(run), only_process(run):
    ...     pass
    Traceback (most recent call last):
    BlockingIOError: ... is being written by process ...: wait for it, stop it, or choose another directory
    """
    folder = Path(run)
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock(folder / "lock"))
        except LockHeld as error:
            raise BlockingIOError(
                f"{folder} is being written by process {error.holder}: wait for it, stop it, or choose another "
                "directory"
            ) from None
        except OSError as error:
            raise OSError(f"{folder} cannot be written ({error.strerror}): choose another run directory") from error
        yield


def same_run(
    run: str | Path, settings: Mapping[str, Any], free: tuple[str, ...] = (), added: Mapping[str, Any] = NOTHING
) -> None:
    """Write the configuration to `run.json`, or raise if an existing one differs, listing every difference.

    Fields in `free` may change when a run is restarted. A file of an earlier version lacks fields of `added`, which has
    the values that it meant: `{"model.norm": "post"}`.

    >>> import tempfile
    >>> run = tempfile.mkdtemp()
    >>> same_run(run, {"steps": 100})
    >>> same_run(run, {"steps": 200})
    Traceback (most recent call last):
    ValueError: ... was started with another configuration:...
    """
    file = Path(run) / "run.json"
    if not file.is_file():
        write_text(file, json.dumps(settings, indent=1, ensure_ascii=False, default=str) + "\n")
        return
    try:
        recorded = rename_fields(read_json(file))
    except ValueError as error:
        raise ValueError(f"{error}; restore it, or choose another run directory") from None
    then, now = (_flat({k: v for k, v in values.items() if k not in free}) for values in (recorded, settings))
    then = {name: json.dumps(value) for name, value in added.items() if name in now} | then
    pairs = {name: (then.get(name, "nothing"), now.get(name, "nothing")) for name in sorted({*then, *now})}
    changed = [f"{name}: {before} then, {after} now" for name, (before, after) in pairs.items() if before != after]
    if changed:
        raise ValueError(
            f"{run} was started with another configuration:\n" + "\n".join(changed) + "\nResume with the "
            "configuration it was started with, or choose another run directory."
        )


def record_free(run: str | Path, settings: Mapping[str, Any], free: tuple[str, ...]) -> None:
    """Write the values that the fields in `free` have now to `run.json`, which names the data that a run has read.

    >>> import tempfile
    >>> run = tempfile.mkdtemp()
    >>> same_run(run, {"steps": 100, "data": "corpora/wiki"})
    >>> record_free(run, {"steps": 100, "data": "/mnt/wiki"}, ("data",))
    >>> read_json(Path(run) / "run.json")
    {'steps': 100, 'data': '/mnt/wiki'}
    """
    file = Path(run) / "run.json"
    recorded = read_json(file)
    now = {name: settings[name] for name in free if name in settings}
    if _flat({name: recorded.get(name) for name in now}) != _flat(now):
        write_text(file, json.dumps(recorded | now, indent=1, ensure_ascii=False, default=str) + "\n")


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return each value as JSON, under the names on its path."""
    flat: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        elif value is not None:  # an empty field is like one that an earlier version did not have
            flat[prefix + name] = json.dumps(value, ensure_ascii=False, default=str)
    return flat


class Interrupt:
    """Catch SIGTERM and the first Ctrl-C: set `signal` and call `noticed`. A second Ctrl-C stops at once."""

    signal: int | None = None

    def __init__(self, noticed: Callable[[], object] = lambda: None):
        self._noticed = noticed

    def __enter__(self) -> "Interrupt":
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.signal == number == signal.SIGINT:
            raise KeyboardInterrupt
        first, self.signal = self.signal is None, number
        if first:
            with contextlib.suppress(RuntimeError):  # printing fails if the signal interrupts another print
                self._noticed()

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
