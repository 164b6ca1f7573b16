"""Local copies of addresses, in a bounded cache: the folder that was not used for longest is deleted first.

An entry is a folder below `~/.cache/bert_elmo_jax/buckets` (or `$XDG_CACHE_HOME`). Its name has the address and a hash.
For a copy, the hash also covers the listing (names, sizes, versions), so that a copy never changes while a process
reads it. `content/` has the files; `entry.json` is written when they are complete; `users/` names the processes that
use the entry: each locks a file of its name next to the entries. `BERT_ELMO_JAX_BUCKETS_GB` is the bound (default 50).
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
import uuid
from collections.abc import Container, Mapping
from pathlib import Path

from bert_elmo_jax.addresses import COPIES
from bert_elmo_jax.buckets.lease import LEASE, describe_owner, read_lease
from bert_elmo_jax.buckets.objects import Place, Stored, attempt, download, list_objects, open_place
from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.files import is_locked, lock, read_json, write_json

BOUND, DEFAULT_GB = "BERT_ELMO_JAX_BUCKETS_GB", 50.0
ENTRY = "entry.json"
MARKER = "files.json"  # of a complete checkpoint; see train/checkpoint.py
GROWING = re.compile(r".*\.(jsonl|log|out|err|f32)|(.*/)?(log\.txt|events/.*)")  # while a run is written
CHECKPOINT = re.compile(r"(?:(.*?)/)?checkpoints/(\d+)(?:/(.*))?")
LISTINGS = 3  # how often the objects may change while they are fetched
USER = ".user"  # ends the names of the files that processes lock
_LOCKS = contextlib.ExitStack()  # held until this process ends
_USERS: dict[Path, str] = {}  # the name of this process in a cache, by the cache's folder


def cache_folder() -> Path:
    """Return the folder of all entries.

    >>> cache_folder().parent.name
    'bert_elmo_jax'
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "bert_elmo_jax" / "buckets"


def find_entry(address: str, kind: str, *parts: str) -> Path:
    """Return the folder of an entry; its name has the end of the address, and a hash of all that it depends on.

    >>> find_entry("s3://reviews/run", "run").name
    'run-s3-reviews-run-9815610767e8'
    """
    digest = hashlib.sha256("\n".join((kind, address, *parts)).encode()).hexdigest()[:12]
    readable = re.sub(r"[^A-Za-z0-9]+", "-", address)[-48:].strip("-")
    return cache_folder() / f"{kind}-{readable}-{digest}"


def use_entry(entry: Path) -> None:
    """Keep an entry from being deleted while this process runs; a process has one lock for all its entries."""
    folder, users = entry.parent, entry / "users"
    users.mkdir(parents=True, exist_ok=True)
    if folder not in _USERS:
        name = f"{os.getpid()}-{uuid.uuid4().hex[:8]}{USER}"
        with lock(folder / "lock", wait=True):  # against `make_room`, which deletes files that no process locks
            _LOCKS.enter_context(lock(folder / name))
        _USERS[folder] = name
    (users / _USERS[folder]).touch()


def fetch(address: str | Path) -> Path:
    """Return the local path of the copy of a file or folder; fetch it if the cache lacks it, or has an older version.

    Of a run directory it has complete checkpoints only, without the state of the optimiser and TensorBoard's events;
    while the run is written, also without its metrics, costs and logs, which change every few seconds.
    """
    place = open_place(address)
    if run := _find_run(place):
        return fetch(run) / "checkpoints" / place.path.rpartition("/")[2]
    for _ in range(LISTINGS):
        objects = _choose_objects(place)
        if not objects:
            near = _near_object(place)
            raise FileNotFoundError(f"{place.address}: there is no such file or folder{near or '; check the address'}")
        versions = [f"{name}\t{stored.size}\t{stored.version}" for name, stored in sorted(objects.items())]
        entry = find_entry(place.address, "copy", *versions)
        copy = entry / "content" / place.path.rpartition("/")[2]
        use_entry(entry)
        with lock(entry / "lock", wait=True):
            if not (entry / ENTRY).is_file():
                size = sum(stored.size for stored in objects.values())
                make_room(size, place.address)
                if size > 10**8:
                    print(f"{place.address}: fetching {size / 1e9:.1f} GB", file=sys.stderr)
                try:
                    download(place, objects, copy)
                    has_changed = not objects.items() <= list_objects(place).items()
                except FileNotFoundError:  # deleted since it was listed
                    has_changed = True
                if has_changed:
                    shutil.rmtree(entry / "content", ignore_errors=True)
                    continue
                _leave_out_training_state(copy, objects)
                write_json(entry / ENTRY, {"address": place.address, "bytes": size})
            os.utime(entry / ENTRY)  # the time of its last use
        COPIES[str(copy)] = place.address
        return copy
    raise OSError(f"{place.address} changed {LISTINGS} times while it was fetched: wait until it is written")


def _find_run(place: Place) -> str:
    """Return the address of the run directory that a place is a checkpoint of, "" if it is another folder."""
    checkpoint = CHECKPOINT.fullmatch(place.path)
    if checkpoint is None or checkpoint[3] is not None or not checkpoint[1]:
        return ""
    run = place.address.removesuffix(f"/checkpoints/{checkpoint[2]}")
    return run if "" in list_objects(open_place(f"{run}/model.json")) else ""


def fetch_matches(pattern: str) -> list[str]:
    """Return the local paths of the copies of all files that an address with `*`, `?` or `[…]` matches, in order."""
    place = open_place(pattern)
    scheme = place.address.partition(":")[0]
    paths = sorted(attempt(place, lambda: place.system.glob(place.path)))
    if not paths and "" in list_objects(place):
        return [str(fetch(pattern))]  # a name that has such characters
    if not paths:
        raise FileNotFoundError(f"{place.address}: no file matches; check the address")
    return [str(fetch(f"{scheme}://{path.lstrip('/')}")) for path in paths]


def make_room(size: int, address: str) -> None:
    """Delete the entries that were not used for longest until `size` bytes fit; entries in use stay."""
    bound = float(os.environ.get(BOUND) or DEFAULT_GB) * 1e9
    if size > bound:
        raise OSError(
            f"{address} has {size / 1e9:.1f} GB, and the cache {cache_folder()} may hold {bound / 1e9:.1f} GB: set "
            f"{BOUND} to more"
        )
    with lock(cache_folder() / "lock", wait=True):
        for user in cache_folder().glob(f"*{USER}"):
            if not is_locked(user):  # of a process that has ended
                user.unlink(missing_ok=True)
        sizes = {entry: _measure(entry) for entry in cache_folder().iterdir() if entry.is_dir()}
        for entry in sorted(sizes, key=_last_use):
            if sum(sizes.values()) + size <= bound:
                break
            if _is_free(entry):
                shutil.rmtree(entry, ignore_errors=True)
                sizes[entry] = 0


def _measure(entry: Path) -> int:
    with contextlib.suppress(FileNotFoundError):  # a file that another process has just renamed
        return sum(file.stat().st_size for file in entry.rglob("*") if file.is_file())
    return 0


def _last_use(entry: Path) -> float:
    file = entry / ENTRY if (entry / ENTRY).is_file() else entry
    return file.stat().st_mtime


def _is_free(entry: Path) -> bool:
    """Return True if no process uses an entry, and all that was written in it is published."""
    if any(is_locked(entry.parent / user.name) for user in (entry / "users").glob("*")):
        return False
    return bool(read_json(entry / ENTRY, default={}).get("published", True))


def _choose_objects(place: Place) -> dict[str, Stored]:
    """Return the objects of a copy; the lease, which is about the writing alone, is none."""
    objects = list_objects(place)
    lease = read_lease(place) if objects.pop(LEASE, None) is not None else None
    if lease is not None and lease["unfinished"]:
        raise OSError(
            f"{place.address} has only a part of what {describe_owner(lease)} uploads: wait, or if that process has "
            "ended, start its command again"
        )
    if "model.json" not in objects:
        return objects
    is_written = lease is not None and not lease["released"]
    chosen = {}
    for name, stored in objects.items():
        parts = CHECKPOINT.fullmatch(name)
        training_state = parts is not None and (parts[3] or "").startswith("rest/")
        left_out = training_state or name.startswith("events/") or (is_written and GROWING.fullmatch(name))
        if not is_unfinished(name, objects) and not left_out:
            chosen[name] = stored
    return chosen


def is_unfinished(name: str, names: Container[str]) -> bool:
    """Return True for a file of a checkpoint without `files.json`.

    >>> is_unfinished("checkpoints/5/params/d", {"checkpoints/4/files.json"})
    True
    """
    checkpoint = CHECKPOINT.fullmatch(name)
    return checkpoint is not None and f"{name.removesuffix(checkpoint[3] or '')}{MARKER}" not in names


def _leave_out_training_state(copy: Path, objects: Mapping[str, Stored]) -> None:
    """Remove the files that were not fetched from the lists of checkpoints."""
    for name in objects:
        if CHECKPOINT.fullmatch(name) and name.endswith(f"/{MARKER}") and "model.json" in objects:
            text = (copy / name).read_text(encoding="utf-8")
            listed = {file: about for file, about in json.loads(text).items() if not file.startswith("rest/")}
            write_json(copy / name, listed)


def _near_object(place: Place) -> str:
    """Return the end of an error message that suggests the most similar name in the same folder, or ""."""
    folder, _, name = place.path.rpartition("/")
    try:
        names = [str(about["name"]).rstrip("/").rpartition("/")[2] for about in place.system.ls(folder, detail=True)]
    except Exception:  # this is only about a better message
        return ""
    return did_you_mean(name, [each for each in names if each != name])
