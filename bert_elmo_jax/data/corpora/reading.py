"""How input is to be read, which files it is, and what is said where it cannot be."""

import codecs
import glob
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from bert_elmo_jax.did_you_mean import near_file

COMPRESSED = (".gz", ".xz", ".bz2", ".zst")
OTHER_FORMATS = (
    ".json",
    ".pdf",
    ".doc",
    ".docx",
    ".hwp",
    ".hwpx",
    ".html",
    ".zip",
    ".tar",
    ".7z",
    ".parquet",
    ".arrow",
)
BLOCK = 1 << 20


class BadInput(ValueError):
    """Input that cannot be used: one line that names file, line number and remedy.

    >>> str(BadInput("novel.txt", 3, "a NUL byte", "remove it"))
    'novel.txt, line 3: a NUL byte; remove it'
    """

    def __init__(self, path: str, line: int | None, what: str, remedy: str):
        super().__init__(path, line, what, remedy)  # all arguments, so that it travels between processes
        self.path, self.line, self.what, self.remedy = path, line, what, remedy

    def __str__(self) -> str:
        """`file, line n: what; remedy`."""
        return f"{shown(self.path)}{f', line {self.line}' if self.line else ''}: {self.what}; {self.remedy}"


def shown(path: str) -> str:
    """A file's name as text, also where its bytes are no UTF-8.

    >>> shown("한국.txt")
    '한국.txt'
    """
    return os.fsencode(path).decode("utf-8", "backslashreplace")


@dataclass(frozen=True)
class Reading:
    """How text is to be read.

    >>> Reading(documents="file", split="sentences").encoding
    'utf-8'
    """

    documents: str = "blank_line"  # a blank line ends a document; or "line" or "file": each is one
    split: str = "lines"  # a line is a sentence; or "sentences": lines are running text
    encoding: str = "utf-8"
    text_field: str = "text"  # of .jsonl, where every line is a document
    on_bad: str = "error"  # or "skip": go on, and count
    max_line_mb: float = 4.0

    def __post_init__(self) -> None:
        """Refuse what no reader knows."""
        for name, value, known in (
            ("documents", self.documents, ("blank_line", "line", "file")),
            ("split", self.split, ("lines", "sentences")),
            ("on_bad", self.on_bad, ("error", "skip")),
        ):
            if value not in known:
                raise ValueError(f"{name}={value!r} is not known; use one of {', '.join(known)}")
        try:
            codecs.lookup(self.encoding)
            "\n".encode(self.encoding)
        except (LookupError, TypeError) as error:
            raise ValueError(
                f"encoding={self.encoding!r} is not known; use a name Python knows, such as utf-8, cp949 or utf-16"
            ) from error
        if not 0 < self.max_line_mb <= 1024:
            raise ValueError(f"max_line_mb={self.max_line_mb} is no size of a line; use 0.001 to 1024, such as 4")

    @cached_property
    def wide(self) -> bool:
        """Whether a newline is not the byte 0x0A of its own in this encoding, so that `unpack` rewrites it as UTF-8."""
        name = codecs.lookup(self.encoding).name
        if name == "utf-8-sig":  # its mark stands before the first line only
            return False
        return name.startswith(("iso2022", "hz", "utf-7")) or "\n".encode(self.encoding) != b"\n"

    @cached_property
    def line_encoding(self) -> str:
        """The encoding of the lines of a plain file: `utf-8`, `utf-8-sig` or Python's name for another."""
        return "utf-8" if self.wide else codecs.lookup(self.encoding).name


@dataclass(frozen=True)
class Source:
    """One input file; `plain` is where its lines can be entered at any byte (itself, unless it had to be unpacked)."""

    path: str
    plain: str
    size: int  # bytes of `plain`
    sample: str  # a fingerprint of content, cheap enough for files of any size

    @cached_property
    def is_json(self) -> bool:
        """Whether every line is a JSON record."""
        name = self.path.lower()
        for ending in COMPRESSED:
            name = name.removesuffix(ending)
        return name.endswith((".jsonl", ".ndjson"))


@dataclass
class Tally:
    """What was mended, or with `on_bad=skip` passed over: reason -> how often.

    `prepares` is what `prepare_data` does: then its flags are among the remedies. Others read plain UTF-8 or the like.

    >>> tally = Tally(Reading(on_bad="skip"))
    >>> tally.bad("novel.txt", lambda: 3, "a NUL byte", "remove it")
    >>> dict(tally.skipped)
    {'a NUL byte': 1}
    """

    reading: Reading
    skipped: Counter[str] = field(default_factory=Counter)
    place: int = 0  # the byte of its source that reading has come to
    prepares: bool = True

    def bad(
        self,
        path: str,
        line: Callable[[], int | None],
        what: str,
        remedy: str,
        *,
        detail: str = "",
        flag: str | None = None,
    ) -> None:
        """Raise, or count; `line` is a function because counting lines up to here costs a pass over the file.

        `flag` is a remedy that only `prepare_data` has.
        """
        if self.reading.on_bad == "error":
            raise BadInput(path, line(), what + detail, f"{remedy}, or {flag}" if flag and self.prepares else remedy)
        self.skipped[what] += 1

    def mended(self, what: str) -> None:
        """Count what is no harm once it is known: the text is what it was meant to be.

        >>> tally = Tally(Reading())
        >>> tally.mended("a Windows line end (CR LF)")
        >>> dict(tally.skipped)
        {'a Windows line end (CR LF)': 1}
        """
        self.skipped[what] += 1


def find_files(patterns: Sequence[str], tally: Tally) -> list[str]:
    """Files that paths or globs name, each once, sorted within a glob.

    >>> find_files(["nowhere/*.txt"], Tally(Reading()))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    bert_elmo_jax.data.corpora.reading.BadInput: nowhere/*.txt: no file matches; check the path, and quote a glob: ...
    """
    found: dict[tuple[int, int], str] = {}  # by what the file is, not by how it was spelt
    for pattern in patterns:
        pattern = os.path.expanduser(pattern)  # noqa: PTH111 -- keeps the spelling
        names = [pattern] if os.path.lexists(pattern) else sorted(glob.glob(pattern, recursive=True))
        if not names:
            usual = "check the path, and quote a glob: --input='a/*.txt'" if tally.prepares else "check the path"
            raise BadInput(pattern, None, "no file matches", near_file(pattern).removeprefix("; ") or usual)
        for name in names:
            if Path(name).is_dir():
                inside = f"s in it: --input='{name.rstrip('/')}/*.txt'" if tally.prepares else " in it"
                tally.bad(name, lambda: None, "a folder, not a file", f"name the file{inside}")
            elif not Path(name).exists():
                tally.bad(name, lambda: None, "a link to nothing", "mend or remove it")
            elif not Path(name).is_file():
                tally.bad(name, lambda: None, "not a regular file", "write what it gives into a file first")
            elif name.lower().endswith(OTHER_FORMATS):
                tally.bad(name, lambda: None, f"{Path(name).suffix}, which is not read", "turn it into .txt or .jsonl")
            else:
                facts = Path(name).stat()
                found.setdefault((facts.st_dev, facts.st_ino), name)
    return list(found.values())


def describe(path: str, plain: str) -> Source:
    """A source with its size and a fingerprint of its head, middle and tail."""
    size = Path(plain).stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with open(plain, "rb") as raw:
        for at in sorted({0, max(0, size // 2 - 32768), max(0, size - 65536)}):
            raw.seek(at)
            digest.update(raw.read(65536))
    return Source(path, plain, size, digest.hexdigest()[:32])


def has_text(source: Source, tally: Tally) -> bool:
    """Whether there is anything but white space; a file without text is bad input."""
    remedy = "remove it from --input" if tally.prepares else "give one with text"
    if source.size == 0:
        tally.bad(source.path, lambda: None, "an empty file", remedy)
        return False
    with open(source.plain, "rb") as raw:
        while block := raw.read(BLOCK):
            if block.strip(b" \t\r\n\v\f"):
                return True
    tally.bad(source.path, lambda: None, "only blank lines", remedy)
    return False
