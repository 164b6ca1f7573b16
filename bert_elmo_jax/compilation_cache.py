"""The user's cache of compiled programs: shared by all runs, bounded in size, and optional.

Programs turn it on when they start; a notebook calls `share_compiled()`. Importing the library changes nothing.
`JAX_COMPILATION_CACHE_DIR` selects another folder, `JAX_ENABLE_COMPILATION_CACHE=false` turns the cache off.
"""

import contextlib
import hashlib
import logging
import os
import platform
import shutil
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bert_elmo_jax.files import read_json, write_json
from bert_elmo_jax.platform_support import is_private

LIMIT = 2**30  # bytes: half for this JAX and processor, half for all others
SHORTEST = 0.2  # seconds: what compiles in less is not kept
RECORD = "entries.json"  # sizes and times of the entries, as the last start saw them
LOCK = ".lockfile"  # the name that JAX uses
PATIENCE = 3.0  # seconds for the lock; programs hold it for a moment
FOREIGN = "%s belongs to another user, or all users can write into it: compiled programs are neither read nor kept"
STUCK = "%s is held by another process: compiled programs are neither read nor kept"


def default_folder() -> Path:
    """Return the folder for this version of JAX and this processor, below `~/.cache` or `$XDG_CACHE_HOME`.

    Code that XLA compiled for one processor may crash on another, and JAX does not tell CPUs apart. A home directory
    may be shared by several machines, so the folder's name contains the processor.

    >>> default_folder().parent.parent.name
    'bert_elmo_jax'
    """
    caches = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    processor = hashlib.sha256(describe_processor().encode()).hexdigest()[:8]
    return caches / "bert_elmo_jax" / "compiled" / f"jax-{version('jaxlib')}-{processor}"


def describe_processor() -> str:
    """Return the processor's name and instruction sets, or less where the system does not list them.

    >>> platform.machine() in describe_processor()
    True
    """
    names = ("model name", "flags", "Features", "CPU part")
    lines = {platform.machine(), platform.processor()}
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        lines |= {line for line in text.splitlines() if line.partition(":")[0].strip() in names}
    return "\n".join(sorted(lines))


def share_compiled(folder: str | Path | None = None, limit: int = LIMIT) -> Path | None:
    """Let JAX keep compiled programs for this user's later processes; return the folder, or None without a cache.

    Call it before the first computation. A folder that was chosen already, by the environment or by `jax.config`,
    stays. A folder that cannot be used is no error: programs are then compiled as without a cache. If JAX's part grows
    beyond half of `limit` bytes, it deletes the entries that were not used for longest. The folders of other versions
    of JAX and other processors are deleted, oldest first, until they take half of `limit`, too.

    >>> share_compiled("/dev/null/compiled") is None
    True
    """
    import jax

    if (
        jax.config.values["jax_compilation_cache_dir"] is not None
        or not jax.config.values["jax_enable_compilation_cache"]
    ):
        return None
    chosen = Path(folder or default_folder()).absolute()
    try:
        chosen.mkdir(parents=True, exist_ok=True)
        if not os.access(chosen, os.R_OK | os.W_OK | os.X_OK):
            return None
        if folder is None and not is_private(chosen):  # the programs in it are executed
            logging.getLogger(__name__).warning(FOREIGN, chosen)
            return None
        if _is_stuck(chosen):  # JAX would wait ten seconds for each of its programs
            logging.getLogger(__name__).warning(STUCK, chosen / LOCK)
            return None
        delete_unfinished(chosen)
        if folder is None:
            delete_others(chosen, limit // 2)
    except (OSError, RuntimeError):  # RuntimeError: there is no home directory
        return None
    jax.config.update("jax_compilation_cache_dir", str(chosen))
    if "JAX_COMPILATION_CACHE_MAX_SIZE" not in os.environ:
        jax.config.update("jax_compilation_cache_max_size", limit // 2)
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", SHORTEST)
    return chosen


@contextlib.contextmanager
def no_cache() -> Iterator[None]:
    """Neither read nor write compiled programs inside this context.

    >>> import jax
    >>> with no_cache():
    ...     jax.config.values["jax_enable_compilation_cache"]
    False
    """
    import jax

    before = jax.config.values["jax_enable_compilation_cache"]
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)


def delete_unfinished(folder: Path) -> None:
    """Delete entries whose writer was killed or ran out of space, and those that changed since the last start.

    JAX would neither read nor replace the former. It would execute the latter, and two entries that were swapped, such
    as by a program that synchronises folders, would give each other's numbers.

    >>> delete_unfinished(Path("."))  # a folder without entries
    """
    with _locked(folder) as has_lock:
        recorded, entries = dict[str, Any](), dict[str, Any]()
        with contextlib.suppress(OSError, ValueError):
            recorded = read_json(folder / RECORD, default={})
        for entry in folder.glob("*-cache") if has_lock else ():
            used, about = entry.with_name(f"{entry.name.removesuffix('-cache')}-atime"), entry.stat()
            written = [about.st_size, about.st_mtime_ns]
            unfinished = not used.is_file() or used.stat().st_size != 8 or not about.st_size
            if unfinished or recorded.get(entry.name, written) != written:
                entry.unlink(missing_ok=True)
                used.unlink(missing_ok=True)
            else:
                entries[entry.name] = written
        if has_lock and entries != recorded:
            write_json(folder / RECORD, entries)


def delete_others(folder: Path, limit: int) -> None:
    """Delete the oldest neighbours of `folder` until the others take at most `limit` bytes.

    >>> delete_others(Path("tests").absolute(), limit=2**60)  # nothing is that large
    """
    neighbours = [path for path in folder.parent.iterdir() if path.is_dir() and path != folder]
    total = 0
    for neighbour in sorted(neighbours, key=_last_use, reverse=True):
        total += sum(file.stat().st_size for file in neighbour.rglob("*") if file.is_file())
        if total > limit:
            shutil.rmtree(neighbour, ignore_errors=True)


def _last_use(folder: Path) -> float:
    return max((file.stat().st_mtime for file in folder.glob("*")), default=0.0)


def _is_stuck(folder: Path) -> bool:
    """Return whether another process keeps JAX's lock on a cache."""
    import filelock

    if not (folder / LOCK).exists():
        return False
    try:
        with filelock.FileLock(folder / LOCK, timeout=PATIENCE):
            return False
    except filelock.Timeout:
        return True


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Hold JAX's lock on a cache; yield False if another process keeps it for long."""
    import filelock

    if not any(folder.glob("*-cache")):
        yield False
        return
    lock = filelock.FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=1)
    except filelock.Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()
