"""Keep the compiled programs from one run of the tests to the next: compilation takes half of the time."""

import contextlib
import importlib.util
import time
import zlib
from pathlib import Path

ROOT = Path(__file__).parents[1]
DAYS = 14


def kept_folder():
    """Return the folder for this version of JAX and this processor; `make clean` removes it."""
    # By its path: the package is imported after the hook that checks its types.
    file = ROOT / "bert_elmo_jax" / "compilation_cache.py"
    spec = importlib.util.spec_from_file_location("own_compilation_cache", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return ROOT / ".pytest_cache" / "compiled" / module.default_folder().name


def tidy(folder, now=None):
    """Remove programs that no test has read for two weeks, and unfinished files of killed programs."""
    oldest = (time.time() if now is None else now) - DAYS * 86_400
    for file in folder.glob("*"):
        with contextlib.suppress(FileNotFoundError):  # another run of the tests was faster
            if max(file.stat().st_atime, file.stat().st_mtime) < oldest or not is_whole(file):
                file.unlink()


def is_whole(file):
    """Return False for an entry of JAX's cache that cannot be decompressed."""
    import zstandard

    data = file.read_bytes()
    try:
        (zstandard.ZstdDecompressor().decompress if data[:4] == b"\x28\xb5\x2f\xfd" else zlib.decompress)(data)
    except (zstandard.ZstdError, zlib.error):
        return False
    return True
