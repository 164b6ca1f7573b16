"""Read HDF5 files with h5py, with errors that describe the actual content.

HDF5 can keep the numbers of a dataset in another file (external storage, virtual datasets) and continue a name in
another file (external links). All three are refused, because a model could read any file of the machine through them.
"""

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


class OtherFileError(ValueError):
    """Raised for a file that names another one."""


def read_hdf5(path: str | Path) -> tuple[dict[str, StoredTensor], set[str]]:
    """Return all datasets of a file by name, and the names of its groups; numbers are read on demand.

    Raise if a part of the file is stored in another file.
    """
    path = Path(path)
    tensors, groups = {}, set()

    def collect(group: h5py.Group, prefix: str, above: tuple[h5py.Group, ...]) -> None:
        # Follows links rather than objects (`visititems`): a dataset may have two names.
        for key in group:
            member, name = group.get(key), f"{prefix}{key}"
            if isinstance(member, h5py.Dataset):
                shape = tuple(member.shape or ())  # None for a dataset without data
                tensors[name] = StoredTensor(shape, member.dtype.name, partial(_read, path, name))
            elif isinstance(member, h5py.Group):
                groups.add(name)
                if member not in above:  # links may be circular
                    collect(member, f"{name}/", (*above, member))

    with _open(path) as file:
        _refuse_other_files(path, file)
        collect(file, "", (file["/"],))
    return tensors, groups


def holds(path: str | Path, names: tuple[str, ...]) -> bool:
    """Return whether a file has any of these names, without listing all its datasets, which may be millions."""
    path = Path(path)
    with _open(path) as file:
        return any(_has_name(path, file, name) for name in names)


def _has_name(path: Path, file: h5py.File, name: str) -> bool:
    group = file["/"]
    *parents, last = name.split("/")
    for key in parents:
        link = group.get(key, getlink=True)
        if not isinstance(link, h5py.HardLink):  # a soft link may lead through an external one
            if link is not None:
                _refuse_other_files(path, file)
            return link is not None and name in file
        group = group[key]
        if not isinstance(group, h5py.Group):
            return False
    return group.get(last, getlink=True) is not None


def _refuse_other_files(path: Path, file: h5py.File) -> None:
    """Raise if any link or dataset leads to another file, without opening that file."""
    waiting, visited = [(file["/"], "")], set()
    while waiting:
        group, prefix = waiting.pop()
        for key in group:
            stored = key if isinstance(key, bytes) else key.encode()  # a damaged name may be no UTF-8
            name = f"{prefix}{stored.decode(errors='replace')}"
            kind = group.id.links.get_info(stored).type
            if kind == h5py.h5l.TYPE_SOFT:
                continue  # leads to another name of this file, which is visited, too
            if kind != h5py.h5l.TYPE_HARD:
                link = group.get(key, getlink=True) if kind == h5py.h5l.TYPE_EXTERNAL else None
                _refuse(path, f"{name} is a link to", link.filename if link else "something outside it")
            member = group[key]
            if isinstance(member, h5py.Dataset):
                _refuse_stored_elsewhere(path, name, member)
            elif isinstance(member, h5py.Group):
                address = h5py.h5o.get_info(member.id).addr
                if address not in visited:
                    visited.add(address)
                    waiting.append((member, f"{name}/"))


def _refuse_stored_elsewhere(path: Path, name: str, dataset: h5py.Dataset) -> None:
    # From the description of the dataset: its shape would already open the files of a virtual one.
    stored = dataset.id.get_create_plist()
    if stored.get_external_count():
        _refuse(path, f"the numbers of {name} are stored in", stored.get_external(0)[0].decode(errors="replace"))
    if stored.get_layout() == h5py.h5d.VIRTUAL:
        sources = [stored.get_virtual_filename(n) for n in range(stored.get_virtual_count())]
        _refuse(path, f"{name} is a virtual dataset, put together from", ", ".join(dict.fromkeys(sources)) or "nothing")


def _refuse(path: Path, problem: str, other: str) -> None:
    raise OtherFileError(
        f"{path}: {problem} {other}. A file of a model may not name another file, so this is refused. Use a file that "
        "holds all its numbers itself: ask its author for one, or, if you trust it, copy every dataset into a "
        "new file with h5py"
    )


@contextlib.contextmanager
def _open(path: Path) -> Iterator[h5py.File]:
    """Open a file; an error explains why it cannot be read."""
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (FileNotFoundError, PermissionError, IsADirectoryError, OtherFileError):
        raise  # these messages are clear
    except TROUBLE as problem:
        with path.open("rb") as opened:
            start = opened.read(len(SIGNATURE))
        reason = (str(problem).splitlines() or [type(problem).__name__])[0]
        raise unreadable(path, "an HDF5 file", start == SIGNATURE, reason) from None


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
