"""Atomic writing, reading, hashes and locks. The only module that knows how the platform does these."""

import contextlib
import errno
import glob
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

from bert_elmo_jax.json_values import Fields, check_fields, parse_json

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with one of these in front, spreadsheets compute a cell
# Errors of a write: the disk is full, the quota or the limit of a file reached, the disk read-only or damaged.
UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}


class LockHeld(BlockingIOError):
    """Raised by `lock` when another process holds the lock; `holder` is that process's number, as text."""

    def __init__(self, path: Path, holder: str):
        super().__init__(f"{path} is held by process {holder}")
        self.holder = holder


@contextlib.contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Add a path to a system error that names no file, such as the error of a write to a full disk.

    >>> with naming("out.csv"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device: 'out.csv'
    """
    try:
        yield
    except OSError as error:
        if error.errno not in UNWRITABLE or error.filename is not None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


@contextlib.contextmanager
def open_atomically(path: str | Path, encoding: str | None = None) -> Iterator[IO[Any]]:
    """Open a temporary file that replaces `path` at the end of the block, unless the block raises.

    Readers see the old file or the complete new one, never a part, even if the machine stops in between. Missing
    folders are made. The file is binary, or with an `encoding` text.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        mode, ends = ("w", "") if encoding else ("wb", None)
        with naming(path), open(partial, mode, encoding=encoding, newline=ends) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def stage_folder(target: str | Path) -> Iterator[Path]:
    """Yield a new folder next to `target`, to be filled and moved there; if it was not moved, it is deleted at the end.

    Its hidden name is random, so that no folder of the user or of another process has it.

    >>> import tempfile
    >>> with stage_folder(Path(tempfile.mkdtemp()) / "model") as stage:
    ...     stage.is_dir()
    True
    >>> stage.exists()
    False
    """
    target = Path(target)
    stage = target.with_name(f".{target.name}.{os.urandom(4).hex()}.partial")
    try:
        stage.mkdir(parents=True)
    except OSError as error:
        raise OSError(f"{target} cannot be written ({error.strerror}); give another folder") from error
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def write_bytes(path: str | Path, data: bytes) -> Path:
    """Write a file atomically and return its path."""
    with open_atomically(path) as file:
        file.write(data)
    return Path(path)


def write_text(path: str | Path, text: str, encoding: str = "utf-8") -> Path:
    """Write text atomically, keeping its line ends, and return the path."""
    return write_bytes(path, text.encode(encoding))


def write_json(path: str | Path, content: Any, *, indent: int = 1) -> Path:
    """Write readable JSON atomically and return its path."""
    return write_text(path, json.dumps(content, indent=indent, ensure_ascii=False) + "\n")


# Bytes of a file of text or JSON: the largest vocabularies and `tokenizer.json`s have 35 MB.
LARGEST_TEXT = 1 << 29


def check_regular(path: str | Path) -> None:
    """Raise for a pipe, a socket or a device: reading it would wait for its other end, maybe without end.

    >>> check_regular("/dev/null")
    Traceback (most recent call last):
    ValueError: /dev/null is not a regular file but a pipe, a socket or a device, which is refused: copy the content ...
    """
    with contextlib.suppress(FileNotFoundError):
        _check_mode(path, Path(path).stat().st_mode)


def _check_mode(path: str | Path, mode: int) -> None:
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ValueError(
            f"{path} is not a regular file but a pipe, a socket or a device, which is refused: copy the content into "
            "a file"
        )


def read_bytes(path: str | Path, largest: int = LARGEST_TEXT) -> bytes:
    """Return the content of a regular file; raise if it has more than `largest` bytes.

    >>> read_bytes("tests/goldens/bert_tiny/vocab.txt", largest=8)
    Traceback (most recent call last):
    ValueError: tests/goldens/bert_tiny/vocab.txt has ... bytes; at most 8 are read: is it another file?
    """
    about = Path(path).stat()
    _check_mode(path, about.st_mode)
    if about.st_size > largest:
        raise ValueError(f"{path} has {about.st_size:,} bytes; at most {largest:,} are read: is it another file?")
    with open(path, "rb") as file:
        return file.read()


def read_text(path: str | Path) -> str:
    """Return the text of a UTF-8 file without its byte-order mark; an error names the line that is not UTF-8."""
    data = read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1  # error.object has no byte-order mark
        problem = f"line {line} is not UTF-8 ({error.reason})"
        raise ValueError(f"{path}: {problem}; convert the file to UTF-8 first") from None


def read_json(
    path: str | Path, default: dict[str, Any] | None = None, *, fields: Fields | None = None
) -> dict[str, Any]:
    """Return the object in a JSON file; `default`, if given, is returned where there is no such file.

    `fields` are the kinds of the fields that the caller reads; see `json_values`.
    """
    if default is not None and not Path(path).exists():
        return default
    content = read_json_value(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path} should hold a JSON object {{…}}; it holds a {type(content).__name__}")
    check_fields(content, fields or {}, path)
    return content


def read_json_value(path: str | Path) -> Any:
    """Return the value in a JSON file, of any type; size, depth and digits are bounded.

    >>> read_json_value("tests/goldens/awd_lstm_tiny/itos.json")[:2]
    ['xxunk', 'xxpad']
    """
    return parse_json(read_text(path), path)


def read_array(path: str | Path, *, mapped: bool = False) -> Any:
    r"""Return the array of a `.npy` file, `mapped` into memory if asked; nothing in it is executed.

    >>> import tempfile
    >>> read_array(write_bytes(Path(tempfile.mkdtemp(), "a.npy"), b"\x93NUMPY"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: ...a.npy is not a complete array of numpy (...): copy it again
    """
    import numpy as np

    try:
        array = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    # numpy parses the header as Python's literals, with all errors that its tokenizer and parser can raise.
    except (
        ValueError,
        EOFError,
        SyntaxError,
        TokenError,
        SystemError,  # of Python 3.12, for a byte that is no text
        TypeError,
        OverflowError,
        MemoryError,
        RecursionError,
    ) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:100]
        raise ValueError(f"{path} is not a complete array of numpy ({reason}): copy it again") from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError(f"{path} is not an array of numpy but an archive of several: copy it again")
    return array


def guard_formula(text: str) -> str:
    """Return the text of a cell with a `'` in front if a spreadsheet would compute it.

    >>> guard_formula("=1+1"), guard_formula("1+1")
    ("'=1+1", '1+1')
    """
    return f"'{text}" if text.startswith(FORMULA) else text


def hash_file(path: str | Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


SUMS = "SHA256SUMS"  # the hashes of a folder's files, as `sha256sum` writes and checks them


def write_sums(folder: str | Path, hashes: Mapping[str, str] | None = None) -> Path:
    """Write the hashes of a folder's files, by default of all, into its `SHA256SUMS`, and return the path.

    Names are relative to the folder; `sha256sum -c SHA256SUMS` checks them, too.
    """
    folder = Path(folder)
    if hashes is None:
        files = [file for file in folder.rglob("*") if file.is_file() and file != folder / SUMS]
        hashes = {file.relative_to(folder).as_posix(): hash_file(file) for file in files}
    return write_text(folder / SUMS, "".join(f"{digest}  {name}\n" for name, digest in sorted(hashes.items())))


def read_sums(folder: str | Path) -> dict[str, str] | None:
    """Return the hashes in a folder's `SHA256SUMS` by name; None without the file."""
    file = Path(folder) / SUMS
    if not file.is_file():
        return None
    hashes = {}
    for number, line in enumerate(read_text(file).splitlines(), start=1):
        parts = re.fullmatch(r"([0-9a-f]{64}) [ *](.+)", line)
        if parts is None or Path(parts[2]).is_absolute() or ".." in Path(parts[2]).parts:
            raise ValueError(f"{file}: line {number} is not a hash and the name of a file in its folder; copy it again")
        if parts[2] in hashes:
            raise ValueError(f"{file}: line {number} lists {parts[2]} a second time; copy it again")
        hashes[parts[2]] = parts[1]
    return hashes


# The files that readers look for next to a file of weights or of a vocabulary.
COMPANIONS = (
    "*.json",
    "*.h5",
    "*.hdf5",
    "*.index",
    "*.model",
    "*.spm",
    "vocab*.txt",
    "words.txt",
    "merges.txt",
    "itos.*",
)


FILE_NAMES = (*COMPANIONS, "*.txt", "*.vec", "*.safetensors", "*.pth", "*.bin")  # which a folder should not have


def check_links(path: str | Path, depth: int | None = 3) -> None:
    """Raise if a link in a model's folder, or next to a file of weights, leads to a file outside the folder.

    The folder is searched with the folders in it, because a model has its modules in folders of its own: down to a
    `depth`, or all of them if that is None. Pipes, sockets, devices and folders in place of files are refused, too. The
    snapshots of the hub's cache consist of links to the `blobs` of their model, which are allowed.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> folder.joinpath("vocab.txt").symlink_to("/etc/passwd")
    >>> check_links(folder)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: ...vocab.txt is a link to /etc/passwd, outside the folder of the model, which is refused: copy the ...
    """
    path = Path(path)
    folder = path.resolve() if path.is_dir() else path.parent.resolve()
    if path.is_dir():
        entries = list(_list_odd(folder, depth=depth))
    else:  # a folder of other things, too
        looked_for = (*COMPANIONS, f"{glob.escape(path.name)}.*")
        odd = list(_list_odd(folder, depth=1)) if folder.is_dir() else []
        odd = [entry for entry in odd if entry.name != path.name and any(map(entry.match, looked_for))]
        entries = [entry for entry in odd if entry.is_symlink() or not entry.is_dir()]
    for entry in entries:
        check_regular(entry)
        if entry.is_dir() and not entry.is_symlink():
            raise ValueError(f"{entry} is a folder; a file has this name: copy it again")
        check_link(entry, folder)


def check_link(path: Path, folder: Path) -> None:
    """Raise if a path is a link to a file outside of a folder, and of the `blobs` of the hub's cache."""
    if not path.is_symlink() or not path.exists():
        return
    target, folder = path.resolve(), folder.resolve()
    blobs = [above.parent / "blobs" for above in folder.parents if above.name == "snapshots"]
    if not any(target.is_relative_to(place) for place in (folder, *blobs)):
        raise ValueError(
            f"{path} is a link to {target}, outside the folder of the model, which is refused: copy the file "
            "itself into the folder, or remove the link"
        )


def _list_odd(folder: Path, depth: int | None) -> Iterator[Path]:
    """Yield entries that are neither files nor folders, and folders with names of files.

    Regular files need no call of the system each.
    """
    waiting = [(folder, 1)]
    while waiting:
        inside, level = waiting.pop()
        try:
            entries = sorted(os.scandir(inside), key=lambda entry: entry.name)
        except PermissionError:
            if inside == folder:
                raise
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if any(map(Path(entry.name).match, FILE_NAMES)):
                    yield Path(entry)
                elif depth is None or level < depth:
                    waiting.append((Path(entry), level + 1))
            elif not entry.is_file(follow_symlinks=False):
                yield Path(entry)


@contextlib.contextmanager
def lock(path: str | Path, *, wait: bool = False) -> Iterator[None]:
    """Hold a lock file, which is made where it is missing and stays; the lock ends with the process, however it ends.

    Raises `LockHeld` if another process holds it, or waits for it.
    """
    from filelock import FileLock, Timeout

    file_lock = FileLock(path)
    try:
        file_lock.acquire(timeout=-1 if wait else 0)
    except Timeout:
        raise LockHeld(Path(path), Path(path).read_text(encoding="ascii").strip() or "another") from None
    try:
        with naming(path):
            Path(path).write_text(str(os.getpid()), encoding="ascii")
        yield
    finally:
        file_lock.release()


def is_locked(path: str | Path) -> bool:
    """Return whether a process holds a lock file."""
    from filelock import FileLock, Timeout

    if not Path(path).is_file():
        return False
    try:
        with FileLock(path, timeout=0):
            return False
    except Timeout:
        return True
