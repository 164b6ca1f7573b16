"""What every weight format is read into: tensors that know their shape at once and their numbers when asked."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# The first bytes of what people have in place of weights, most often after a download that went wrong.
FIRST_BYTES = {
    b"version https://git-lfs": "a git-lfs pointer, not the weights: fetch them with `git lfs pull`",
    b"<!DOCTYPE": "a web page, not the weights: download the file again",
    b"<html": "a web page, not the weights: download the file again",
    b"PK\x03\x04": "a zip archive",
    b"\x1f\x8b": "a gzip archive: unpack it first",
    b"BZh": "a bzip2 archive: unpack it first",
    b"\xfd7zXZ": "an xz archive: unpack it first",
    b"\x89HDF\r\n": "an HDF5 file",
    b"\x80": "a Python pickle",
    b"{": "a JSON text",
}


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file: what is known without reading it, and how to read it.

    `read` may return a view of the file: copy what is to outlive it.

    >>> StoredTensor((2, 3), "float32", lambda: np.zeros((2, 3), np.float32)).read().shape
    (2, 3)
    """

    shape: tuple[int, ...]
    dtype: str
    read: Callable[[], np.ndarray]


def what_is(path: Path) -> str:
    """Say in a few words what a file that is not what it should be seems to be.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     what_is(Path(file.name))
    'empty'
    """
    with path.open("rb") as file:
        start = file.read(64)
    if not start:
        return "empty"
    if start.strip(b"\0") == b"":
        return "full of zero bytes: the download did not finish"
    for first, meaning in FIRST_BYTES.items():
        if start.lower().startswith(first.lower()):
            return meaning
    return f"something else (it begins with {start[:8]!r})"
