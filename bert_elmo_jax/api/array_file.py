"""One array per text in one file: HDF5, as ELMo's own dumps, or npz."""

import contextlib
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import h5py
import numpy as np

ENDINGS = (".h5", ".hdf5", ".npz")


def check_target(path: Path) -> None:
    """Refuse a path that cannot become such a file, before hours are spent on what goes into it.

    >>> check_target(Path("vectors.csv"))
    Traceback (most recent call last):
    ValueError: vectors.csv ends in .csv; use .h5, .hdf5 or .npz
    """
    if path.suffix not in ENDINGS:
        raise ValueError(f"{path} ends in {path.suffix or 'nothing'}; use .h5, .hdf5 or .npz")
    if path.exists():
        raise FileExistsError(f"{path} exists; remove it, or write to another file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} into; make it first")


@contextlib.contextmanager
def writing(path: Path, texts: Sequence[str | list[str]]) -> Iterator[Callable[[int, np.ndarray], object]]:
    """A function that writes array n; the file appears when all is written, and what was stopped leaves nothing.

    Neither format holds more than one array in memory.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "vectors.npz"
    >>> with writing(path, ["강"]) as write:
    ...     write(0, np.zeros((1, 3, 8), np.float32))
    >>> np.load(path)["0"].shape
    (1, 3, 8)
    """
    partial = path.with_name(path.name + ".partial")
    try:
        if path.suffix == ".npz":
            with zipfile.ZipFile(partial, "w", allowZip64=True) as archive:

                def write(n: int, array: np.ndarray) -> None:
                    with archive.open(f"{n}.npy", "w", force_zip64=True) as entry:
                        np.lib.format.write_array(entry, array)

                yield write
        else:
            with h5py.File(partial, "w") as file:
                keys = [text if isinstance(text, str) else " ".join(text) for text in texts]
                index = json.dumps({key: str(n) for n, key in enumerate(keys)}, ensure_ascii=False)
                file.create_dataset("sentence_to_index", data=[index], dtype=h5py.string_dtype())
                yield lambda n, array: file.create_dataset(str(n), data=array)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
