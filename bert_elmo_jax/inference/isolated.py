"""Read a model of unknown origin in a process of its own first, with bounds for files, memory and time.

`load(path, untrusted=True)` does so before it reads the model itself: a file on which a library crashes, or that takes
all memory, ends only that process, and a file that names another one is not followed.
"""

import json
import logging
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from bert_elmo_jax.files import check_links, read_sums
from bert_elmo_jax.inference.verify import hub_hashes

SECONDS = 60.0  # of the processor for any model, and more for large ones:
BYTES_PER_SECOND = 10**7
MEMORY = 2 << 30  # bytes for any model, and `COPIES` times the size of its files
COPIES = 6
PROBE = "The river bank. 강가에 배가 있다. <s> [MASK] 1e9"
PROGRAM = """
from bert_elmo_jax.inference.isolated import answer
from bert_elmo_jax.inference.read_model import read_model
answer(read_model)
"""
# Files that Python and the libraries read on their own.
SYSTEM = ("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/self/", "/sys/", "/dev/null", "/dev/urandom")
FORBIDDEN = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto", "subprocess.Popen", "os.system",
             "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "os.remove", "os.rename", "os.mkdir", "os.rmdir",
             "os.symlink", "os.link", "os.chmod", "os.truncate")  # fmt: skip
NO_SUMS = "%s has no hashes, so nothing shows whether its files are those that its author released"


class Refused(PermissionError):
    """Raised in the isolated process for an act that a model may not cause."""


def check_isolated(path: Path, folder: Path, options: Mapping[str, Any]) -> bool:
    """Read a model in a process of its own; raise if it is refused, and return whether its folder has hashes.

    `folder` has the model's files, and `options` are arguments of `read_model`.
    """
    folder = folder.resolve()
    check_links(folder if path.is_dir() else path, depth=None)  # into the parts of checkpoints, too
    has_sums = bool(read_sums(folder) or hub_hashes(folder))
    if not has_sums:
        logging.getLogger(__name__).warning(NO_SUMS, path)
    size = sum(_stored_size(file) for file in folder.rglob("*") if file.is_file())
    seconds, memory = SECONDS + size / BYTES_PER_SECOND, MEMORY + COPIES * size
    request = {
        "path": str(path.absolute()),
        "folder": str(folder),
        "options": dict(options),
        "seconds": seconds,
        "memory": memory,
    }
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(_list_imports())}
    try:
        ended = subprocess.run(
            [sys.executable, "-P", "-W", "ignore", "-c", PROGRAM], input=json.dumps(request, default=str),
            env=environment, capture_output=True, text=True, errors="replace", timeout=4 * seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ValueError(f"{path} is refused: reading it took more than {4 * seconds:,.0f} s") from None
    lines = ended.stdout.strip().splitlines()
    done = ended.returncode == 0 and lines
    problem = json.loads(lines[-1])["problem"] if done else _explain(ended, seconds, memory)
    if problem:
        raise ValueError(f"{path} is refused: {problem}")
    return has_sums


def _stored_size(file: Path) -> int:
    """Return the bytes of a file that are on the disk: a file of a terabyte of holes must not raise the bounds."""
    about = file.stat()
    return min(about.st_size, 512 * getattr(about, "st_blocks", about.st_size))


def _list_imports() -> list[str]:
    """Return the folders that the process may import from: the same as here, but never the folder it is started in.

    `-c` alone would look in the current folder first, which may be the model's.
    """
    return [*filter(None, sys.path), str(Path(__file__).parents[2])]


def _explain(ended: Any, seconds: float, memory: int) -> str:
    """Return why the process gave no answer."""
    last = (ended.stderr.strip().splitlines() or ["it said nothing"])[-1][:200]
    if ended.returncode == -24:  # SIGXCPU
        return f"reading it took more than {seconds:,.0f} s of the processor"
    if "MemoryError" in ended.stderr or "bad_alloc" in ended.stderr or "allocat" in ended.stderr:
        return f"reading it takes more than {memory >> 20:,} MiB of memory"
    return f"a library crashed on it (status {ended.returncode}: {last})"


def answer(read_model: Callable[..., Any]) -> None:
    """Read the model that standard input names, and print the problem, "" if there is none."""
    request = json.loads(sys.stdin.read())
    answers, sys.stdout = sys.stdout, sys.stderr
    from bert_elmo_jax.text import Tokenizer

    limit(request["seconds"], request["memory"])
    problem, path = "", Path(request["path"])
    forbid([Path(request["folder"]), *map(Path, filter(None, [request["options"].get("adapter")]))])
    try:
        model = read_model(path, **request["options"])
        if isinstance(model.tokenizer, Tokenizer):
            model.tokenizer.encode(PROBE)
    except MemoryError:
        problem = f"reading it takes more than {request['memory'] >> 20:,} MiB of memory"
    except (ValueError, OSError) as error:
        problem = str(error)
    except BaseException as error:
        problem = f"its files are damaged ({type(error).__name__}: {str(error)[:200]})"
    print(json.dumps({"problem": problem}), file=answers, flush=True)
    os._exit(0)  # without waiting for threads of libraries


def limit(seconds: float, memory: int) -> None:
    """Bound the time of the processor and the memory that this process may add, where the system can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    most = int(used + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5))
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def list_prefixes(folders: Iterable[Path]) -> tuple[str, ...]:
    """Return the beginnings of the names that may be opened: in these folders, and of Python and its libraries."""
    names = [os.path.realpath(folder) for folder in folders]
    blobs = [above.parent / "blobs" for name in names for above in Path(name).parents if above.name == "snapshots"]
    trees = {sys.prefix, sys.base_prefix, *sysconfig.get_paths().values()}
    names += [os.path.realpath(path) for path in (*map(str, blobs), *trees, str(Path(__file__).parents[1]))]
    return (*(f"{name}{os.sep}" for name in names), *SYSTEM)


def find_breach(event: str, arguments: tuple[Any, ...], prefixes: tuple[str, ...]) -> str:
    """Return the problem with an event of an audit, "" if it is allowed.

    >>> find_breach("open", ("/etc/passwd", "r", 0), ("/models/bert/",))
    'it would read /etc/passwd, outside its folder'
    """
    if event in FORBIDDEN:
        return f"it would call {event}{arguments!r:.80}"
    if event != "open" or isinstance(arguments[0], int) or arguments[0] is None:
        return ""
    path, mode, flags = arguments
    name = os.path.realpath(os.fsdecode(path))
    writes = bool(set(mode or "") & set("wax+")) or bool((flags or 0) & (os.O_WRONLY | os.O_RDWR))
    if writes and name != os.devnull:
        return f"it would write {name}"
    if name.endswith("/environ") or not f"{name}{os.sep}".startswith(prefixes):
        return f"it would read {name}, outside its folder"
    return ""


def forbid(folders: Iterable[Path]) -> None:
    """Let this process open only files of these folders and of Python, write none, and start nothing.

    A hook for audits cannot be removed again. Libraries that open files without Python are not covered.
    """
    prefixes = list_prefixes(folders)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if breach := find_breach(event, arguments, prefixes):
            raise Refused(breach)

    sys.addaudithook(watch)
