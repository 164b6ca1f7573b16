"""A file that is written here and published at its end. Its unfinished parts stay here, for programs to resume."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from bert_elmo_jax.buckets.cache import ENTRY, find_entry, use_entry
from bert_elmo_jax.buckets.objects import Place, Stored, check_writable, download, list_objects, open_place, upload
from bert_elmo_jax.files import LockHeld, lock, read_json, write_json


@contextlib.contextmanager
def publish_file(address: str | Path) -> Iterator[Path]:
    """Yield the local path of a file that is uploaded at the end of the block, after the files that belong to it.

    A file that exists there is fetched first, so that programs ask before they replace it.
    """
    place = open_place(address)
    check_writable(place)
    folder, _, name = place.address.rpartition("/")
    if folder.endswith(":/"):
        raise ValueError(
            f"{place.address} is a bucket: give the name of a file in it, such as {place.address}/{name}.csv"
        )
    parent = open_place(folder)
    names = (f".{name}.request", f"{name}.skipped.jsonl", name)  # the first two are what programs know about it
    entry = find_entry(place.address, "file")
    use_entry(entry)
    content = entry / "content"
    content.mkdir(exist_ok=True)
    try:
        with lock(entry / "lock"):
            before: dict[str, int] = {}  # if it could not be published, all of it is new
            if read_json(entry / ENTRY, default={}).get("published", True):
                _copy_current(parent, names, content)
                before = _read_times(names, content)
            write_json(entry / ENTRY, {"address": place.address, "published": False})
            try:
                yield content / name
            finally:
                times = _read_times(names, content)
                write_json(entry / ENTRY, {"address": place.address, "published": times == before})
            for changed in [each for each in names if times.get(each) != before.get(each) and each in times]:
                upload(parent, changed, content / changed)
            write_json(entry / ENTRY, {"address": place.address, "published": True})
    except LockHeld as error:
        raise BlockingIOError(
            f"{place.address} is being written by process {error.holder}: wait for it, or choose another address"
        ) from None


def _copy_current(parent: Place, names: tuple[str, ...], content: Path) -> None:
    """Replace the local files with the files of the bucket."""
    for name in reversed(names):  # so that an error is about the file that the user has named
        (content / name).unlink(missing_ok=True)
        stored = list_objects(open_place(f"{parent.address}/{name}")).get("")
        if stored is not None:
            download(parent, {name: Stored(stored.size, stored.version)}, content)


def _read_times(names: tuple[str, ...], content: Path) -> dict[str, int]:
    return {name: (content / name).stat().st_mtime_ns for name in names if (content / name).is_file()}
