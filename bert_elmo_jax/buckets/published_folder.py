"""A folder that is written here and published in a bucket, in the order of its writes.

Programs write their folder as always: on a disk, with renames and locks. While they run, and at the end, changed files
are uploaded whole, under their own names, in the order they were written here. So every state of the bucket
is one that a kill could have left on the disk, and runs resume from those. Files that grow (metrics, costs, logs) are
the exception: they go first, because the lines after a checkpoint are dropped when it is resumed, but none before it
may be missing. A checkpoint counts from its `files.json` on, which has the size and the hash of every file and is
written last. Files that were deleted here are deleted there last, markers before what they mark. Vectors of words
(`inference/kept_vectors.py`) grow by gigabytes, and are published when all are computed.

At the start the lease decides: if this cache was the last one to write there, its files are kept, since they are at
least as new; else the bucket is right, and its files replace them.
"""

import contextlib
import os
import re
import shutil
import sys
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from bert_elmo_jax.buckets import lease as leases
from bert_elmo_jax.buckets.cache import ENTRY, GROWING, MARKER, find_entry, is_unfinished, make_room, use_entry
from bert_elmo_jax.buckets.objects import (
    Place,
    check_writable,
    delete_objects,
    download,
    list_objects,
    open_place,
    upload,
)
from bert_elmo_jax.files import LockHeld, lock, read_json, write_json

POLL = 1.0  # seconds between two looks at the folder; a new marker is published at once
PAUSE = 30.0  # seconds between two publications without one
VECTORS = "vectors.json"  # counts the vectors in the files `.f32` of its folder
# Each is written after the files that it marks.
MARKERS = (MARKER, VECTORS, "model.json", "manifest.json", "result.json")
PRIVATE = re.compile(r"compiled/.*|(.*/)?(\.?lock|[^/]*\.lock|[^/]*\.partial(/.*)?)")
Written = tuple[int, int]  # size, and time of the last write in nanoseconds


@contextlib.contextmanager
def publish_folder(address: str | Path, *, while_written: bool = True, resumes: bool = True) -> Iterator[Path]:
    """Yield a local folder whose files are published at an address, `while_written` and at the end of the block.

    Otherwise they are published only if the block ends without an error. A block that `resumes` finds what a stopped
    one has written; another one finds a folder that was published whole, or an empty one.
    """
    place = open_place(address)
    check_writable(place)
    if "/" not in place.path.strip("/"):
        raise ValueError(f"{place.address} is a whole bucket: give a folder in it, such as {place.address}/run")
    entry = find_entry(place.address, "run")
    use_entry(entry)
    try:
        with lock(entry / "lock"):
            publisher = Publisher(place, entry, while_written, resumes)
            publisher.begin()
            error: BaseException | None = None
            try:
                yield publisher.folder
            except BaseException as raised:
                error = raised
                raise
            finally:
                publisher.end(error)
    except LockHeld as error:
        raise BlockingIOError(
            f"{place.address} is being written by process {error.holder}: wait for it, stop it, or choose another "
            "address"
        ) from None


class Publisher:
    """Publishes the files of one folder; `begin` makes folder and bucket equal, `end` publishes the rest."""

    def __init__(self, place: Place, entry: Path, while_written: bool = True, resumes: bool = True):
        self.place, self.entry, self.while_written, self.resumes = place, entry, while_written, resumes
        self.folder = entry / "content" / place.path.rpartition("/")[2]
        self.published: dict[str, Written | None] = {}  # the objects; None for one that has no file here
        self._owner, self._unfinished, self._last = "", False, -PAUSE
        self._stop, self._release, self._lost = threading.Event(), threading.Event(), False
        self._threads: list[threading.Thread] = []

    def begin(self) -> None:
        """Take the lease, fetch what this cache lacks, and publish in the background from now on."""
        record = read_json(self.entry / ENTRY, default={})
        self._owner = record.get("owner") or uuid.uuid4().hex
        lease = leases.read_lease(self.place)
        self._unfinished = lease is not None and lease["unfinished"]
        is_newest = bool(record.get("whole")) and lease is not None and lease["owner"] == self._owner
        is_newest = is_newest and (self.resumes or bool(record.get("published")))
        if not is_newest:
            self._record(published=bool(record.get("published", True)), whole=False)
        leases.take_lease(self.place, self._owner)
        objects = {name: stored for name, stored in list_objects(self.place).items() if name != leases.LEASE}
        if not is_newest:
            shutil.rmtree(self.folder, ignore_errors=True)
            is_part = self._unfinished and not self.resumes  # it is replaced at the end
            complete = {n: stored for n, stored in objects.items() if not is_part and not is_unfinished(n, objects)}
            make_room(sum(stored.size for stored in complete.values()), self.place.address)
            download(self.place, complete, self.folder)
            record = {"files": {**dict.fromkeys(objects), **self._scan()}}
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, written in record["files"].items():
            if name in objects:  # others have been deleted there, or were never uploaded
                is_same = written is not None and written[0] == objects[name].size
                self.published[name] = (written[0], written[1]) if is_same else None
        self._record(published=False)  # from now on the only copy of what is written may be here
        print(f"{self.place.address}: written in {self.folder}, and published from there", file=sys.stderr)
        actions = [(self._refresh, leases.REFRESH, self._release), (self._publish_if_due, POLL, self._stop)]
        for action in actions if self.while_written else actions[:1]:
            thread = threading.Thread(target=self._repeat, args=action, daemon=True)
            self._threads.append(thread)
            thread.start()

    def end(self, error: BaseException | None) -> None:
        """Publish the rest and release the lease; `error` ended the block, and must stay visible."""
        self._stop.set()
        for thread in self._threads[1:]:
            thread.join()
        self._record(published=False)
        try:
            self._end(error)
        except Exception as problem:  # each file system has errors of its own
            advice = "choose another address" if isinstance(problem, leases.LeaseLost) else "the same command publishes"
            text = f"{problem}; all files are in {self.folder}: {advice}"
            if error is None:
                raise OSError(text) from problem
            print(text, file=sys.stderr)
        finally:
            self._stop_refreshing()

    def _end(self, error: BaseException | None) -> None:
        """Publish and release; the lease is refreshed until everything is there."""
        leases.check_lease(self.place, self._owner)
        if not self.published and self._scan().keys() <= {"costs.jsonl"}:  # refused before it began
            self._stop_refreshing()
            leases.drop_lease(self.place)
            self._record(published=True)
            return
        if self.while_written or error is None:
            self.publish()
        self._record(published=self._scan() == self.published)
        self._stop_refreshing()
        leases.write_lease(self.place, self._owner, released=True, unfinished=self._unfinished)

    def publish(self) -> None:
        """Upload the files that were written since they were published, and delete those that are gone."""
        files = self._scan()
        changed = [name for name, written in files.items() if self.published.get(name) != written]
        # A listing may lack a file that is being replaced, so each is looked at.
        gone = [name for name in self.published.keys() - files.keys() if not (self.folder / name).exists()]
        if not changed and not gone:
            return
        self.published |= dict.fromkeys(changed)
        self._record(published=False)  # before the network is needed
        leases.check_lease(self.place, self._owner)
        if not self.resumes:
            self._unfinished = True
            self._refresh()
        for name in sorted(changed, key=lambda name: (not GROWING.fullmatch(name), files[name][1], _is_marker(name))):
            if not (self.folder / name).is_file():
                return  # deleted since: look again
            upload(self.place, name, self.folder / name)
            self.published[name] = files[name]
        for name in sorted(gone, key=lambda name: not _is_marker(name)):
            delete_objects(self.place, [name])
            del self.published[name]
        self._unfinished = False
        self._record(published=self._scan() == self.published)
        self._last = time.monotonic()

    def _publish_if_due(self) -> None:
        has_marker = any(
            _is_marker(name) and self.published.get(name) != written for name, written in self._scan().items()
        )
        if has_marker or time.monotonic() - self._last > PAUSE:
            self.publish()

    def _scan(self) -> dict[str, Written]:
        """Return size and time of all files.

        A folder is listed before the folders in it. So when a marker is listed, what it marks is there.
        """
        files: dict[str, Written] = {}
        for folder, _, names in os.walk(self.folder):
            if _has_unfinished_vectors(Path(folder), names):
                continue
            for name in names:
                path = Path(folder, name)
                relative = path.relative_to(self.folder).as_posix()
                with contextlib.suppress(FileNotFoundError):
                    if not PRIVATE.fullmatch(relative):
                        about = path.stat()
                        files[relative] = (about.st_size, about.st_mtime_ns)
        return {name: written for name, written in files.items() if not is_unfinished(name, files)}

    def _record(self, *, published: bool, whole: bool = True) -> None:
        record = {"address": self.place.address, "owner": self._owner, "published": published, "whole": whole}
        record |= {"files": self.published}
        write_json(self.entry / ENTRY, record)

    def _refresh(self) -> None:
        leases.check_lease(self.place, self._owner)
        leases.write_lease(self.place, self._owner, unfinished=self._unfinished)

    def _stop_refreshing(self) -> None:
        self._release.set()
        for thread in self._threads[:1]:
            thread.join()

    def _repeat(self, action: Callable[[], None], seconds: float, stop: threading.Event) -> None:
        """Call an action again and again; an error is printed once, and the run continues."""
        is_reported = False
        while not stop.wait(seconds):
            try:
                action()
                is_reported = False
            except leases.LeaseLost as error:
                if not self._lost:
                    print(f"{error}: nothing more is published there", file=sys.stderr)
                self._lost = True
                return
            except Exception as error:  # each file system has errors of its own
                if not is_reported:
                    print(f"{error}; the run goes on, and is published later", file=sys.stderr)
                is_reported = True


def _is_marker(name: str) -> bool:
    return name.rpartition("/")[2] in MARKERS


def _has_unfinished_vectors(folder: Path, names: Collection[str]) -> bool:
    """Return True for a folder of vectors that are still being computed."""
    if VECTORS not in names or not any(name.endswith(".f32") for name in names):
        return False
    try:
        description = read_json(folder / VECTORS)
        return bool(description["done"] < description["sentences"])
    except (OSError, ValueError, KeyError, TypeError):
        return True
