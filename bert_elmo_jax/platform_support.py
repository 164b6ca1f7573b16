"""Process control and processor features that differ between platforms, with a fallback where one lacks them."""

import functools
import multiprocessing
import os
import sys
from collections.abc import Sequence
from pathlib import Path

OPEN_FILES = 64  # at once: enough for checkpoints and worker processes
# Limits of the thread pools of XLA and of the usual BLAS libraries.
THREAD_LIMITS = ("PJRT_NPROC", "NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def start_method() -> str:
    """Return the `multiprocessing` start method for runs: "forkserver" if it is safe here, "spawn" otherwise.

    A fork server imports the library once for all children. On macOS a fork after the system's frameworks are loaded
    may crash, so children import the library themselves.
    """
    has_forkserver = "forkserver" in multiprocessing.get_all_start_methods() and hasattr(os, "fork")
    return "forkserver" if has_forkserver and sys.platform != "darwin" else "spawn"


def split_cores(jobs: int) -> list[list[int]]:
    """Return the cores of each of `jobs` processes: equally many each, or empty lists for no limit.

    Equally many, because the number of threads that share a sum can change its last digit. There is no limit for one
    job, nor with fewer cores than jobs.
    """
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = sorted(os.sched_getaffinity(0)) if has_affinity else list(range(os.cpu_count() or 1))
    each = len(cores) // jobs
    return [cores[n::jobs][:each] if jobs > 1 else [] for n in range(jobs)]


def limit_to_cores(cores: Sequence[int]) -> None:
    """Keep this process (or its number of threads) to some cores, before JAX starts; an empty list is no limit."""
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    elif cores:
        for name in THREAD_LIMITS:
            os.environ.setdefault(name, str(len(cores)))


def is_private(folder: Path) -> bool:
    """Return whether a folder belongs to this user, and not everybody can write into it.

    >>> import tempfile
    >>> is_private(Path(tempfile.mkdtemp())), is_private(Path(tempfile.gettempdir()))
    (True, False)
    """
    about = folder.stat()
    return not hasattr(os, "getuid") or (about.st_uid == os.getuid() and not about.st_mode & 0o002)


def leave_terminal() -> None:
    """Move this process out of its parent's process group, so that Ctrl-C in a terminal does not reach it."""
    if hasattr(os, "setsid"):
        os.setsid()


@functools.cache
def has_bfloat16_products() -> bool:
    """Return whether this processor has instructions for products of bfloat16 (AMX or AVX-512), as Linux tells it."""
    return not {"amx_bf16", "avx512_bf16"}.isdisjoint(_about_processor("flags").split())


@functools.cache
def is_intel() -> bool:
    """Return whether Intel made this processor, as Linux tells it."""
    return "GenuineIntel" in _about_processor("vendor_id")


def _about_processor(field: str) -> str:
    """Return the first line of /proc/cpuinfo that begins with this word; "" without one."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            return next((line for line in lines if line.startswith(field)), "")
    except OSError:
        return ""


def check_machine_limits() -> None:
    """Raise if the process may open so few files that checkpoints would wait forever; raise its soft limit if it can.

    Only Unix has this limit (`ulimit -n`).
    """
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = soft == resource.RLIM_INFINITY or soft >= OPEN_FILES
    if not enough and (hard == resource.RLIM_INFINITY or hard >= OPEN_FILES):
        resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, hard))
    elif not enough:
        raise OSError(f"{soft} files may be open at once, and {OPEN_FILES} are needed: raise the limit (ulimit -n)")
