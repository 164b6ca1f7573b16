"""Read HDF5 files with h5py, with errors that describe the actual content."""

import io
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from bert_elmo_jax.weights.stored import StoredTensor, what_is

# What h5py raises for a damaged file, depending on the place of the damage.
TROUBLE = (OSError, RuntimeError, KeyError, TypeError, ValueError)
SIGNATURE = b"\x89HDF\r\n\x1a\n"


def read_hdf5(path: str | Path) -> tuple[dict[str, StoredTensor], set[str]]:
    """Return all datasets of a file by name, and the names of its groups; numbers are read on demand.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with h5py.File(f"{folder}/weights.hdf5", "w") as file:
    ...         file["CNN/b_cnn_0"] = np.ones(2, ">f4")
    ...     tensors, groups = read_hdf5(f"{folder}/weights.hdf5")
    ...     tensors["CNN/b_cnn_0"].read().tolist(), tensors["CNN/b_cnn_0"].dtype, groups
    ([1.0, 1.0], 'float32', {'CNN'})
    """
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

    try:
        with h5py.File(path, "r") as file:
            note(file, "", (file["/"],))
    except TROUBLE as problem:
        raise explained(path, problem) from None
    return tensors, groups


def holds(path: str | Path, names: tuple[str, ...]) -> bool:
    """Return whether a file has any of these names, without listing all its datasets, which may be millions.

    >>> holds("tests/goldens/elmo_tiny/weights.hdf5", ("embedding", "RNN_0"))
    True
    """
    path = Path(path)
    try:
        with h5py.File(path, "r") as file:
            return any(name in file for name in names)
    except TROUBLE as problem:
        raise explained(path, problem) from None


def explained(path: Path, problem: Exception) -> Exception:
    """Return an error that explains why a file could not be opened.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".hdf5") as file:
    ...     _ = Path(file.name).write_text("<html>")
    ...     str(explained(Path(file.name), OSError("…"))).partition("is ")[2]
    'not an HDF5 file but a web page, not the weights: download the file again (…).'
    """
    if isinstance(problem, FileNotFoundError | PermissionError | IsADirectoryError):
        return problem  # Python's own message is clear
    with path.open("rb") as file:
        start = file.read(len(SIGNATURE))
    said = (str(problem).splitlines() or [type(problem).__name__])[0]
    if start == SIGNATURE:
        return ValueError(
            f"{path} of {path.stat().st_size:,} bytes is cut short or damaged ({said}): copy or download it again."
        )
    return ValueError(f"{path} is not an HDF5 file but {what_is(path)} ({said}).")


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
