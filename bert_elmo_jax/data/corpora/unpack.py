"""Unpack compressed and UTF-16 files to plain lines, so that workers can begin to read at any byte.

Line numbers stay the same, so messages refer to the original file.
"""

import bz2
import codecs
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import zstandard

from bert_elmo_jax.data.corpora.reading import BLOCK, COMPRESSED, BadInput, Reading, Tally
from bert_elmo_jax.files import open_atomically

# A file may unpack to SMALL_UNPACKED bytes, or to MOST_PACKED times its own size if that is more.
SMALL_UNPACKED, MOST_PACKED = 1 << 28, 200
PORTION = 1 << 10  # bytes of Zstandard that are unpacked at once; 64 MB of zeros have so few
LARGEST_WINDOW = 1 << 31  # bytes of Zstandard's window; that of `zstd --long=31`
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError)  # and OSError without a number


def needs_unpacking(path: str, reading: Reading) -> bool:
    """Return True if a file is compressed, or if a newline byte in it may be half a character."""
    return path.lower().endswith(COMPRESSED) or reading.wide


def raw_blocks(path: str) -> Iterator[bytes]:
    """Yield the bytes of a file, decompressed by its ending.

    Raise EOFError if the compressed stream is cut off, and BadInput if it unpacks to more than a text could.
    """
    size, most = 0, max(SMALL_UNPACKED, MOST_PACKED * Path(path).stat().st_size)
    for block in _all_blocks(path):
        if (size := size + len(block)) > most and path.lower().endswith(COMPRESSED):
            problem = f"more than {MOST_PACKED} times as large when unpacked, which no text is"
            raise BadInput(path, None, problem, "copy it again, or unpack it and look into it")
        yield block


def _all_blocks(path: str) -> Iterator[bytes]:
    name = path.lower()
    if name.endswith(".zst"):
        yield from _zstd_blocks(path)
        return
    openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
    with openers.get(Path(name).suffix, open)(path, "rb") as raw:
        while block := raw.read1(BLOCK):  # `read` would lose what it has unpacked before damage
            yield block


def _zstd_blocks(path: str) -> Iterator[bytes]:
    """Decompress frame by frame; the library's stream reader does not raise on a truncated file."""
    with open(path, "rb") as raw:
        decompressor = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
        frame, pending, complete = decompressor.decompressobj(), b"", True
        while block := pending or raw.read(PORTION):
            yield frame.decompress(block)
            pending, complete = frame.unused_data, frame.eof
            if frame.eof:
                frame = decompressor.decompressobj()
    if not complete:
        raise EOFError("the last frame is incomplete")


# Invalid characters become NUL, which the reader of the line reports or counts.
codecs.register_error("nul", lambda error: ("\0", error.end))  # type: ignore[attr-defined]


def unpack(path: str, target: Path, tally: Tally) -> None:
    """Write a compressed or wide-encoded file as plain lines to `target`, which appears only when it is complete."""
    decoder = codecs.getincrementaldecoder(tally.reading.encoding)("nul") if tally.reading.wide else None
    lines = 0

    def damaged(error: Exception) -> None:
        problem = "a damaged or truncated compressed file"
        remedy = "copy or download it again, or pass --on_bad=skip to use its readable part"
        tally.bad(path, lambda: lines + 1, problem, remedy, f" ({error})")

    with open_atomically(target) as out:
        try:
            for block in raw_blocks(path):
                plain = decoder.decode(block).encode("utf-8", "nul") if decoder else block
                lines += plain.count(b"\n")
                out.write(plain)
            if decoder:
                out.write(decoder.decode(b"", final=True).encode("utf-8", "nul"))
        except DAMAGED as error:
            damaged(error)
        except OSError as error:
            if error.errno is not None:  # a disk error; for bad data, gzip and bz2 raise OSError without a number
                raise
            damaged(error)
