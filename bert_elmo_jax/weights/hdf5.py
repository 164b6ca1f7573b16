"""Read HDF5 files with h5py, with errors that describe the actual content."""

import contextlib
import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from bert_elmo_jax.weights.stored import StoredTensor, unreadable

# What h5py raises for a damaged file, depending on the place of the damage.
TROUBLE = (OSError, RuntimeError, KeyError, TypeError, ValueError)
SIGNATURE = b"\x89HDF\r\n\x1a\n"


def read_hdf5(path: str | Path) -> tuple[dict[str, StoredTensor], set[str]]:
    """Return all datasets of a file by name, and the names of its groups; numbers are read on demand."""
    path = Path(path)
    tensors, groups = {}, set()

    def note(group: h5py.Group, prefix: str, above: tuple[h5py.Group, ...]) -> None:
        # Follows links rather than objects (`visititems`): a dataset may have two names.
        for key in group:
            found, name = group.get(key), f"{prefix}{key}"
            if isinstance(found, h5py.Dataset):
                shape = tuple(found.shape or ())  # None for a dataset without data
                tensors[name] = StoredTensor(shape, found.dtype.name, partial(_read, path, name))
            elif isinstance(found, h5py.Group):
                groups.add(name)
                if found not in above:  # links may be circular
                    note(found, f"{name}/", (*above, found))

    with _open(path) as file:
        note(file, "", (file["/"],))
    return tensors, groups


def holds(path: str | Path, names: tuple[str, ...]) -> bool:
    """Return whether a file has any of these names, without listing all its datasets, which may be millions."""
    with _open(Path(path)) as file:
        return any(name in file for name in names)


@contextlib.contextmanager
def _open(path: Path) -> Iterator[h5py.File]:
    """Open a file; an error explains why it cannot be read."""
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise  # Python's own message is clear
    except TROUBLE as problem:
        with path.open("rb") as opened:
            start = opened.read(len(SIGNATURE))
        said = (str(problem).splitlines() or [type(problem).__name__])[0]
        raise unreadable(path, "an HDF5 file", start == SIGNATURE, said) from None


def _read(path: Path, name: str) -> np.ndarray:
    try:
        with h5py.File(path, "r") as file:
            return file[name][()]
    except TROUBLE as problem:
        raise ValueError(f"{name} in {path} cannot be read: {problem}.") from None


class Disk(io.FileIO):
    """A file for HDF5, which crashes on a full disk: keeps the error in `failed` for the caller to raise."""

    failed: OSError | None = None

    def write(self, data: Any) -> int:
        """Write all data, or record the error."""
        left = memoryview(data).cast("B")
        try:
            while left and self.failed is None:
                left = left[super().write(left) :]
        except OSError as error:
            self.failed = error
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        """Set the size, or record the error."""
        try:
            return super().truncate(size)
        except OSError as error:
            self.failed = self.failed or error
            return size or 0
