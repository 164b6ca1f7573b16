"""One array per text in one file, HDF5 (as ELMo's dumps) or npz, written in parts so that a stopped run can resume.

The parts are in a folder next to the file, `vectors.h5.partial/`, with the settings of the run in `asked.json`. A part
appears when it is complete. At the end the parts are merged into the file and the folder is deleted; until then the
disk holds everything twice. By a hidden file next to the result, `.vectors.h5.request`, the same command, started once
more, finds it complete.
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

from bert_elmo_jax.files import LockHeld, lock, read_json, write_json
from bert_elmo_jax.inference.output_file import Finished, find_record, hash_request
from bert_elmo_jax.weights.hdf5 import Disk

ENDINGS = (".h5", ".hdf5", ".npz")


class Parts:
    """The arrays of a run that can be stopped at any moment."""

    def __init__(self, path: Path):
        path = path.expanduser()
        _check_target(path, find_record(path).is_file())
        self.path, self.folder = path, _folder(path)
        self.done = 0  # number of arrays in complete parts
        self._held = contextlib.ExitStack()

    def __enter__(self) -> "Parts":
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def resume(self, settings: Mapping[str, Any]) -> bool:
        """Return True if a run was begun; raise ValueError if its settings were different, Finished after its end."""
        if self.path.exists():
            self._check_finished(settings)
        file = self.folder / "asked.json"
        if not file.is_file():
            return False
        self._lock()
        try:
            before = read_json(file)
        except ValueError as error:
            raise ValueError(f"{file} is damaged ({error}); remove {self.folder} to start again") from None
        other = [f"{name} was {before.get(name)!r}, is {settings.get(name)!r}" for name in {**before, **settings}
                 if before.get(name) != settings.get(name)]  # fmt: skip
        if other:
            raise ValueError(
                f"{self.folder} holds the parts of a stopped run with other settings: {'; '.join(other)}. Finish that "
                "run with its settings, or remove the folder to start again"
            )
        for part in self._parts():
            self.done = part[1]
        return True

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Make the folder for the parts of a new run."""
        _check_target(self.path)  # again: another run may have finished in the meantime
        self.folder.mkdir(exist_ok=True)
        self._lock()
        for file in self.folder.glob("*.arrays"):
            file.unlink()  # left in a folder whose asked.json was removed
        write_json(self.folder / "asked.json", dict(settings))

    def write(self, arrays: Iterable[np.ndarray], size: int) -> Iterator[None]:
        """Write the arrays that follow the finished ones, `size` per part; yield after each of them."""
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
        """Merge the parts into the file and remove them; HDF5 gets an index of the texts."""
        merged = self.folder / f"whole{self.path.suffix}"
        writing = _writing_npz if self.path.suffix == ".npz" else _writing_hdf5
        with writing(merged, texts) as write:
            for n, array in enumerate(self._arrays()):
                write(n, array)
                report()
        with open(merged, "rb") as file:
            os.fsync(file.fileno())
        if self.path.exists():
            raise FileExistsError(f"{self.path} was written meanwhile; remove it, and run the same command again")
        settings = read_json(self.folder / "asked.json")
        record = {"request": hash_request(settings), "bytes": merged.stat().st_size, "examples": self.done}
        write_json(find_record(self.path), record)
        (self.folder / "merged").touch()
        merged.replace(self.path)
        _clean(self.folder)

    def _check_finished(self, settings: Mapping[str, Any]) -> None:
        """Raise Finished if the file is complete by these settings, and FileExistsError if it is another."""
        record: dict[str, Any] = {}
        with contextlib.suppress(ValueError):  # a damaged file
            record = read_json(find_record(self.path), default={})
        written = {"request": hash_request(settings), "bytes": self.path.stat().st_size}
        if record.items() >= written.items() and type(record.get("examples")) is int:
            raise Finished(self.path, record["examples"])
        _check_target(self.path)

    def _parts(self) -> Iterator[tuple[int, int, Path]]:
        """Yield (first, end, file) of every part up to the first gap."""
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
                        raise ValueError(
                            f"{part} is damaged ({error}): remove it, and run the same command again"
                        ) from None

    def _lock(self) -> None:
        """Keep a second run of the same command out; the lock ends with the process."""
        try:
            self._held.enter_context(lock(self.folder / "lock"))
        except LockHeld:
            raise ValueError(f"another run is writing {self.path}; wait for it, or stop it first") from None


def _append(file: BinaryIO, array: np.ndarray) -> None:
    # Not write_array, whose error about a full disk gives only a number of items.
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    file.write(array.tobytes())


def _folder(path: Path) -> Path:
    return path.with_name(path.name + ".partial")


def _check_target(path: Path, has_record: bool = False) -> None:
    """Raise if the path cannot become such a file, before hours are spent on its arrays.

    A file with a record may be complete: `resume` compares it with the settings.
    """
    if path.suffix not in ENDINGS:
        raise ValueError(f"{path} ends in {path.suffix or 'nothing'}; use .h5, .hdf5 or .npz")
    if path.exists():
        if (_folder(path) / "merged").exists():
            _clean(_folder(path))  # the last step of an earlier run
        if has_record and path.is_file():
            return
        raise FileExistsError(f"{path} exists; remove it, or write to another file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} into; make it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"the folder {path.parent} is not writable: use another, or change its permissions")


def _clean(folder: Path) -> None:
    # `merged` marks the others as superfluous, so it is deleted last.
    for file in sorted(folder.iterdir(), key=lambda file: file.name == "merged"):
        file.unlink()
    folder.rmdir()


@contextlib.contextmanager
def _writing_npz(path: Path, texts: Iterable[object]) -> Iterator[Callable[[int, np.ndarray], object]]:
    with zipfile.ZipFile(path, "w", allowZip64=True) as archive:

        def write(n: int, array: np.ndarray) -> None:
            # With a fixed date: the same arrays make the same file.
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
    if disk.failed is not None:  # while closing the file
        raise disk.failed
