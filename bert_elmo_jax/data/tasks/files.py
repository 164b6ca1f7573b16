"""Read the text of task files; errors name file and line and suggest a remedy."""

import codecs
import glob
import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bert_elmo_jax.addresses import is_address, local_copies
from bert_elmo_jax.data.arrow_files import arrow_files, is_arrow
from bert_elmo_jax.data.corpora.reading import COMPRESSED, BadInput, guess_encoding
from bert_elmo_jax.data.corpora.unpack import DAMAGED, raw_blocks
from bert_elmo_jax.did_you_mean import near_file
from bert_elmo_jax.files import hash_file, write_bytes

_FORMATS = (
    (b"PK\x03\x04", "a zip or Excel file", "save the sheet as CSV in UTF-8, or unzip it"),
    (b"\x1f\x8b", "compressed (gzip)", "unpack it with gunzip"),
    (b"\xfd7zXZ\0", "compressed (xz)", "unpack it with xz -d"),
    (b"BZh", "compressed (bzip2)", "unpack it with bunzip2"),
    (b"\x28\xb5\x2f\xfd", "compressed (zstd)", "unpack it with zstd -d"),
    (b"PAR1", "a Parquet file", "name it .parquet"),
    (b"ARROW1", "an Arrow file", "name it .arrow"),
    (b"%PDF", "a PDF", "export its text"),
    (b"\xd0\xcf\x11\xe0", "an old Excel or Word file", "save the sheet as CSV in UTF-8"),
)
LARGEST_UNPACKED = 8 << 30  # bytes; labelled texts are held in memory
ENDLESS = ("/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Row(int):
    """The number of a row, from 1, in place of its line where several rows are on one line."""


class BadRow(ValueError):
    """Raised for an invalid row, with the message `file:line: given and expected values; remedy`.

    >>> str(BadRow("train.tsv", 3, "2 columns, while the header has 3", "add the missing one"))
    'train.tsv:3: 2 columns, while the header has 3; add the missing one'
    """

    def __init__(self, file: str | Path, line: int, problem: str, remedy: str):
        super().__init__(str(file), line, problem, remedy)  # all arguments, so that the error can be pickled
        self.file, self.line, self.problem, self.remedy = str(file), line, problem, remedy

    def __str__(self) -> str:
        """`file:line: problem; remedy`; Parquet files have rows instead of lines."""
        place = f", row {self.line}" if row_or_line(self.file, self.line) == "row" else f":{self.line}"
        return f"{self.file}{place}: {self.problem}; {self.remedy}"


def row_or_line(file: str | Path, number: int) -> str:
    """Return "row" if messages about a file count its rows, as of Parquet files, otherwise "line"."""
    return "row" if isinstance(number, Row) or is_arrow(file) else "line"


_ANY_BYTES = {"cp1252", "iso8859-1"}  # encodings that turn UTF-8 into other letters without an error

OnBad = Callable[[BadRow], object]  # what to do with a row that cannot be read: `stop`, or a list's `append`


def stop(error: BadRow) -> None:
    """Raise the error about a row, as the readers of tables do by default.

    >>> skipped = []
    >>> for on_bad in (skipped.append, stop):
    ...     on_bad(BadRow("train.tsv", 3, "a blank line", "remove it"))
    Traceback (most recent call last):
    ...
    bert_elmo_jax.data.tasks.files.BadRow: train.tsv:3: a blank line; remove it
    """
    raise error


def write_skipped(path: str | Path, rows: Sequence[BadRow]) -> None:
    """Write a JSON line for each row that was skipped: file, line and problem."""
    entries = (
        {"file": row.file, "line": row.line, "problem": row.problem, "remedy": row.remedy}
        for row in sorted(rows, key=lambda row: (row.file, row.line))
    )
    text = "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in entries)
    write_bytes(Path(path), text.encode("utf-8", "replace"))


def describe_skipped(rows: Sequence[BadRow], total: int, source: str | Path) -> str:
    """Return the message about rows that were skipped among the total of an input; of several files, each is named.

    >>> describe_skipped([BadRow("train.tsv", 3, "a blank line", "remove it")], 40, "train.tsv")
    '1 of 40 rows of train.tsv is skipped: line 3 (a blank line)'
    >>> describe_skipped([BadRow("b.tsv", 3, "a blank line", "remove it")], 40, "a.tsv,b.tsv")
    '1 of 40 rows of a.tsv,b.tsv is skipped: b.tsv, line 3 (a blank line)'
    """
    in_order = sorted(rows, key=lambda row: (row.file, row.line))
    first = "; ".join(
        f"{'' if row.file == str(source) else f'{row.file}, '}{row_or_line(row.file, row.line)} {row.line:,} "
        f"({row.problem})"
        for row in in_order[:3]
    )
    more = f" and {len(rows) - 3:,} more" if len(rows) > 3 else ""
    verb = "is" if len(rows) == 1 else "are"
    return f"{len(rows):,} of {total:,} rows of {source} {verb} skipped: {first}{more}"


def list_files(names: str | Path) -> list[str]:
    """Return the files of a name: one, several separated by commas, or all that match a glob, sorted.

    >>> list_files("reviews.csv"), list_files("a.csv,b.csv"), list_files("LICEN*")
    (['reviews.csv'], ['a.csv', 'b.csv'], ['LICENSE'])
    """
    if os.path.lexists(names):
        return [str(names)]
    files: list[str] = []
    for name in filter(None, (part.strip() for part in str(names).split(","))):
        if is_address(name):
            files += local_copies(name)
            continue
        pattern = os.path.expanduser(name)  # noqa: PTH111 -- keeps the spelling
        matches = [pattern] if os.path.lexists(pattern) else sorted(glob.glob(pattern, recursive=True))
        if not matches and glob.has_magic(pattern):
            raise FileNotFoundError(f"{name}: no file matches; check the path")
        files += matches or [name]
    if doubled := [name for name in files if files.count(name) > 1]:
        raise ValueError(f"{names}: {doubled[0]} is named twice; name each file once")
    return files or [str(names)]


def hash_files(names: str | Path) -> str:
    """Return the SHA-256 of a file; of several, or of a saved data set, the SHA-256 of their hashes.

    >>> hash_files("LICENSE")[:8]
    'cfc7749b'
    """
    files = [file for name in list_files(names) for file in (arrow_files(name) if is_arrow(name) else (Path(name),))]
    hashes = [hash_file(file) for file in files]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("\n".join(hashes).encode()).hexdigest()


def check_file(path: str | Path) -> Path:
    """Return the path of a file, or of a folder that `datasets` has saved; raise if there is neither."""
    path = Path(path)
    if path.is_dir() and not is_arrow(path):
        raise BadRow(path, 1, "a folder, expected a file", "name the file in it")
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file{near_file(path) or '; check the path'}")
    if str(path.resolve()) in ENDLESS:
        raise BadRow(path, 1, "a device without an end, expected a file", "name a file of texts")
    if path.is_fifo():
        logging.getLogger(__name__).warning("%s is a pipe: waiting for the program that writes it", path)
    return path


def read_text(
    path: str | Path, encoding: str = "utf-8", fallback: str | None = None, *, keep_ends: bool = False
) -> str:
    r"""Return the text of a task file: not empty, without NUL and byte-order mark, lines ending in `\n`.

    `fallback` is the encoding of official files that also circulate in UTF-8. `keep_ends` keeps each `\r\n`, which may
    be inside a quoted cell.
    """
    path = check_file(path)
    data = _read_unpacked(path)
    for sign, kind, remedy in _FORMATS:
        if data.startswith(sign):
            raise BadRow(path, 1, f"{kind}, expected text", remedy)
    try:
        text = data.decode("utf-8-sig" if _find_codec(encoding) == "utf-8" else encoding)
    except LookupError:
        raise ValueError(f"encoding={encoding!r} is not known; use one of Python's, such as utf-8 or cp949") from None
    except UnicodeDecodeError as problem:
        if fallback is not None:
            return read_text(path, fallback, keep_ends=keep_ends)
        raise _undecodable(path, data, encoding, problem) from None
    if _find_codec(encoding) in _ANY_BYTES and guess_encoding(data) == "utf-8":
        line = next(number for number, line in enumerate(data.split(b"\n"), start=1) if not line.isascii())
        raise BadRow(path, line, f"UTF-8, not {encoding.upper()}", _remedy("utf-8"))
    text = text.removeprefix("\ufeff")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        if text.count("\0") > len(text) // 4:
            raise BadRow(path, line, "NUL in every other byte", f"it looks like UTF-16: {_remedy('utf-16')}")
        raise BadRow(path, line, "a NUL byte, expected text", "remove it, or give a text file")
    if not text.strip():
        raise BadRow(path, 1, "an empty file, expected examples", "check that it was written or downloaded completely")
    if "\n" not in text:
        return text.replace("\r", "\n")
    return text if keep_ends else text.replace("\r\n", "\n")


def _find_codec(encoding: str) -> str:
    """Return Python's name of an encoding; raise LookupError without one."""
    try:
        return codecs.lookup(encoding).name
    except ValueError as error:  # a NUL in it
        raise LookupError from error


def _read_unpacked(path: Path) -> bytes:
    """Return the content of a file, decompressed by its ending; raise if it would not fit into memory."""
    if not path.name.lower().endswith(COMPRESSED):
        return path.read_bytes()
    parts, size = [], 0
    try:
        for part in raw_blocks(str(path)):
            parts.append(part)
            if (size := size + len(part)) > LARGEST_UNPACKED:
                raise BadRow(path, 1, f"more than {LARGEST_UNPACKED >> 30} GB when unpacked", "split it into files")
    except BadInput as error:
        raise BadRow(path, 1, error.problem, error.remedy) from None
    except (*DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise BadRow(path, 1, f"a damaged or truncated compressed file ({error})", "copy it again") from None
    return b"".join(parts)


def read_lines(path: str | Path, encoding: str = "utf-8", fallback: str | None = None) -> list[str]:
    r"""Return the lines of a task file; only `\n` ends a line."""
    return read_text(path, encoding, fallback).removesuffix("\n").split("\n")


def parse_json(text: str, file: str | Path, line: int = 1) -> Any:
    """Parse JSON text that begins on line `line` of `file`."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as problem:
        where = f"{problem.msg}, column {problem.colno}"
        raise BadRow(file, line + problem.lineno - 1, f"invalid JSON ({where})", "fix or delete it") from None
    except ValueError:  # of int(), for more than 4,300 digits
        raise BadRow(file, line, "invalid JSON (a number of thousands of digits)", "fix or delete it") from None
    except RecursionError:
        raise BadRow(file, line, "invalid JSON (nested too deeply)", "fix or delete it") from None


def check_characters(text: str, file: str | Path, line: int) -> None:
    """Raise if a text contains a lone surrogate, which JSON can express but UTF-8 cannot."""
    if half := _SURROGATE.search(text):
        problem = f"a lone surrogate (\\u{ord(half[0]):04x}), which is half a character"
        raise BadRow(file, line, problem, "add the other half, or delete it")


def lines_of(text: str, name: str, keys: Sequence[object]) -> list[int]:
    r"""Return the line of each `"name": key` in a JSON text, where the keys occur in this order.

    A missing key gets the line of the key before it.

    >>> lines_of('[{"id": "a"},\n {"id": "배"}]', "id", ["a", "배"])
    [1, 2]
    """
    lines, place, line = [], 0, 1
    for key in keys if "\n" in text else ():
        if key is None:  # a search for it would read the rest of the text
            lines.append(line)
            continue
        spellings = "|".join(re.escape(json.dumps(key, ensure_ascii=plain)) for plain in (True, False))
        if spot := re.compile(rf"{re.escape(json.dumps(name))}\s*:\s*({spellings})").search(text, place):
            line += text.count("\n", place, spot.start(1))
            place = spot.start(1)
        lines.append(line)
    return lines or [1] * len(keys)


def _undecodable(path: Path, data: bytes, encoding: str, error: UnicodeDecodeError) -> BadRow:
    line = data.count(b"\n", 0, error.start) + 1
    problem = f"not {encoding.upper()} (byte 0x{data[error.start]:02x} in it)"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return BadRow(path, line, problem, f"it looks like UTF-16: {_remedy('utf-16')}")
    if any(byte in data for byte in b"\0\1\2\3\4\5\6\7"):
        return BadRow(path, line, f"binary data, {problem}", "give a text file")
    broken = data[data.rfind(b"\n", 0, error.start) + 1 :].split(b"\n", 1)[0]
    if other := guess_encoding(broken):
        return BadRow(path, line, problem, f"it reads as {other}: {_remedy(other)}")
    return BadRow(path, line, problem, "save it as UTF-8, or give its encoding (--encoding=…)")


def _remedy(encoding: str) -> str:
    if encoding == "utf-8":
        return "give --encoding=utf-8"
    return f"save it as UTF-8, or give its encoding ({encoding}): --encoding={encoding}"
