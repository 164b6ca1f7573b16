"""The objects below an address: list, download in ranges, upload, delete, with retries and errors that help."""

import contextlib
import functools
import re
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from bert_elmo_jax.addresses import SCHEMES

TRIES = 5
FIRST_WAIT = 0.5  # seconds before the second try; it doubles
RANGE = 1 << 25  # bytes of one download; a connection that is cut costs no more
AT_A_TIME = 8  # downloads
# The first of these that a listing has identifies the content of an object.
VERSIONS = ("ETag", "etag", "md5Hash", "xet_hash", "blob_id", "created", "mtime")
CREDENTIALS = {
    "s3": "AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "gcloud auth application-default login, or GOOGLE_APPLICATION_CREDENTIALS",
    "hf": "hf auth login, or HF_TOKEN",
}
REFUSED = re.compile(
    r"\b40[13]\b|Forbidden|AccessDenied|Access Denied|Unauthorized|NoCredentials|PartialCredentials|ProfileNotFound|"
    "InvalidAccessKeyId"
)
NO_BUCKET = re.compile(r"bucket does not exist|NoSuchBucket|\bb/[^/\s]+/o$", re.IGNORECASE)  # the last of gcsfs
Result = TypeVar("Result")


class BucketMissing(FileNotFoundError):
    """There is no bucket of this name; other missing objects are a plain FileNotFoundError."""


class Place(NamedTuple):
    """A place in a bucket: the address as it was given, the file system of fsspec, and the path in it."""

    address: str
    system: Any
    path: str

    def join(self, name: str) -> str:
        """Return the path of an object below this place; "" is the place itself."""
        return f"{self.path}/{name}" if name else self.path


class Stored(NamedTuple):
    """Size of an object, and a text that changes with its content."""

    size: int
    version: str


def open_place(address: str | Path) -> Place:
    """Return the place of an address; raise for an unknown scheme, a missing bucket name or a missing package.

    >>> open_place("memory://reviews/run/").path
    '/reviews/run'
    >>> open_place("ftp://reviews")
    Traceback (most recent call last):
    ValueError: ftp://reviews: ftp:// is not known; known are s3://, gs://, hf://, memory://: download the files first
    """
    scheme, _, name = str(address).partition(":")
    name = name.strip("/")
    address = f"{scheme}://{name}"
    if scheme == "file":
        raise ValueError(f"file:///{name} is a file of this machine: give its path, /{name}")
    if scheme not in SCHEMES:
        listed = ", ".join(f"{known}://" for known in SCHEMES)
        raise ValueError(f"{address}: {scheme}:// is not known; known are {listed}: download the files first")
    if not name:
        raise ValueError(f"{address} names no bucket; expected {scheme}://BUCKET/NAME")
    try:
        import fsspec

        system = fsspec.filesystem(scheme, use_listings_cache=False)
    except ImportError as error:
        package = {"s3": "s3fs", "gs": "gcsfs", "hf": "huggingface_hub"}.get(scheme, "fsspec")
        raise ImportError(
            f"{address} needs the package {package} ({error}): pip install 'bert_elmo_jax[buckets]'"
        ) from None
    return Place(address, system, system._strip_protocol(address).rstrip("/"))


def check_writable(place: Place) -> None:
    """Raise ValueError for a place that is only read: a repository of the hub.

    >>> check_writable(Place("hf://owner/model/run", None, "owner/model/run"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: hf://owner/model/run is a repository, where every file would be a commit: give hf://buckets/OWNER/...
    """
    if place.address.startswith("hf://") and not place.address.startswith("hf://buckets/"):
        raise ValueError(
            f"{place.address} is a repository, where every file would be a commit: give hf://buckets/OWNER/NAME/…, or "
            "an address of s3:// or gs://"
        )


def attempt(place: Place, action: Callable[[], Result]) -> Result:
    """Return the result of an action; try again, a few times, after errors that may pass."""
    for number in range(TRIES):
        try:
            return action()
        except Exception as error:  # each file system has errors of its own
            lasting = explain_lasting(place, error)
            if lasting is not None:
                raise lasting from error
            if number + 1 == TRIES:
                raise OSError(
                    f"{place.address}: {_short(error)}; {TRIES} tries have failed: check the network, and start the "
                    "same command again"
                ) from error
            time.sleep(FIRST_WAIT * 2**number)
    raise AssertionError("unreachable")


def explain_lasting(place: Place, error: Exception) -> Exception | None:
    """Return an error that says what to do if another try would fail too; None if it may succeed."""
    scheme = place.address.partition(":")[0]
    description = f"{type(error).__name__} {error}"
    if NO_BUCKET.search(description):
        return _missing_bucket(place)
    if description.startswith("ParamValidationError"):  # of botocore; its first line says nothing
        return ValueError(f"{place.address}: {' '.join(str(error).splitlines()[1:])[:200] or error}; check the address")
    if isinstance(error, FileNotFoundError | IsADirectoryError | NotADirectoryError | ImportError | ValueError):
        return error
    if isinstance(error, PermissionError) or (not isinstance(error, ConnectionError) and REFUSED.search(description)):
        return PermissionError(
            f"{place.address}: access is refused ({_short(error)}); check the name of the bucket and the credentials: "
            f"{CREDENTIALS.get(scheme, 'of this process')}"
        )
    return None


def _missing_bucket(place: Place) -> BucketMissing:
    bucket = place.path.lstrip("/").partition("/")[0]
    return BucketMissing(f"{place.address}: there is no bucket {bucket!r}: create it, or check the name")


def _short(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:200] or type(error).__name__


def list_objects(place: Place) -> dict[str, Stored]:
    """Return the objects at or below a place by their names from there; the name of the place's own object is ""."""

    def find() -> dict[str, Any]:
        place.system.invalidate_cache()
        return place.system.find(place.path, detail=True)

    objects = {}
    for path, about in attempt(place, find).items():
        version = next((str(about[name]) for name in VERSIONS if about.get(name)), "")
        name = path.lstrip("/").removeprefix(place.path.lstrip("/")).removeprefix("/")
        if Path(name).anchor or ".." in Path(name).parts:
            raise ValueError(
                f"{place.address}: the object {name!r} would be written outside of its folder here, which is refused: "
                "rename or delete it"
            )
        if not name.endswith("/"):  # an empty object in place of a folder; consoles make them
            objects[name] = Stored(int(about["size"] or 0), version)
    if len(objects) > 1:
        objects.pop("", None)  # one in place of this folder
    if not objects:  # some file systems list a missing bucket as an empty one
        bucket = place.path.lstrip("/").partition("/")[0]
        if place.address.startswith("s3://") and not attempt(place, lambda: place.system.exists(bucket)):
            raise _missing_bucket(place)
    return objects


def download(place: Place, objects: Mapping[str, Stored], folder: Path) -> None:
    """Download objects into a folder under their names; "" is the folder's own path. Existing files stay."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        copies = [
            pool.submit(_download_one, place, name, stored.size, folder / name) for name, stored in objects.items()
        ]
        try:
            for copy in copies:
                copy.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _download_one(place: Place, name: str, size: int, target: Path) -> None:
    """Download an object range by range; a download that was stopped continues after its last whole range."""
    if target.is_file():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.partial")
    with open(partial, "ab") as file:
        file.truncate(file.tell() // RANGE * RANGE)
        while (start := file.tell()) < size:
            file.write(attempt(place, lambda: _read_range(place, name, start, min(start + RANGE, size))))
    partial.replace(target)


def _read_range(place: Place, name: str, start: int, end: int) -> bytes:
    data = place.system.cat_file(place.join(name), start=start, end=end)
    if len(data) != end - start:
        raise ConnectionError(f"{name}: {len(data):,} of {end - start:,} bytes came, the connection was cut")
    return data


def read_object(place: Place, name: str) -> bytes | None:
    """Return the content of a small object, None if there is none."""
    try:
        return attempt(place, lambda: place.system.cat_file(place.join(name)))
    except BucketMissing:
        raise
    except FileNotFoundError:
        return None


def write_object(place: Place, name: str, data: bytes) -> None:
    """Write a small object."""
    attempt(place, lambda: place.system.pipe_file(place.join(name), data))


def upload(place: Place, name: str, file: Path) -> None:
    """Upload a file; the object appears complete, or not at all."""
    attempt(place, lambda: place.system.put_file(str(file), place.join(name)))


def delete_objects(place: Place, names: Iterable[str]) -> None:
    """Delete objects one after another; one that is gone already is no error."""
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            attempt(place, functools.partial(place.system.rm_file, place.join(name)))
