"""The file of a program's lines: standard output, a pipe or a device, or a file that appears when it is complete.

A file is written in a folder next to it, `predictions.csv.partial/`: its `lines` so far, a `lock`, and, if the program
can continue it, `progress.json`. At the end the lines, or the file that is made of them, get their name and the folder
is deleted. A hidden file next to the result, `.predictions.csv.request`, has the hashes of the request and of the
result, so that the same command, started once more, finds it complete.
"""

import contextlib
import hashlib
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from bert_elmo_jax.files import LockHeld, hash_file, lock, naming, read_json, write_json

STDIN = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
PROGRESS = "progress.json"
CONVERTED = "converted"  # the lines in another format
Finish = Callable[[Path, Path], None]  # reads the file of all lines, and writes another file


class Finished(Exception):
    """Raised by `begin` if the same request has written the file completely; `examples` is the number of its lines."""

    def __init__(self, path: Path, examples: int):
        super().__init__(f"{path} is complete already, by the same command: {examples:,} examples")
        self.examples = examples


def find_record(path: Path) -> Path:
    """Return the hidden file with the hashes of the request that wrote a file, and of its content.

    >>> find_record(Path("predictions.csv")).name
    '.predictions.csv.request'
    """
    return path.with_name(f".{path.name}.request")


def find_output(output: str, *sources: str, overwrite: bool = False) -> Path | None:
    """Return the file that `--output` names, links followed, or None for standard output.

    Raise if it is a folder, one of the input files by any of its names, or, unless `overwrite`, a file that exists.

    >>> find_output("/dev/stdout") is None, find_output("predictions.csv").name
    (True, 'predictions.csv')
    """
    if not output.strip():
        raise ValueError("--output= is empty: give the name of a file, or - for standard output")
    if output in STDOUT:
        return None
    path = Path(os.path.realpath(Path(output).expanduser()))
    if path.is_dir():
        raise IsADirectoryError(
            f"--output={output} is a folder: give the name of a file, such as {path.name}/out.jsonl"
        )
    exists = path.exists()
    for source in sources:
        same = exists and Path(source).exists() and path.samefile(source)  # by a hard link, too
        if source != "-" and (same or Path(os.path.realpath(source)) == path):
            raise ValueError(f"--output={output} would replace the input: give another name")
    if exists and path.is_file() and not overwrite and not find_record(path).is_file():
        raise FileExistsError(f"--output={output} exists: give another name, or --overwrite to replace it")
    return path


class Lines:
    """Lines for a stream: standard output, a pipe or a device. A context manager, like `LineFile`."""

    done = 0  # examples whose lines an earlier process has written
    finished: int | None = None  # the number of all examples, if the same request has written the file completely

    def __init__(self, path: Path | None):
        self.path, self._file = path, None if path is None else _open(path)
        self.header: list[str] = []  # of a table, filled in by its writer; an earlier run may have written it

    def __enter__(self) -> "Lines":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if self._file is not None and self.path is not None:
            with naming(self.path), contextlib.suppress(*[OSError] if error else []):
                self._file.close()
        return None

    def begin(self, request: Mapping[str, Any] | None) -> None:
        """Begin to write the lines of a request."""

    def skip(self, count: int) -> bool:
        """Return True if the lines of the next `count` examples are already written."""
        return False

    def add(self, lines: Iterable[str], count: int) -> None:
        """Write the lines of the next `count` examples."""
        out: IO[Any] = self._file or sys.stdout
        with naming(self.path) if self.path else contextlib.nullcontext():
            for line in lines:
                out.write(f"{line}\n")
            out.flush()


class LineFile(Lines):
    r"""Lines for a file. With the same request, it continues where an earlier process was stopped."""

    def __init__(self, path: Path, *, mark: bytes = b"", overwrite: bool = False, finish: Finish | None = None):
        self.path: Path | None = path
        self._finish = finish
        self.target, self.mark, self.overwrite = path, mark, overwrite
        self.folder = path.with_name(path.name + ".partial")
        self._passed, self._request, self.header = 0, dict[str, Any](), []
        self._held = contextlib.ExitStack()

    def __enter__(self) -> "Lines":
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._held.enter_context(lock(self.folder / "lock"))
        except LockHeld as error:
            raise ValueError(
                f"process {error.holder} is writing {self.target}: wait for it, or give another --output"
            ) from None
        if self.target.exists() and not self.overwrite and not find_record(self.target).is_file():
            self._clean()  # another process has finished in the meantime
            raise FileExistsError(f"{self.target} exists: give another name, or --overwrite to replace it")
        return self

    def begin(self, request: Mapping[str, Any] | None) -> None:
        """Begin to write the lines of a request, or continue its earlier lines; None is never continued."""
        request = None if request is None else json.loads(json.dumps(request))  # in the form that JSON reads back
        if self.target.exists() and not self.overwrite:
            self._check_finished(request)
        file, lines = self.folder / PROGRESS, self.folder / "lines"
        progress: dict[str, Any] = {}
        with contextlib.suppress(ValueError):  # a damaged file
            progress = read_json(file, default={})
        same = request is not None and progress.get("asked") == request and lines.is_file()
        if same and lines.stat().st_size >= progress["bytes"]:
            os.truncate(lines, progress["bytes"])  # a line may be half written
            self.done, self.header = progress["examples"], list(progress["names"])
        if not self.done:
            file.unlink(missing_ok=True)
            with naming(lines):
                lines.write_bytes(self.mark)
        self._request = {} if request is None else dict(request)

    def _check_finished(self, request: Mapping[str, Any] | None) -> None:
        """Raise `Finished` if the file is the complete result of this request, and FileExistsError if it is another."""
        record: dict[str, Any] = {}
        with contextlib.suppress(ValueError):  # a damaged file
            record = read_json(find_record(self.target), default={})
        written = {"request": hash_request(request), "content": hash_file(self.target)}
        if request is not None and record.items() >= written.items() and type(record.get("examples")) is int:
            raise Finished(self.target, record["examples"])
        raise FileExistsError(f"{self.target} exists: give another name, or --overwrite to replace it")

    def skip(self, count: int) -> bool:
        """Return True if the lines of the next `count` examples are already written."""
        if self._passed + count > self.done:
            return False
        self._passed += count
        return True

    def add(self, lines: Iterable[str], count: int) -> None:
        """Write the lines of the next `count` examples; they survive a kill from here on."""
        where = self.folder / "lines"
        self._passed += count
        with naming(where), open(where, "ab") as file:
            file.writelines(f"{line}\n".encode() for line in lines)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        if self._request:
            progress = {"asked": self._request, "examples": self._passed, "bytes": size, "names": self.header}
            write_json(self.folder / PROGRESS, progress)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if isinstance(error, Finished):
            print(error, file=sys.stderr)
            self.finished = error.examples
            self._clean()
            return True
        if error is None:
            result = self.folder / "lines"
            if self._finish:  # the lines stay as progress.json describes them, for a kill in here
                result = self.folder / CONVERTED
                self._finish(self.folder / "lines", result)
            self._keep_record(result)
            result.replace(self.target)
        if error is None or not (self.folder / PROGRESS).is_file():  # else the same request continues from here
            self._clean()
        else:
            self._held.close()
        return None

    def _keep_record(self, result: Path) -> None:
        record = find_record(self.target)
        if not self._request:  # of standard input, which cannot be read once more
            record.unlink(missing_ok=True)
            return
        content = hash_file(result)
        write_json(record, {"request": hash_request(self._request), "content": content, "examples": self._passed})

    def _clean(self) -> None:
        self._held.close()
        for name in ("lines", CONVERTED, PROGRESS, "lock"):
            (self.folder / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it holds files of someone else
            self.folder.rmdir()


def hash_request(request: Mapping[str, Any] | None) -> str:
    """Return the SHA-256 of a request, in the form that JSON reads back."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def open_lines(path: Path | None, *, mark: bytes = b"", overwrite: bool = False, finish: Finish | None = None) -> Lines:
    """Return the writer of lines to a path of `find_output`; `finish` makes the result of the file of all lines."""
    if path is None or (path.exists() and not path.is_file()):
        if finish:
            raise ValueError(f"--output={path} is not a file, and Parquet is written to files: give another name")
        return Lines(path)
    return LineFile(path, mark=mark, overwrite=overwrite, finish=finish)


def _open(path: Path) -> IO[str]:
    if path.is_fifo():
        logging.getLogger(__name__).warning("%s is a pipe: waiting for the program that reads it", path)
    with naming(path):
        return open(path, "w", encoding="utf-8", newline="")
