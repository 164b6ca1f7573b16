"""One array per text in one file: HDF5, as ELMo's own dumps, or npz; gathered in parts, so that a stopped run goes on.

The parts lie in a folder beside the file, `vectors.h5.partial/`, with `asked.json` (what they were computed from, and
how). Each appears when it is whole, as does the file they are put together to at the end; then the folder goes. While
they are put together the disk holds everything twice.
"""

import contextlib
import itertools
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import numpy as np

from bert_elmo_jax.files import Held, lock, read_json, write_json
from bert_elmo_jax.weights.hdf5 import Disk

ENDINGS = (".h5", ".hdf5", ".npz")


class Parts:
    """The arrays of a run that may be stopped at any moment.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "vectors.npz"
    >>> with Parts(path) as parts:
    ...     parts.begin({"batch_size": 32})
    ...     for _ in parts.write([np.zeros((1, 3, 8), np.float32)], size=1):
    ...         pass  # and here the machine stops

    Later the same is asked again:

    >>> with Parts(path) as parts:
    ...     parts.resume({"batch_size": 32}), parts.done
    ...     for _ in parts.write([np.ones((1, 1, 8), np.float32)], size=1):
    ...         pass
    ...     parts.merge(["강가의 작은 은행", "눈"])
    (True, 1)
    >>> np.load(path)["0"].shape, list(path.parent.iterdir()) == [path]
    ((1, 3, 8), True)
    """

    def __init__(self, path: Path):
        _check_target(path)
        self.path, self.folder = path, _folder(path)
        self.done = 0  # arrays that are in whole parts
        self._held = contextlib.ExitStack()

    def __enter__(self) -> "Parts":
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def resume(self, asked: Mapping[str, Any]) -> bool:
        """Whether a run was begun; one that was asked otherwise is an error."""
        file = self.folder / "asked.json"
        if not file.is_file():
            return False
        self._lock()
        try:
            before = read_json(file)
        except ValueError as error:
            raise ValueError(f"{file} is damaged ({error}); remove {self.folder} to begin anew") from None
        other = [f"{name} was {before.get(name)!r}, is {asked.get(name)!r}" for name in {**before, **asked}
                 if before.get(name) != asked.get(name)]  # fmt: skip
        if other:
            raise ValueError(
                f"{self.folder} holds the parts of a stopped run that was asked otherwise: {'; '.join(other)}. Finish "
                "it as it was asked, or remove that folder to begin anew"
            )
        for part in self._parts():
            self.done = part[1]
        return True

    def begin(self, asked: Mapping[str, Any]) -> None:
        """Make the folder of the parts of a new run."""
        _check_target(self.path)  # again: another run may have finished while this one loaded its model
        self.folder.mkdir(exist_ok=True)
        self._lock()
        for file in self.folder.glob("*.arrays"):
            file.unlink()  # of a folder whose asked.json was removed
        write_json(self.folder / "asked.json", dict(asked))

    def write(self, arrays: Iterable[np.ndarray], size: int) -> Iterator[None]:
        """Write the arrays that come after those that are done, `size` to a part; a step for each of them."""
        arrays = iter(arrays)
        draft = self.folder / "draft"
        while True:
            end = self.done
            with open(draft, "wb") as file:
                for array in itertools.islice(arrays, size):
                    _append(file, np.ascontiguousarray(array, np.float32))
                    end += 1
                    yield
                file.flush()
                os.fsync(file.fileno())
            if end == self.done:
                return draft.unlink()
            draft.replace(self.folder / f"{self.done:012}-{end:012}.arrays")
            self.done = end

    def merge(self, texts: Iterable[str | list[str]], report: Callable[[], object] = lambda: None) -> None:
        """Put the parts together, and remove them; of the texts HDF5 gets an index."""
        whole = self.folder / f"whole{self.path.suffix}"
        writing = _writing_npz if self.path.suffix == ".npz" else _writing_hdf5
        with writing(whole, texts) as write:
            for n, array in enumerate(self._arrays()):
                write(n, array)
                report()
        with open(whole, "rb") as file:
            os.fsync(file.fileno())
        if self.path.exists():
            raise FileExistsError(
                f"{self.path} was written meanwhile; remove it, and the same command goes on from here"
            )
        (self.folder / "merged").touch()
        whole.replace(self.path)
        _clean(self.folder)

    def _parts(self) -> Iterator[tuple[int, int, Path]]:
        """(first, end, file) of every part up to the first gap."""
        at = 0
        for file in sorted(self.folder.glob("*.arrays")):
            first, end = map(int, file.stem.split("-"))
            if first == at:
                yield first, end, file
                at = end

    def _arrays(self) -> Iterator[np.ndarray]:
        for first, end, part in self._parts():
            with open(part, "rb") as file:
                for _ in range(first, end):
                    try:
                        yield np.lib.format.read_array(file, allow_pickle=False)
                    except ValueError as error:
                        raise ValueError(f"{part} is damaged ({error}): remove it and run the same again") from None

    def _lock(self) -> None:
        """Keep a second run of the same command out; the system lets go of the lock, however this one ends."""
        try:
            self._held.enter_context(lock(self.folder / "lock"))
        except Held:
            raise ValueError(f"another run is writing {self.path}; wait for it, or stop it first") from None


def _append(file: BinaryIO, array: np.ndarray) -> None:
    # Not write_array, which tells nothing of a full disk but how many numbers it wrote.
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    file.write(array.tobytes())


def _folder(path: Path) -> Path:
    return path.with_name(path.name + ".partial")


def _check_target(path: Path) -> None:
    """Refuse a path that cannot become such a file, before hours are spent on what goes into it.

    >>> _check_target(Path("vectors.csv"))
    Traceback (most recent call last):
    ValueError: vectors.csv ends in .csv; use .h5, .hdf5 or .npz
    """
    if path.suffix not in ENDINGS:
        raise ValueError(f"{path} ends in {path.suffix or 'nothing'}; use .h5, .hdf5 or .npz")
    if path.exists():
        if (_folder(path) / "merged").exists():
            _clean(_folder(path))  # a run that was stopped when all was done but this
        raise FileExistsError(f"{path} exists; remove it, or write to another file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} into; make it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"the folder {path.parent} may not be written to: write to another, or change its rights")


def _clean(folder: Path) -> None:
    # `merged` says that the others are not needed, so it goes last.
    for file in sorted(folder.iterdir(), key=lambda file: file.name == "merged"):
        file.unlink()
    folder.rmdir()


@contextlib.contextmanager
def _writing_npz(path: Path, texts: Iterable[object]) -> Iterator[Callable[[int, np.ndarray], object]]:
    with zipfile.ZipFile(path, "w", allowZip64=True) as archive:

        def write(n: int, array: np.ndarray) -> None:
            # With a fixed date, so that the same arrays make the same file.
            with archive.open(zipfile.ZipInfo(f"{n}.npy"), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)

        yield write


@contextlib.contextmanager
def _writing_hdf5(path: Path, texts: Iterable[str | list[str]]) -> Iterator[Callable[[int, np.ndarray], object]]:
    with Disk(path, "w+") as disk, h5py.File(disk, "w") as file:

        def write(name: str, data: Any, **kind: Any) -> None:
            file.create_dataset(name, data=data, **kind)
            if disk.failed is not None:
                raise disk.failed

        yield lambda n, array: write(str(n), array)
        keys = (text if isinstance(text, str) else " ".join(text) for text in texts)
        index = json.dumps({key: str(n) for n, key in enumerate(keys)}, ensure_ascii=False)
        write("sentence_to_index", [index], dtype=h5py.string_dtype())
    if disk.failed is not None:  # by what is written when the file is closed
        raise disk.failed
