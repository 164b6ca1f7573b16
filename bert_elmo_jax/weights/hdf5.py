"""Read HDF5 files with h5py, with errors that describe the actual content.

HDF5 can keep the numbers of a dataset in another file (external storage, virtual datasets) and continue a name in
another file (external links). All three are refused, because a model could read any file of the machine through them.
It can also describe numbers that were never written, and groups that hold each other many times: a file of a few
kilobytes would take all memory, or never end. These are refused, too.
"""

import contextlib
import io
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from bert_elmo_jax.weights.stored import StoredTensor, unreadable

# What h5py raises for a damaged file, depending on the place of the damage.
TROUBLE = (OSError, RuntimeError, KeyError, TypeError, ValueError)
MOST_NAMES = 10_000  # of groups and datasets, counted once for each way that leads to them; BERT-large has 1,000
LARGE = 1 << 26  # bytes of numbers that must not be compressed to less than a hundredth, as no weights can be
SIGNATURE = b"\x89HDF\r\n\x1a\n"


class OtherFileError(ValueError):
    """Raised for a file that names another one."""


class StructureError(ValueError):
    """Raised for a file that describes more than a model has, or more than it holds."""


def read_hdf5(path: str | Path) -> tuple[dict[str, StoredTensor], set[str]]:
    """Return all datasets of a file by name, and the names of its groups; numbers are read on demand.

    Raise if a part of the file is stored in another file.
    """
    path = Path(path)
    tensors, groups = dict[str, StoredTensor](), set[str]()

    def collect(group: h5py.Group, prefix: str, above: tuple[int, ...]) -> None:
        # Follows links rather than objects (`visititems`): a dataset may have two names.
        for key in group:
            member, name = group.get(key), f"{prefix}{key}"
            if len(tensors) + len(groups) > MOST_NAMES:
                raise StructureError(
                    f"{path} has more than {MOST_NAMES:,} names of groups and datasets: is it a model?"
                )
            if isinstance(member, h5py.Dataset):
                _refuse_unwritten(path, name, member)
                shape = tuple(member.shape or ())  # None for a dataset without data
                tensors[name] = StoredTensor(shape, member.dtype.name, partial(_read, path, name))
            elif isinstance(member, h5py.Group):
                groups.add(name)
                address = _address(member)
                if address not in above:  # links may be circular
                    collect(member, f"{name}/", (*above, address))

    with _open(path) as file:
        _refuse_other_files(path, file)
        collect(file, "", (_address(file["/"]),))
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
    waiting, visited, count = [(file["/"], "")], set(), 0
    while waiting:
        group, prefix = waiting.pop()
        for key in group:
            if (count := count + 1) > MOST_NAMES:
                raise StructureError(f"{path} has more than {MOST_NAMES:,} groups and datasets: is it a model?")
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
                address = _address(member)
                if address not in visited:
                    visited.add(address)
                    waiting.append((member, f"{name}/"))


def _address(group: h5py.Group) -> int:
    """Return the place of a group in its file, which is the same for all its names."""
    return h5py.h5o.get_info(group.id).addr


def _refuse_stored_elsewhere(path: Path, name: str, dataset: h5py.Dataset) -> None:
    # From the description of the dataset: its shape would already open the files of a virtual one.
    stored = dataset.id.get_create_plist()
    if stored.get_external_count():
        _refuse(path, f"the numbers of {name} are stored in", stored.get_external(0)[0].decode(errors="replace"))
    if stored.get_layout() == h5py.h5d.VIRTUAL:
        sources = [stored.get_virtual_filename(n) for n in range(stored.get_virtual_count())]
        _refuse(path, f"{name} is a virtual dataset, put together from", ", ".join(dict.fromkeys(sources)) or "nothing")


def _refuse_unwritten(path: Path, name: str, dataset: h5py.Dataset) -> None:
    """Raise if a file describes many more numbers than it holds: HDF5 fills in the others."""
    size, stored = dataset.nbytes if dataset.shape else 0, dataset.id.get_storage_size()
    chunks = math.prod(-(-axis // part) for axis, part in zip(dataset.shape, dataset.chunks)) if dataset.chunks else 0
    if (size and not stored) or (chunks and dataset.id.get_num_chunks() < chunks) or size > max(LARGE, 100 * stored):
        raise StructureError(
            f"{path}: {name} should have {size:,} bytes of numbers, and {stored:,} bytes are stored for them: not all "
            "were written, so copy the file again"
        )


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
    except (FileNotFoundError, PermissionError, IsADirectoryError, OtherFileError, StructureError):
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
