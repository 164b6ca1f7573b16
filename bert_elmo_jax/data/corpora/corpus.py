"""Files of text -> documents, a document being a stream of sentences; what cannot be read is named by file and line.

A plain file is entered at any byte, so one large file is read by many workers; `unpack` makes the others plain.
"""

import bisect
import codecs
import itertools
import json
import random
import re
from collections.abc import Iterator, Sequence

from bert_elmo_jax.data.corpora.reading import BLOCK, Reading, Source, Tally
from bert_elmo_jax.data.corpora.sentences import split_sentences

LINE_END = re.compile(r"\r\n|\r|\n")
SURROGATE = re.compile("[\ud800-\udfff]")


def iterate_lines(source: Source, start: int, tally: Tally) -> Iterator[tuple[int, bytes | None]]:
    """(byte offset, line without its newline) of every line that begins at or after `start`; None for one too long."""
    limit = int(tally.reading.max_line_mb * (1 << 20))
    with open(source.plain, "rb") as raw:
        offset = start
        if start:  # the line that byte start - 1 belongs to is somebody else's
            raw.seek(start - 1)
            while True:
                block = raw.read(BLOCK)
                end = block.find(b"\n")
                if end >= 0 or not block:
                    break
                offset += len(block)
            if not block:
                return
            offset += end  # start - 1 + end + 1
            rest = block[end + 1 :]
        else:
            rest = b""
        skipping = False  # inside a line that is too long
        while True:
            block = raw.read(BLOCK)
            *lines, last = (rest + block).split(b"\n")
            if not block and last:
                lines, last = [*lines, last], b""
            for line in lines:
                tally.place = offset
                if not skipping:
                    yield offset, line if len(line) <= limit else None
                skipping = False
                offset += len(line) + 1
            if not block:
                return
            rest = last
            if len(rest) > limit:
                if not skipping:
                    yield offset, None
                skipping = True
                offset, rest = offset + len(rest), b""


def line_number(source: Source, offset: int) -> int:
    """The number (from 1) of the line that holds byte `offset`; a pass over the file, made only for messages."""
    number, left = 1, offset
    with open(source.plain, "rb") as raw:
        while left > 0 and (block := raw.read(min(BLOCK, left))):
            number += block.count(b"\n")
            left -= len(block)
    return number


def decode_line(line: bytes | None, offset: int, source: Source, tally: Tally) -> str | None:
    """The text of a line; None where it is bad and skipped."""
    encoding = tally.reading.line_encoding
    here = (tally, source, offset)
    if line is None:
        what = f"a line of more than {tally.reading.max_line_mb:g} MB"
        _bad(*here, what, "break it into lines", flag="raise --max_line_mb")
        return None
    if b"\0" in line:
        what = f"a NUL, or what is not {tally.reading.encoding}" if tally.reading.wide else "a NUL byte"
        remedy = _wide_remedy(line, tally) or "remove it, give the right --encoding"
        _bad(*here, what, remedy, flag="pass --on_bad=skip to leave such lines out")
        return None
    if offset == 0 and encoding.startswith("utf-8") and line.startswith(codecs.BOM_UTF8):
        if encoding == "utf-8":  # not announced
            tally.mended("a byte-order mark")
        line = line[len(codecs.BOM_UTF8) :]
    if line.endswith(b"\r") and not source.is_json:
        tally.mended("a Windows line end (CR LF)")
        line = line.removesuffix(b"\r")
    if b"\r" in line and not source.is_json:  # in JSON it is white space like any other
        _bad(
            *here, "a carriage return inside a line", "make it a line end", flag="pass --on_bad=skip to make it a space"
        )
        line = line.replace(b"\r", b" ")
    try:
        return line.decode("utf-8" if encoding == "utf-8-sig" else encoding)
    except UnicodeDecodeError as error:
        what = "invalid UTF-8" if encoding.startswith("utf-8") else f"not {tally.reading.encoding}"
        _bad(
            *here,
            what,
            _wide_remedy(line, tally) or _encoding_remedy(line),
            f" (byte {line[error.start]:#04x} at place {error.start + 1} of the line)",
            flag="--on_bad=skip",
        )
        return None


def _bad(
    tally: Tally, source: Source, offset: int, what: str, remedy: str, detail: str = "", flag: str | None = None
) -> None:
    tally.bad(source.path, lambda: line_number(source, offset), what, remedy, detail=detail, flag=flag)


def _wide_remedy(line: bytes, tally: Tally) -> str | None:
    """What to do about UTF-16, where the line begins with its mark: only `prepare_data` reads that."""
    if line[:2] not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return None
    return f"it looks like UTF-16: {'pass --encoding=utf-16' if tally.prepares else 'save it as UTF-8'}"


def _encoding_remedy(line: bytes) -> str:
    """A guess at the encoding: UTF-8, then the Korean code page if it gives Hangul."""
    for encoding, sign in (("utf-8", "[^\\x00-\\x7f]"), ("cp949", "[가-힣]{2}"), ("cp1252", "[^\\x00-\\x7f]")):
        try:
            if re.search(sign, line.decode(encoding)):
                return f"it reads as {encoding}: pass --encoding={encoding} if that is right"
        except UnicodeDecodeError:
            continue
    return "give the right --encoding"


def iterate_documents(source: Source, start: int, end: int, tally: Tally) -> Iterator[tuple[int, Iterator[str]]]:
    """(place, sentences) of every document that begins in bytes [start, end) of a source.

    A document belongs to the range in which the blank line before it starts (the first one: to byte 0), so ranges that
    cover a file give every document once. Sentences are consumed before the next document is asked for: a document of
    any length needs no memory.
    """
    lines = iterate_lines(source, start, tally)
    if source.is_json:
        for offset, line in lines:
            if offset >= end:
                return
            if text := _record_text(line, offset, source, tally):
                yield offset, (s for part in LINE_END.split(text) for s in _sentences(part, tally.reading))
        return
    if tally.reading.documents == "line":
        for offset, line in lines:
            if offset >= end:
                return
            if (line is None or line.strip()) and (text := decode_line(line, offset, source, tally)):
                yield offset, iter(_sentences(text, tally.reading))
        return
    by_blank_line = tally.reading.documents == "blank_line"
    if start and (not by_blank_line or not _skip_to_blank(lines, end)):
        return
    done = False
    first: tuple[int, str] | None = None

    def next_line() -> tuple[int, str] | None:
        """The next line of the document, None at its end."""
        nonlocal done
        for offset, line in lines:
            if (
                line is not None and not line.strip()
            ):  # blank as bytes, here and where a range begins, or the two would not meet
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
        first = next_line()
        if first:
            yield first[0], sentences(first[1])


def iterate_sentences(source: Source, start: int, end: int, tally: Tally) -> Iterator[str]:
    """The sentences of all lines that begin in bytes [start, end) of a source, whatever document they are of."""
    for offset, line in iterate_lines(source, start, tally):
        if offset >= end:
            return
        read = _record_text if source.is_json else decode_line
        for part in LINE_END.split(read(line, offset, source, tally) or ""):
            yield from _sentences(part, tally.reading)


def iterate_sample(sources: Sequence[Source], reading: Reading, megabytes: float, seed: int) -> Iterator[str]:
    """Sentences from seeded stretches spread evenly over the sources; all sentences where they are few enough."""
    tally = Tally(reading)
    total, stretch = sum(source.size for source in sources), 1 << 18
    stretches = max(1, int(megabytes * (1 << 20)) // stretch)
    if total <= stretches * stretch:
        for source in sources:
            yield from iterate_sentences(source, 0, source.size, tally)
        return
    coins = random.Random(seed)
    ends = list(itertools.accumulate(source.size for source in sources))
    for k in range(stretches):
        place = int(k * total / stretches + coins.random() * (total / stretches - stretch))
        number, left = bisect.bisect_right(ends, place), stretch
        start = place - (ends[number] - sources[number].size)
        while left > 0 and number < len(sources):  # on through the files that follow, where files are small
            end = min(start + left, sources[number].size)
            yield from iterate_sentences(sources[number], start, end, tally)
            number, left, start = number + 1, left - (end - start), 0


def _skip_to_blank(lines: Iterator[tuple[int, bytes | None]], end: int) -> bool:
    """Whether a blank line starts before `end`; if so, it has been read."""
    for offset, line in lines:
        if offset >= end:
            return False
        if line is not None and not line.strip():
            return True
    return False


def _sentences(text: str, reading: Reading) -> Sequence[str]:
    text = text.strip()
    if not text:
        return ()
    return split_sentences(text) if reading.split == "sentences" else (text,)


def _record_text(line: bytes | None, offset: int, source: Source, tally: Tally) -> str | None:
    """The text of a JSON record; None where the line is blank, or bad and skipped."""
    decoded = decode_line(line, offset, source, tally)
    if decoded is None or not decoded.strip():
        return None
    wanted = tally.reading.text_field

    here = (tally, source, offset)
    try:
        record = json.loads(decoded)
    except (ValueError, RecursionError) as error:
        _bad(*here, "not JSON", "a .jsonl file holds one JSON object a line", f" ({error})")
        return None
    if not isinstance(record, dict):
        _bad(*here, "a JSON record that is no object", f'write {{"{wanted}": "…"}}', f" but {type(record).__name__}")
    elif wanted not in record:
        has = ", ".join(map(repr, record)) or "no field at all"
        _bad(*here, f"no field {wanted!r}", "name the field with --text_field", f" (the record has {has})")
    elif not isinstance(text := record[wanted], str):
        _bad(
            *here, f"field {wanted!r} is not text", "name a text field with --text_field", f" but {type(text).__name__}"
        )
    elif "\0" in text:
        _bad(*here, "a NUL character", "remove it", flag="pass --on_bad=skip to leave such records out")
    elif SURROGATE.search(text):
        _bad(*here, "a lone surrogate", "it is half a character: write the text out again", flag="pass --on_bad=skip")
    else:
        return text
    return None
