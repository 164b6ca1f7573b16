"""Reading word vectors from the text formats of GloVe, word2vec and fastText.

Each line holds a word and its numbers, separated by spaces; word2vec and fastText put a line with the number of
vectors and their width first. A word may contain spaces, as in GloVe's 840B, so numbers are split from the right.
Errors name the line. Only the numbers of requested words are parsed.
"""

import re
import unicodedata
import warnings
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.did_you_mean import near_file

SAMPLE = 100  # lines from which the width is determined
BYTES = 1 << 20  # the longest line of a text file of vectors
_PACKED = {b"PK\x03\x04": "unzip", b"\x1f\x8b": "gunzip", b"BZh": "bunzip2", b"\xfd7zXZ\0": "xz -d"}
_NUMBER = re.compile(rb"[-+]?\d*\.\d+([eE][-+]?\d+)?")  # not whole numbers, because "12" may be a word


class WordVectors(NamedTuple):
    """Words in file order and their vectors.

    A word that occurs more than once keeps its first vector; `repeated` counts the others. Words that are not UTF-8 are
    left out with a warning, if they are few.
    """

    words: tuple[str, ...]
    vectors: Float32[np.ndarray, "N D"]
    in_file: int
    repeated: int


def read_vectors(path: str | Path, words: Iterable[str] | None, *, most: int | None = None) -> WordVectors:
    r"""Read the vectors of `words`; of all words if None, or of the first `most` in the file.

    A decomposed word of the file, as macOS writes Hangul, is also found as one of `words` that is composed (NFC).

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "vectors.txt"
    >>> _ = file.write_text("3 2\n배 0.5 1\nNew York 2 3\n배 7 7\n", encoding="utf-8")
    >>> found = read_vectors(file, ["배", "New York", "강"])
    >>> found.words, found.vectors.tolist(), found.repeated
    (('배', 'New York'), [[0.5, 1.0], [2.0, 3.0]], 1)
    """
    path = Path(path)
    header, width = _layout(path)
    requested = None if words is None else {word.encode("utf-8", "replace") for word in words}
    line_of: dict[bytes, int] = {}
    vectors: list[Float32[np.ndarray, "D"]] = []
    count = repeated = 0
    for number, line in _lines(path, skip=header is not None):
        if requested is None and most is not None and count >= most:
            break
        count += 1
        word, *numbers = line.rsplit(b" ", width)
        if b"\t" in line and (len(numbers) < width or _NUMBER.fullmatch(word.rpartition(b"\t")[2])):
            raise _wrong(path, number, "a tab between a word and its numbers", "replace the tabs with spaces")
        if len(numbers) < width or not word:
            word, *numbers = line.split(b" ")
            problem = (
                f"{len(numbers)} number{'s'[: len(numbers) != 1]} behind {_shown(word)}, expected {width} as in the"
            )
            raise _wrong(
                path, number, f"{problem} other lines", "the file may be cut: copy it again, or remove the line"
            )
        if b" " in word and _NUMBER.fullmatch(word.rpartition(b" ")[2]):
            problem = (
                f"more than {width} numbers behind {_shown(word.split(b' ')[0])}, expected {width} as in the others"
            )
            raise _wrong(path, number, problem, "use a file whose vectors are all of one width")
        name = word
        if requested is not None and name not in requested:
            name = _compose(word)
            if name not in requested:
                continue
        if name in line_of:
            repeated += 1
            continue
        if line.rfind(b"_") >= len(word):  # Python reads 1_0 as 10
            cell = next(cell for cell in numbers if b"_" in cell)
            raise _wrong(path, number, f"{_shown(cell)} behind {_shown(word)}, expected a number", "correct the line")
        vectors.append(_numbers(path, number, word, numbers))
        line_of[name] = number
    if header is not None and header[0] != count and not (requested is None and most is not None):
        problem = f"its first line counts {header[0]:,} vectors, {count:,} follow"
        raise _wrong(path, 1, problem, "the file may be cut: copy it again, or correct the first line")
    names, places, broken = list[str](), list[int](), list[int]()
    for place, word in enumerate(line_of):
        try:
            names.append(word.decode())
            places.append(place)
        except UnicodeDecodeError:
            broken.append(place)
    if broken:
        word, number = list(line_of.items())[broken[0]]
        error = _wrong(path, number, f"{word[:40]!r} is not UTF-8", "convert the file to UTF-8 first")
        leave_out_broken(path, len(broken), len(line_of), error)
    array = np.stack([vectors[place] for place in places]) if places else np.zeros((0, width), np.float32)
    return WordVectors(tuple(names), array, count, repeated)


def leave_out_broken(path: Path, broken: int, words: int, error: ValueError) -> None:
    """Warn of words that are not UTF-8 and left out; raise the error if these are at least half of all words.

    word2vec.c cuts long words after a fixed number of bytes, which may be inside of a letter.
    """
    if 2 * broken >= words:
        raise error
    warnings.warn(f"{path}: {broken:,} of {words:,} words are left out, because they are not UTF-8", stacklevel=3)


def width_of(path: str | Path) -> int:
    r"""Return the width of the vectors in a file.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "vectors.txt"
    >>> _ = file.write_text(". . 0.5 1\n배 2 3\n배를 2 3\n", encoding="utf-8")
    >>> width_of(file)
    2
    """
    return _layout(Path(path))[1]


def refuse_packed(path: Path) -> None:
    """Raise for a file that is packed."""
    with open(path, "rb") as file:
        sign = file.read(6)
    for magic, tool in _PACKED.items():
        if sign.startswith(magic):
            raise ValueError(f"{path} is packed; unpack it with {tool}")


def _layout(path: Path) -> tuple[tuple[int, int] | None, int]:
    """Return the two numbers of word2vec's first line (None if there is no such line) and the width."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name the file of vectors in it")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file of vectors{near_file(path) or '; check the path'}")
    refuse_packed(path)
    lines = [line for _, line in islice(_lines(path), SAMPLE)]
    if not lines:
        raise ValueError(f"{path} is empty; expected a word and its numbers on each line")
    first = lines[0].split(b" ")
    if len(first) == 2 and all(cell.isdigit() and len(cell) < 20 for cell in first):
        counted, width = int(first[0]), int(first[1])
        # "12 3" may also be a word and its vector of one number; then the next line has two cells, too.
        if len(lines) == 1 or lines[1].count(b" ") != 1 or width == 1:
            if width < 1:
                raise _wrong(path, 1, "its first line says that a vector has 0 numbers", "copy the file again")
            return (counted, width), width
    [(width, _)] = Counter(line.count(b" ") for line in lines).most_common(1)
    if width < 1:
        problem = f"{_shown(lines[0][:40])}, expected a word and its numbers with spaces between"
        raise _wrong(path, 1, problem, "give a text file of vectors (GloVe, word2vec or fastText; no .bin)")
    return None, width


def _lines(path: Path, skip: bool = False) -> Iterator[tuple[int, bytes]]:
    """Yield the numbered lines, stripped on the right and without empty ones."""
    with open(path, "rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(BYTES), b""), start=1):
            if len(line) == BYTES:
                problem = f"a line of more than {BYTES:,} bytes"
                raise _wrong(
                    path, number, problem, "give a text file of vectors (GloVe, word2vec or fastText; no .bin)"
                )
            line = (line.removeprefix(BOM_UTF8) if number == 1 else line).rstrip(b" \r\n")
            if line and not (skip and number == 1):
                yield number, line


def _numbers(path: Path, number: int, word: bytes, cells: list[bytes]) -> Float32[np.ndarray, "D"]:
    try:
        vector = np.array(cells, np.float64)
    except ValueError:
        for cell in cells:
            try:
                float(cell)
            except ValueError:
                problem = f"{_shown(cell)} behind {_shown(word)}, expected a number"
                raise _wrong(path, number, problem, "correct or remove the line") from None
        raise
    with np.errstate(over="ignore"):
        single = vector.astype(np.float32)
    if not np.isfinite(single).all():
        raise _wrong(path, number, f"NaN or infinity in the vector of {_shown(word)}", "correct or remove the line")
    return single


def _compose(word: bytes) -> bytes:
    """Return a word composed (NFC), with bytes that are not UTF-8 as they are."""
    if word.isascii():
        return word
    return unicodedata.normalize("NFC", word.decode(errors="surrogateescape")).encode(errors="surrogateescape")


def _shown(cell: bytes) -> str:
    return repr(cell[:40].decode("utf-8", "replace"))


def _wrong(path: Path, number: int, problem: str, remedy: str) -> ValueError:
    return ValueError(f"{path}:{number}: {problem}; {remedy}")
