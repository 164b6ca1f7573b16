"""Writing word vectors as text, and word2vec's binary format, read and written.

Text of word2vec and fastText (`.vec`) has a first line with the number of vectors and their width; GloVe's has none.
The binary format has the same first line, then each word, a space, its numbers in little-endian float32, and a line
break. `text/vectors.py` reads text.
"""

import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.files import write_bytes
from bert_elmo_jax.text.vectors import BYTES, WordVectors, leave_out_broken, refuse_packed

VectorFormat = Literal["word2vec", "glove", "binary"]


def write_vectors(
    path: str | Path, words: Sequence[str], vectors: Float32[np.ndarray, "N D"], format: VectorFormat = "word2vec"
) -> None:
    """Write words and their vectors: as text with word2vec's first line, as GloVe's text, or as word2vec's binary.

    Text has as many digits as a float32 needs, so reading it gives the same numbers.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "vectors.txt"
    >>> write_vectors(file, ["배", "sea"], np.array([[0.5, 1], [2, 3]], np.float32))
    >>> file.read_text(encoding="utf-8").splitlines()
    ['2 2', '배 0.5 1.0', 'sea 2.0 3.0']
    """
    if format not in get_args(VectorFormat):
        names = get_args(VectorFormat)
        raise ValueError(
            f"format={format!r} is not known; it is one of {', '.join(names)}{did_you_mean(format, names)}"
        )
    binary = format == "binary"
    if split := [word for word in words if not word or (set(word) & set(" \n" if binary else " \n\r\t"))]:
        raise ValueError(f"{split[0]!r} is empty or has white space, which separates words in {path}: leave it out")
    vectors = np.asarray(vectors, "<f4")
    parts = [] if format == "glove" else [f"{len(words)} {vectors.shape[1]}\n".encode()]
    for word, row in zip(words, vectors):
        if binary:
            parts.append(word.encode() + b" " + row.tobytes() + b"\n")
        else:
            parts.append(f"{word} {' '.join(map(str, row))}\n".encode())
    write_bytes(Path(path), b"".join(parts))


def read_binary_vectors(path: str | Path) -> WordVectors:
    """Read word2vec's binary format; errors name the word.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "vectors.bin"
    >>> write_vectors(file, ["배", "sea"], np.array([[0.5, 1], [2, 3]], np.float32), "binary")
    >>> read_binary_vectors(file).vectors.tolist()
    [[0.5, 1.0], [2.0, 3.0]]
    """
    path = Path(path)
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty; expected word2vec's binary format")
    refuse_packed(path)
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    header, _, _ = data[:64].partition(b"\n")
    cells = header.split()
    if len(cells) != 2 or not all(cell.isdigit() for cell in cells):
        raise ValueError(
            f"{path} begins with {header[:40]!r}; expected the number of vectors and their width, as in word2vec's "
            "binary format"
        )
    count, width = map(int, cells)
    if _is_text(data[len(header) + 1 : len(header) + 1 + BYTES].partition(b"\n")[0].rstrip(), width):
        raise ValueError(
            f"{path} is text, expected word2vec's binary format of a .bin: give it the ending .vec or .txt"
        )
    if width < 1 or count * (4 * width + 2) > len(data):
        raise ValueError(
            f"{path}: its first line promises {count:,} vectors of {width:,} numbers, more than its {len(data):,} "
            "bytes hold; the file may be cut: copy it again"
        )
    vectors, places, at, repeated = np.empty((count, width), np.float32), dict[str, int](), len(header) + 1, 0
    broken, first_error = 0, ValueError()  # words that are not UTF-8
    for number in range(1, count + 1):
        end = data.find(b" ", at)
        if end < 0 or end + 1 + 4 * width > len(data):
            if broken:
                raise first_error
            raise ValueError(f"{path} ends in vector {number:,} of {count:,}; the file may be cut: copy it again")
        word_bytes, row = data[at:end].lstrip(b"\n"), np.frombuffer(data[end + 1 : end + 1 + 4 * width], "<f4")
        at = end + 1 + 4 * width
        try:
            word = word_bytes.decode()
        except UnicodeDecodeError:
            if not broken:
                first_error = ValueError(
                    f"{path}: the word of vector {number:,}, {word_bytes[:40]!r}, is not UTF-8; the width in the first "
                    "line may be wrong, or convert the file first"
                )
            broken += 1
            continue
        if not np.isfinite(row).all():
            raise ValueError(f"{path}: NaN or infinity in the vector of {word[:40]!r}, number {number:,}")
        if word in places:
            repeated += 1
            continue
        vectors[len(places)] = row
        places[word] = len(places)
    if len(data) - at > 64 or data[at:].strip(b"\n"):
        raise ValueError(
            f"{path}: {len(data) - at:,} bytes follow the {count:,} vectors that its first line counts; copy it again"
        )
    if broken:
        leave_out_broken(path, broken, count, first_error)
    return WordVectors(tuple(places), vectors[: len(places)], count, repeated)


def _is_text(line: bytes, width: int) -> bool:
    r"""Return True for a word and its numbers in text.

    >>> _is_text(b"sea 0.5 1", 2), _is_text(b"sea \0\0\0? \0\0\0", 2)
    (True, False)
    """
    if not 0 < width <= line.count(b" "):
        return False
    try:
        np.array(line.rsplit(b" ", width)[1:], np.float64)
    except ValueError:
        return False
    return True
