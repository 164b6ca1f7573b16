"""`.hdf5` files, through h5py, with errors that say what is there instead."""

import io
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from bert_elmo_jax.weights.stored import StoredTensor, what_is

# What h5py raises of a file that is damaged, depending on where it is.
TROUBLE = (OSError, RuntimeError, KeyError, TypeError, ValueError)
SIGNATURE = b"\x89HDF\r\n\x1a\n"


def read_hdf5(path: str | Path) -> tuple[dict[str, StoredTensor], set[str]]:
    """Return all datasets of a file by name, and the names of its groups; numbers are read when asked for.

    Byte order, compression and chunks are as the library undoes them.

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
        # By links and not by objects (`visititems`): a dataset may go by two names.
        for key in group:
            found, name = group.get(key), f"{prefix}{key}"
            if isinstance(found, h5py.Dataset):
                shape = tuple(found.shape or ())  # none where a dataset was made without numbers
                tensors[name] = StoredTensor(shape, found.dtype.name, partial(_read, path, name))
            elif isinstance(found, h5py.Group):
                groups.add(name)
                if found not in above:  # links may go in a circle
                    note(found, f"{name}/", (*above, found))

    try:
        with h5py.File(path, "r") as file:
            note(file, "", (file["/"],))
    except TROUBLE as problem:
        raise explained(path, problem) from None
    return tensors, groups


def holds(path: str | Path, names: tuple[str, ...]) -> bool:
    """Return whether a file holds any of these, without looking at the rest, which may be millions of datasets.

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
    """Return the error that says what is wrong with a file that could not be opened.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".hdf5") as file:
    ...     _ = Path(file.name).write_text("<html>")
    ...     str(explained(Path(file.name), OSError("…"))).partition("is ")[2]
    'no HDF5 file but a web page, not the weights: download the file again (…).'
    """
    if isinstance(problem, FileNotFoundError | PermissionError | IsADirectoryError):
        return problem  # said in Python's own words
    with path.open("rb") as file:
        start = file.read(len(SIGNATURE))
    said = (str(problem).splitlines() or [type(problem).__name__])[0]
    if start == SIGNATURE:
        return ValueError(
            f"{path} of {path.stat().st_size:,} bytes is cut short or damaged ({said}): copy or download it again."
        )
    return ValueError(f"{path} is no HDF5 file but {what_is(path)} ({said}).")


def _read(path: Path, name: str) -> np.ndarray:
    try:
        with h5py.File(path, "r") as file:
            return file[name][()]
    except TROUBLE as problem:
        raise ValueError(f"{name} in {path} cannot be read: {problem}.") from None


class Disk(io.FileIO):
    """A file that HDF5 can write to: it crashes where the disk is full, so it is not told, and we raise it."""

    failed: OSError | None = None

    def write(self, data: Any) -> int:
        """Write all of the data, or remember why not."""
        left = memoryview(data).cast("B")
        try:
            while left and self.failed is None:
                left = left[super().write(left) :]
        except OSError as error:
            self.failed = error
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        """Set the size, or remember why not."""
        try:
            return super().truncate(size)
        except OSError as error:
            self.failed = self.failed or error
            return size or 0
