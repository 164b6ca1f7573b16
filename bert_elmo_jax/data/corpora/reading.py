"""Reading options, input files, and errors that name the file and the line."""

import codecs
import contextlib
import glob
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from bert_elmo_jax.addresses import is_address, local_copies
from bert_elmo_jax.did_you_mean import near_file

COMPRESSED = (".gz", ".xz", ".bz2", ".zst")
UNREADABLE = (".json", ".pdf", ".doc", ".docx", ".xls", ".xlsx", ".hwp", ".hwpx", ".html", ".zip", ".tar", ".7z")
ARROW_TABLES = (".parquet", ".pq", ".arrow", ".feather")  # compressed inside, and not read if compressed once more
BLOCK = 1 << 20


class BadInput(ValueError):
    """Unusable input; the message names the file, the line number and a remedy."""

    def __init__(self, path: str, line: int | None, problem: str, remedy: str):
        super().__init__(path, line, problem, remedy)  # all arguments, so that it can be pickled
        self.path, self.line, self.problem, self.remedy = path, line, problem, remedy

    def __str__(self) -> str:
        """Return `file, line n: what; remedy`."""
        return f"{shown(self.path)}{f', line {self.line}' if self.line else ''}: {self.problem}; {self.remedy}"


def shown(path: str) -> str:
    """Return a file's name as printable text, even if its bytes are not UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def plain_name(path: str | Path) -> str:
    """Return a file's name in lower case, without the ending of a compressed file.

    >>> plain_name("data/Train.CONLLU.gz"), plain_name("train.txt")
    ('data/train.conllu', 'train.txt')
    """
    name = str(path).lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    return name


@dataclass(frozen=True)
class Reading:
    """Options for reading text: what ends a document, and whether a line is a sentence or is split into sentences."""

    documents: Literal["blank_line", "line", "file"] = "blank_line"
    split: Literal["lines", "sentences"] = "lines"
    encoding: str = "utf-8"
    text_field: str = "text"  # of .jsonl files and tables, where every row is a document
    on_bad: Literal["error", "skip"] = "error"  # "skip" also counts
    max_line_mb: float = 4.0

    def __post_init__(self) -> None:
        try:
            codecs.lookup(self.encoding)
            "\n".encode(self.encoding)
        except (LookupError, TypeError, ValueError) as error:  # ValueError: a NUL, or a code of names such as idna
            raise ValueError(
                f"encoding={self.encoding!r} is not known; use a name Python knows, such as utf-8, cp949 or utf-16"
            ) from error

    @cached_property
    def wide(self) -> bool:
        """Return True if a newline is not the single byte 0x0A in this encoding; `unpack` then rewrites it as UTF-8."""
        name = codecs.lookup(self.encoding).name
        if name == "utf-8-sig":  # only the first line has a mark
            return False
        return name.startswith(("iso2022", "hz", "utf-7")) or "\n".encode(self.encoding) != b"\n"

    @cached_property
    def line_encoding(self) -> str:
        """Return the encoding of the lines of a plain file, under Python's name."""
        return "utf-8" if self.wide else codecs.lookup(self.encoding).name


@dataclass(frozen=True)
class Source:
    """One input file; `plain` is the file itself, or its unpacked copy."""

    path: str
    plain: str
    size: int  # bytes of `plain`
    sample: str  # fingerprint of the content, of large files of parts of it: fast for files of any size
    rows: bool = False  # True if `plain` has the texts of a table's rows, which `write_texts` has written
    copies: float = 1.0  # times that its documents are in a mixture
    earlier_sample: str = ""  # the fingerprint in the plans of earlier versions

    @cached_property
    def is_json(self) -> bool:
        """Return True if every line is a JSON record."""
        if self.rows:
            return False
        return plain_name(self.path).endswith((".jsonl", ".ndjson"))


@dataclass
class Tally:
    """Counts of input that was corrected, or skipped with `on_bad=skip`, by reason.

    `prepares` is True within `prepare_data`: error messages then suggest its flags.
    """

    reading: Reading
    skipped: Counter[str] = field(default_factory=Counter)
    place: int = 0  # current byte offset in the source
    prepares: bool = True

    @property
    def column_flag(self) -> str:
        """The flag that names the column of texts."""
        return "--text_field" if self.prepares else "--text"

    def bad(
        self, path: str, line: Callable[[], int] | None, problem: str, remedy: str, detail: str = "", flag: str = ""
    ) -> None:
        """Raise `BadInput`, or count the reason if bad input is skipped.

        `line` is a function because finding the line number takes a pass over the file. `flag` is a remedy that only
        `prepare_data` offers.
        """
        if self.reading.on_bad == "error":
            remedy = f"{remedy}, or {flag}" if flag and self.prepares else remedy
            raise BadInput(path, line() if line else None, problem + detail, remedy)
        self.count(problem)

    def count(self, problem: str) -> None:
        """Count a harmless correction, such as a removed byte-order mark."""
        self.skipped[problem] += 1


# The files that tell a folder saved by `datasets`: of one split, or of several.
STATE, SPLITS = "state.json", "dataset_dict.json"


def is_saved_folder(path: str | Path) -> bool:
    """Return True for a folder that `datasets` has saved."""
    return any(Path(path, name).is_file() for name in (STATE, SPLITS))


def find_files(patterns: Sequence[str], tally: Tally) -> list[str]:
    """Return the files that match paths or globs, each once, sorted within a glob."""
    files: dict[tuple[int, int], str] = {}  # by device and inode, so that a file found under two names counts once
    for pattern in patterns:
        pattern = os.path.expanduser(pattern)  # noqa: PTH111 -- keeps the spelling
        if is_address(pattern):
            names = local_copies(pattern)
        else:
            names = [pattern] if os.path.lexists(pattern) else sorted(glob.glob(pattern, recursive=True))
        if not names:
            usual = "check the path, and quote a glob: --input='a/*.txt'" if tally.prepares else "check the path"
            raise BadInput(pattern, None, "no file matches", near_file(pattern).removeprefix("; ") or usual)
        for name in names:
            if Path(name).is_dir() and is_saved_folder(name):
                status = Path(name).stat()
                files.setdefault((status.st_dev, status.st_ino), name)
            elif Path(name).is_dir():
                inside = f"s in it: --input='{name.rstrip('/')}/*.txt'" if tally.prepares else " in it"
                tally.bad(name, None, "a folder, not a file", f"name the file{inside}")
            elif not Path(name).exists():
                tally.bad(name, None, "a broken link", "fix or delete it")
            elif not Path(name).is_file():
                tally.bad(name, None, "not a regular file", "write its content to a file first")
            elif (plain := plain_name(name)).endswith(UNREADABLE):
                lines = ", or name it .jsonl if each line is an object" if plain.endswith(".json") else ""
                tally.bad(name, None, f"{Path(plain).suffix} is not supported", f"convert it to .txt or .jsonl{lines}")
            elif plain != name.lower() and plain.endswith(ARROW_TABLES):
                tally.bad(name, None, f"a compressed {Path(plain).suffix} is not supported", "unpack it")
            else:
                status = Path(name).stat()
                files.setdefault((status.st_dev, status.st_ino), name)
    return list(files.values())


def guess_encoding(line: bytes) -> str | None:
    """Return UTF-8, the Korean code page if it gives Hangul, or Windows-1252; None if none of them fits.

    >>> guess_encoding("강가".encode("cp949")), guess_encoding(b"river")
    ('cp949', None)
    """
    for encoding, sign in (("utf-8", "[^\0-\x7f]"), ("cp949", "[가-힣]{2}"), ("cp1252", "[^\0-\x7f]")):
        with contextlib.suppress(UnicodeDecodeError):
            if re.search(sign, line.decode(encoding)):
                return encoding
    return None


def has_text(source: Source, tally: Tally) -> bool:
    """Return True if a file contains anything but white space; report it as bad input otherwise."""
    remedy = "remove it from --input" if tally.prepares else "give one with text"
    if source.size == 0:
        tally.bad(source.path, None, "an empty file", remedy)
        return False
    if Path(source.plain).is_dir():
        return True
    with open(source.plain, "rb") as raw:
        while block := raw.read(BLOCK):
            if block.strip(b" \t\r\n\v\f"):
                return True
    tally.bad(source.path, None, "only blank lines", remedy)
    return False
