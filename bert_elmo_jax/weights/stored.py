"""Tensors of a weight file: shape and type are known at once, numbers are read on demand."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# First bytes of files that people have instead of weights, usually after a failed download.
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
    b"[": "a JSON text",
}


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file. `read` may return a view of the file: copy it to keep it."""

    shape: tuple[int, ...]
    dtype: str
    read: Callable[[], np.ndarray]

    def equals(self, other: "StoredTensor") -> bool:
        """Return True if another tensor has the same shape and the same numbers in float32."""
        ours, theirs = (tensor.read().astype(np.float32) for tensor in (self, other))
        return np.array_equal(ours, theirs, equal_nan=True)


def what_is(path: Path) -> str:
    """Return a short description of a file of unexpected content."""
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


def unreadable(path: Path, kind: str, begins_like_it: bool, problem: object) -> ValueError:
    """Return an error for a file that its library could not read as the kind of file it should be."""
    if begins_like_it:
        size = path.stat().st_size
        return ValueError(f"{path} of {size:,} bytes is cut short or damaged ({problem}): copy or download it again.")
    return ValueError(f"{path} is not {kind} but {what_is(path)} ({problem}).")
