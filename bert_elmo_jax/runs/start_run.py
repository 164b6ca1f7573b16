"""Start a run in this process: exit statuses, messages, memory, the cache of compiled programs, and recorded costs."""

import contextlib
import ctypes
import json
import os
import pkgutil
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata, util
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import jax

from bert_elmo_jax import train
from bert_elmo_jax.compilation_cache import default_folder
from bert_elmo_jax.runs.config_files import override, read_config
from bert_elmo_jax.train.devices import describe_devices
from bert_elmo_jax.train.run_guard import INTERRUPTED, REFUSED, STOPPED, ClockWentBack

Call = Callable[..., int | None]  # of a config and a run directory, with options as keywords: pretrain, finetune
REFUSALS = (ValueError, TypeError, OSError, ImportError, MemoryError)
# From glibc's malloc.h: the number of heaps, the largest free memory at the end of a heap, and the largest block that
# comes from a heap.
ARENA_MAX, TRIM_THRESHOLD, MMAP_THRESHOLD = -8, -1, -3
COSTS = "costs.jsonl"  # in a run directory, one line per start
# What JAX and the libraries below it say when another process of a run is gone.
LOST = re.compile(
    r"gloo|nccl|(closed|reset|refused) by peer|connection re(fused|set)|socket closed|heartbeat|coordination service"
    r"|barrier (failed|timed out)|deadline_exceeded",
    re.I,
)
LAST = 5.0  # seconds that process 0 waits: when it ends, JAX aborts the others, which have a message to print, too


def run_point(call: Call, config: str, fields: Mapping[str, str], workdir: str, options: Mapping[str, Any]) -> int:
    """Call `pretrain` or `finetune` with a config file and overrides; return the exit status of its program.

    An expected error is one line on standard error. Other errors are raised.
    """
    try:
        read, _ = read_config(config)
        override(read, [f"{name}={text}" for name, text in fields.items()])
        return call(read, Path(workdir), **options) or 0
    except (train.Diverged, *REFUSALS) as error:
        print(f"{call.__name__}: {error}", file=sys.stderr)
        return train.DIVERGED if isinstance(error, train.Diverged) else REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED


def join_processes(coordinator: str | None, processes: int | None, process: int | None) -> None:
    """Join the other processes of a run at `coordinator`; without one, this process trains alone.

    >>> join_processes(None, 4, 3)
    Traceback (most recent call last):
    ...
    ValueError: --processes=4, --process=3 without --coordinator: this process would train alone; add --coordinator=…
    """
    flags = [
        f"--{name}={value}" for name, value in (("processes", processes), ("process", process)) if value is not None
    ]
    if not coordinator:
        if flags:
            raise ValueError(
                f"{', '.join(flags)} without --coordinator: this process would train alone; add --coordinator=…"
            )
        return
    if coordinator != "auto" and not coordinator.rpartition(":")[2].isdigit():
        raise ValueError(f"--coordinator={coordinator}: expected auto, or host:port with a number, host:1234")
    if processes is not None and process is not None and process >= processes:
        raise ValueError(
            f"{', '.join(flags)}: processes are counted from 0, so expected --process=0 to {processes - 1}"
        )
    address: dict[str, Any] = {} if coordinator == "auto" else {"coordinator_address": coordinator}
    jax.distributed.initialize(**address, num_processes=processes, process_id=process)


def leave_if_alone(program: str, error: BaseException) -> None:
    """End this process at once with one line if an ordinary exit would wait: for a lost process, or for a clock.

    An ordinary exit waits at a barrier for the process that is gone, for minutes, and JAX aborts there. It also waits
    for the threads that write a checkpoint.
    """
    if isinstance(error, ClockWentBack):
        print(f"{program}: {error}", file=sys.stderr)
        _leave(STOPPED)
    if not jax.distributed.is_initialized() or not (line := describe_lost_process(error)):
        return
    print(
        f"{program}: another process of this run has ended, or cannot be reached ({line}); start all processes again, "
        "and the same commands resume",
        file=sys.stderr,
    )
    if jax.process_index() == 0:
        time.sleep(LAST)
    _leave(STOPPED)


def _leave(status: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def describe_lost_process(error: BaseException) -> str:
    """Return the first line of a library's message that a process was lost; "" for other errors.

    >>> describe_lost_process(ValueError("UNKNOWN: Gloo AllReduce failed: [pair.cc:547] Connection closed by peer"))
    'UNKNOWN: Gloo AllReduce failed: [pair.cc:547] Connection closed by peer'
    >>> describe_lost_process(ValueError("batch_size=3: expected 4"))
    ''
    """
    cause: BaseException | None = error
    while cause is not None:
        text = (str(cause).splitlines() or [""])[0][:200]
        if LOST.search(text):
            return text
        cause = cause.__cause__ or cause.__context__
    return ""


def cache_compiled(folder: Path) -> None:
    """Let JAX keep all compiled programs of many runs in their folder, unless the environment says otherwise.

    The folder replaces the user's own cache, which leaves out small programs.
    """
    if jax.config.values["jax_compilation_cache_dir"] in (None, str(default_folder())):
        jax.config.update("jax_compilation_cache_dir", str(folder.absolute()))
        jax.config.update("jax_compilation_cache_max_size", -1)
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def keep_freed_memory() -> None:
    """Let glibc keep the memory that this process frees, until the process ends.

    By default it returns freed blocks of some megabytes to the system, which fills them with zeros before it hands
    them out again: a third of the time of a training with small steps. All threads share one heap, because the heaps
    of other threads cannot hold large blocks: they would come from the system, a fifth of the time of fine-tuning a
    small model. With other C libraries nothing changes.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in ((ARENA_MAX, 1), (TRIM_THRESHOLD, 1 << 30), (MMAP_THRESHOLD, 1 << 30)):
            mallopt(parameter, value)


def may_have_accelerator() -> bool:
    """Return True if JAX is installed for more than CPUs; does not start JAX, since a process that does holds a TPU."""
    if os.environ.get("JAX_PLATFORMS") == "cpu":
        return False
    plugins = util.find_spec("jax_plugins")
    plugin_modules = [] if plugins is None else [*pkgutil.iter_modules(plugins.submodule_search_locations)]
    return bool(plugin_modules or metadata.entry_points(group="jax_plugins") or util.find_spec("libtpu"))


def say(line: str) -> None:
    """Print a line on standard error."""
    print(line, file=sys.stderr)


class Clock(NamedTuple):
    """A moment: in seconds, and in processor seconds of this process and of its children that have ended."""

    seconds: float
    processor: float


def read_clock() -> Clock:
    """Return the time now.

    >>> read_clock().processor > 0
    True
    """
    return Clock(time.monotonic(), sum(os.times()[:4]))  # Windows knows the time of this process only


@contextlib.contextmanager
def cost_kept(run: Path, first: bool = True, began: Clock | None = None) -> Iterator[None]:
    """Record the cost of the block as one start of a run; of its processes only the `first` does, unless killed.

    With `began`, the cost includes the work for the run since then, such as reading its data.

    >>> import tempfile
    >>> run = Path(tempfile.mkdtemp())
    >>> with cost_kept(run):
    ...     pass
    >>> [list(cost) for cost in read_costs(run)]
    [['seconds', 'processor', 'device']]
    """
    began = began or read_clock()
    try:
        yield
    finally:
        if first:
            now = read_clock()
            add_cost(run, now.seconds - began.seconds, now.processor - began.processor, _find_device())


def add_cost(run: Path, seconds: float, processor: float = 0.0, device: str = "") -> None:
    """Add the cost of one start; a run directory that cannot be written, or is gone, is left alone."""
    cost = {"seconds": round(seconds, 3), "processor": round(processor, 3), "device": device}
    with contextlib.suppress(OSError), (run / COSTS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(cost, ensure_ascii=False) + "\n")


def read_costs(run: Path) -> list[dict[str, Any]]:
    """Return the costs of all starts of a run, oldest first; a line that is damaged is skipped.

    >>> read_costs(Path("no/such/run"))
    []
    """
    costs = []
    with contextlib.suppress(OSError):
        for line in (run / COSTS).read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                cost = json.loads(line)
                costs.append({**cost, "seconds": float(cost["seconds"]), "processor": float(cost["processor"])})
    return costs


def sum_costs(run: Path, part: str = "seconds") -> float:
    """Return what all starts of a run cost together, in seconds or in `processor` seconds.

    >>> sum_costs(Path("no/such/run"))
    0.0
    """
    return sum((cost[part] for cost in read_costs(run)), 0.0)


def _find_device() -> str:
    """Return what this process has computed on, or "" if it has not computed: asking JAX would start a device."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return describe_devices() if bridge is not None and bridge._backends else ""
