"""Read documents from text files, each as a stream of sentences; errors name the file and the line.

Reading can begin at any byte of a plain file, so many workers can share one large file. `unpack` makes other files
plain.
"""

import bisect
import codecs
import itertools
import json
import math
import random
import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from bert_elmo_jax.data.corpora.reading import BLOCK, Reading, Source, Tally, guess_encoding
from bert_elmo_jax.data.corpora.sentences import split_sentences

LINE_END = re.compile(r"\r\n|\r|\n")
SURROGATE = re.compile("[\ud800-\udfff]")
LONGEST_BLANK = 64  # bytes of a line of other white space than ASCII's


def iterate_lines(source: Source, start: int, tally: Tally) -> Iterator[tuple[int, bytes | None]]:
    """Yield (byte offset, line without its newline) for every line that begins at or after `start`.

    Lines longer than the limit are yielded as None.
    """
    limit = int(tally.reading.max_line_mb * (1 << 20))
    with open(source.plain, "rb") as raw:
        if start:  # the line of byte start - 1 belongs to the range before
            raw.seek(start - 1)
            _skip_line(raw)
        offset = raw.tell()
        while line := raw.readline(limit + 1):
            tally.place = offset
            if len(line) > limit and not line.endswith(b"\n"):
                yield offset, None
                offset += len(line) + _skip_line(raw)
            else:
                yield offset, line.removesuffix(b"\n")
                offset += len(line)


def _skip_line(raw: BinaryIO) -> int:
    """Read to the end of the line and return the number of bytes read."""
    start = raw.tell()
    while (block := raw.readline(BLOCK)) and not block.endswith(b"\n"):
        pass
    return raw.tell() - start


def line_number(source: Source, offset: int) -> int:
    """Return the number (from 1) of the line with byte `offset`; this reads the file and is used only in messages."""
    number, left = 1, offset
    with open(source.plain, "rb") as raw:
        while left > 0 and (block := raw.read(min(BLOCK, left))):
            number += block.count(b"\n")
            left -= len(block)
    return number


def decode_line(line: bytes | None, offset: int, source: Source, tally: Tally, *, breaks: bool = False) -> str | None:
    """Return the text of a line, or None if it is bad and skipped; with `breaks`, carriage returns are part of it."""
    encoding = find_encoding(source, tally.reading)
    breaks = breaks or source.is_json or source.rows  # white space of JSON, or line breaks of a text
    place = (tally, source, offset)
    if line is None:
        problem = f"a line of more than {tally.reading.max_line_mb:g} MB"
        _bad(*place, problem, "break it into lines", flag="raise --max_line_mb")
        return None
    if b"\0" in line:
        problem = f"a NUL, or invalid {tally.reading.encoding}" if tally.reading.wide else "a NUL byte"
        remedy = _wide_remedy(line, tally) or "remove it, give the right --encoding"
        _bad(*place, problem, remedy, flag="pass --on_bad=skip to leave such lines out")
        return None
    if offset == 0 and encoding.startswith("utf-8") and line.startswith(codecs.BOM_UTF8):
        if encoding == "utf-8":  # utf-8-sig expects the mark
            tally.count("a byte-order mark")
        line = line[len(codecs.BOM_UTF8) :]
    if line.endswith(b"\r") and not breaks:
        tally.count("a Windows line end (CR LF)")
        line = line.removesuffix(b"\r")
    if b"\r" in line and not breaks:
        flag = "pass --on_bad=skip to make it a space"
        _bad(*place, "a carriage return inside a line", "make it a line end", flag=flag)
        line = line.replace(b"\r", b" ")
    try:
        return line.decode("utf-8" if encoding == "utf-8-sig" else encoding)
    except UnicodeDecodeError as error:
        problem = "invalid UTF-8" if encoding.startswith("utf-8") else f"not {tally.reading.encoding}"
        detail = f" (byte {line[error.start]:#04x} at position {error.start + 1} of the line)"
        _bad(*place, problem, _wide_remedy(line, tally) or _encoding_remedy(line), detail, flag="--on_bad=skip")
        return None


def find_encoding(source: Source, reading: Reading) -> str:
    """Return the encoding of the lines of `source.plain`."""
    return "utf-8" if source.rows else reading.line_encoding


def _bad(tally: Tally, source: Source, offset: int, problem: str, remedy: str, detail: str = "", **flag: str) -> None:
    tally.bad(source.path, lambda: line_number(source, offset), problem, remedy, detail, **flag)


def _wide_remedy(line: bytes, tally: Tally) -> str | None:
    """Return a remedy if the line begins with a UTF-16 mark; only `prepare_data` reads UTF-16."""
    if line[:2] not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return None
    return f"it looks like UTF-16: {'pass --encoding=utf-16' if tally.prepares else 'save it as UTF-8'}"


def _encoding_remedy(line: bytes) -> str:
    if encoding := guess_encoding(line):
        return f"it reads as {encoding}: pass --encoding={encoding} if that is right"
    return "give the right --encoding"


def iterate_documents(source: Source, start: int, end: int, tally: Tally) -> Iterator[tuple[int, Iterator[str]]]:
    """Yield (byte offset, sentences) for every document that begins in bytes [start, end) of a source.

    A document belongs to the range that contains the start of the blank line before it (for the first document,
    byte 0), so ranges that cover a file yield every document exactly once. Consume the sentences before you advance to
    the next document: they are read from the file on demand, so long documents take no memory.
    """
    lines, encoding = iterate_lines(source, start, tally), find_encoding(source, tally.reading)
    if source.is_json or tally.reading.documents == "line":
        for offset, line in lines:
            if offset >= end:
                return
            if not is_blank(line, encoding) and (text := read_record(line, offset, source, tally)):
                yield offset, _split_text(text, tally.reading)
        return
    by_blank_line = source.rows or tally.reading.documents == "blank_line"
    if start:
        before = itertools.takewhile(lambda item: item[0] < end, lines)
        if not by_blank_line or not any(is_blank(line, encoding) for _, line in before):
            return
    done = False

    def next_line() -> tuple[int, str] | None:
        """Return the next line of the document, or None at its end."""
        nonlocal done
        for offset, line in lines:
            if is_blank(line, encoding):
                if by_blank_line:
                    done = offset >= end
                    return None
            elif text := decode_line(line, offset, source, tally):
                return offset, text
        done = True
        return None

    def sentences(opening: str) -> Iterator[str]:
        yield from _sentences(opening, tally.reading)
        while line := next_line():
            yield from _sentences(line[1], tally.reading)

    while not done:
        if first := next_line():
            yield first[0], sentences(first[1])


def iterate_sentences(source: Source, start: int, end: int, tally: Tally) -> Iterator[str]:
    """Yield the sentences of all lines that begin in bytes [start, end) of a source, across documents."""
    for offset, line in iterate_lines(source, start, tally):
        if offset >= end:
            return
        yield from _split_text(read_record(line, offset, source, tally) or "", tally.reading)


def iterate_sample(sources: Sequence[Source], reading: Reading, megabytes: float, seed: int) -> Iterator[str]:
    """Yield sentences from random stretches spread evenly over the sources, or all sentences if they fit."""
    tally = Tally(reading)
    sizes = [source.size * source.copies for source in sources]
    total, stretch = sum(sizes), 1 << 18
    stretches = max(1, int(megabytes * (1 << 20)) // stretch)
    if total <= stretches * stretch:
        for source in sources:
            for _ in range(int(source.copies)):
                yield from iterate_sentences(source, 0, source.size, tally)
            if share := source.copies % 1:  # of the sentences once more, evenly spread
                for n, sentence in enumerate(iterate_sentences(source, 0, source.size, tally)):
                    if math.ceil((n + 1) * share) > math.ceil(n * share):
                        yield sentence
        return
    coins = random.Random(seed)
    ends = list(itertools.accumulate(sizes))
    for k in range(stretches):
        place = int(k * total / stretches + coins.random() * (total / stretches - stretch))
        number, left = bisect.bisect_right(ends, place), stretch
        # Where a mixture repeats a source, stretches from it overlap.
        start = int((place - (ends[number] - sizes[number])) / sources[number].copies)
        while left > 0 and number < len(sources):  # a stretch may cover several small files
            end = min(start + left, sources[number].size)
            yield from iterate_sentences(sources[number], start, end, tally)
            number, left, start = number + 1, left - (end - start), 0


def is_blank(line: bytes | None, encoding: str = "utf-8") -> bool:
    """Return True if a line has only white space, which may be a no-break or an ideographic space.

    >>> is_blank(b" "), is_blank("\u3000".encode("cp949"), "cp949"), is_blank("강".encode())
    (True, True, False)
    """
    if line is None or line.isascii() or len(line) > LONGEST_BLANK:
        return line is not None and not line.strip()
    return not line.decode(encoding, "replace").strip()


def _sentences(text: str, reading: Reading) -> Sequence[str]:
    text = text.strip()
    if not text:
        return ()
    return split_sentences(text) if reading.split == "sentences" else (text,)


def _split_text(text: str, reading: Reading) -> Iterator[str]:
    return (sentence for part in LINE_END.split(text) for sentence in _sentences(part, reading))


def read_record(line: bytes | None, offset: int, source: Source, tally: Tally) -> str | None:
    """Return the text of a line or JSON record, or None if it is blank, or bad and skipped."""
    decoded = decode_line(line, offset, source, tally)
    if decoded is None or not decoded.strip():
        return None
    if not source.is_json:
        return decoded
    field = tally.reading.text_field
    place = (tally, source, offset)
    try:
        record = json.loads(decoded)
    except (ValueError, RecursionError) as error:
        _bad(*place, "not JSON", "write one JSON object per line", f" ({error})")
        return None
    if not isinstance(record, dict):
        _bad(
            *place, "a JSON record that is not an object", f'write {{"{field}": "…"}}', f" but {type(record).__name__}"
        )
    elif field not in record:
        has = ", ".join(map(repr, record)) or "no field at all"
        _bad(*place, f"no field {field!r}", f"name the field with {tally.column_flag}", f" (the record has {has})")
    elif not isinstance(text := record[field], str):
        problem, detail = f"field {field!r} is not text", f" but {type(text).__name__}"
        _bad(*place, problem, f"name a text field with {tally.column_flag}", detail)
    elif "\0" in text:
        _bad(*place, "a NUL character", "remove it", flag="pass --on_bad=skip to leave such records out")
    elif SURROGATE.search(text):
        _bad(*place, "a lone surrogate", "it is half a character: write the text out again", flag="pass --on_bad=skip")
    else:
        return text
    return None
