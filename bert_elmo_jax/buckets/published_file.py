"""A file that is written here and published at its end. Its unfinished parts stay here, for programs to resume."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from bert_elmo_jax.buckets.cache import ENTRY, find_entry, use_entry
from bert_elmo_jax.buckets.objects import (
    Place,
    Stored,
    check_writable,
    delete_objects,
    download,
    list_objects,
    open_place,
    upload,
)
from bert_elmo_jax.files import LockHeld, lock, read_json, write_json


@contextlib.contextmanager
def publish_file(address: str | Path) -> Iterator[Path]:
    """Yield the local path of a file that is uploaded at the end of the block, after the files that belong to it.

    A file that exists there is fetched first, so that programs ask before they replace it. If a process was stopped
    before it had published its file, the next one finds that file, unless the bucket's has changed since.
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
            stored, state = _list_current(parent, names), read_json(entry / ENTRY, default={})
            # The version of this file alone, which is uploaded last: a process that was stopped earlier continues.
            version = list(stored[name]) if name in stored else None
            if state.get("published", True) or state.get("version") != version:
                _copy_current(parent, names, stored, entry)
                before = _read_times(names, content)
            state = {"address": place.address, "version": version}
            write_json(entry / ENTRY, {**state, "published": False})
            try:
                yield content / name
            finally:
                times = _read_times(names, content)
                write_json(entry / ENTRY, {**state, "published": times == before})
            delete_objects(parent, [each for each in names[:-1] if each in stored and each not in times])
            for changed in [each for each in names if times.get(each) != before.get(each) and each in times]:
                upload(parent, changed, content / changed)
            write_json(entry / ENTRY, {**state, "published": True})
    except LockHeld as error:
        raise BlockingIOError(
            f"{place.address} is being written by process {error.holder}: wait for it, or choose another address"
        ) from None


def _list_current(parent: Place, names: tuple[str, ...]) -> dict[str, Stored]:
    """Return the files that the bucket has."""
    stored = {}
    for name in reversed(names):  # so that an error is about the file that the user has named
        if (current := list_objects(open_place(f"{parent.address}/{name}")).get("")) is not None:
            stored[name] = current
    return stored


def _copy_current(parent: Place, names: tuple[str, ...], stored: dict[str, Stored], entry: Path) -> None:
    """Replace the local files with the files of the bucket."""
    fetched = entry / "fetched"  # in `content`, NAME.partial may be the folder of an unfinished output
    shutil.rmtree(fetched, ignore_errors=True)
    download(parent, stored, fetched)
    for name in names:
        (entry / "content" / name).unlink(missing_ok=True)
        if name in stored:
            (fetched / name).replace(entry / "content" / name)


def _read_times(names: tuple[str, ...], content: Path) -> dict[str, int]:
    return {name: (content / name).stat().st_mtime_ns for name in names if (content / name).is_file()}
