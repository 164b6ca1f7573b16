"""Reading a file of word vectors as a model, with fastText's binary files, whose n-grams give vectors to any word."""

import functools
import mmap
import re
import struct
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.families.static.config import StaticConfig
from bert_elmo_jax.text.vector_files import read_binary_vectors
from bert_elmo_jax.text.vectors import read_vectors
from bert_elmo_jax.text.words import WORD_SPECIALS, WordVocabulary
from bert_elmo_jax.weights.parameter_tree import Report

MAGIC = struct.pack("<i", 793_712_314)  # the first bytes of fastText's .bin
VERSIONS, MODELS = (11, 12), (1, 2, 3)  # of the format; cbow, skipgram and classifiers
LONGEST_WORD = 1 << 20  # bytes
LARGEST = 1e15  # of a number: the squares of a vector have a sum in float32
NUMBER = re.compile(r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?")


class VectorFile(NamedTuple):
    """The words and rows of a file; a table of fastText continues with the rows of its buckets."""

    words: tuple[str, ...]
    rows: Float32[np.ndarray, "N D"]
    fields: Mapping[str, Any] = MappingProxyType({})  # further fields of the configuration


def read_config(path: str | Path) -> StaticConfig:
    """Return the configuration of a file of vectors."""
    vocabulary, file = read_file(str(path), Path(path).stat().st_mtime_ns)
    try:
        return StaticConfig(len(vocabulary), file.rows.shape[1], **file.fields)
    except ValueError as error:
        read_file.cache_clear()
        raise ValueError(f"{path}: {error}") from None


def read_weights(path: str | Path, *, config: StaticConfig) -> tuple[dict[str, Any], Report]:
    """Return the table of vectors; the report has the vocabulary, with the three marks, whose vectors are zero."""
    vocabulary, file = read_file(str(path), Path(path).stat().st_mtime_ns)
    read_file.cache_clear()
    table = np.zeros((config.table_size, config.hidden_size), np.float32)
    places = {word: place for place, word in enumerate(file.words)}
    number = len(WORD_SPECIALS)
    table[number : len(vocabulary)] = file.rows[[places[word] for word in vocabulary.words[number:]]]
    table[len(vocabulary) :] = file.rows[len(file.words) :]
    if not max(table.max(), -table.min()) < LARGEST:  # NaN is not below it, either
        raise ValueError(f"{path} has NaN, infinity or numbers above {LARGEST:g} among its vectors; copy it again")
    report = Report(str(path), mapped={"encoder/embeddings/word": "vectors"}, extras={"vocabulary": vocabulary})
    return {"encoder": {"embeddings": {"word": table}}}, report


@functools.lru_cache(maxsize=1)  # for the configuration, and then for the weights
def read_file(path: str, changed: int) -> tuple[WordVocabulary, VectorFile]:
    """Return the vocabulary and the rows of a file, whose format its first bytes show.

    A file that has `changed` since the last call (a time) is read again.
    """
    del changed
    with open(path, "rb") as file:
        start = file.read(4)
    if start == MAGIC:
        vectors = read_fasttext(Path(path))
    elif Path(path).suffix.lower() == ".bin":
        read = read_binary_vectors(path)
        vectors = VectorFile(read.words, read.vectors)
    else:
        read = read_vectors(path, None)
        vectors = VectorFile(read.words, read.vectors)
        refuse_wider_lines(path, read.words, read.vectors.shape[1])
    words = [word for word in vectors.words if word not in WORD_SPECIALS]
    # Words with white space, such as some in GloVe's 840B, would not survive in files; inner spaces of Unicode do.
    spaced = {word for word in words if not word or word != word.strip() or set(word) & set(" \t\r\n")}
    words = [word for word in words if word not in spaced]
    if not words:
        raise ValueError(f"{path} has no vector of a word")
    if spaced:
        named = f"{len(spaced):,} words with white space are left out, such as {min(spaced)!r}"
        warnings.warn(f"{path}: {named}", stacklevel=2)
    if marks := [word for word in WORD_SPECIALS if word in vectors.words]:
        named = f"the vectors of {', '.join(marks)} are left out, because these marks have zeros here"
        warnings.warn(f"{path}: {named}", stacklevel=2)
    return WordVocabulary([*WORD_SPECIALS, *words], source=path), vectors


def refuse_wider_lines(path: str, words: Sequence[str], width: int) -> None:
    """Raise for a line with a number more than the others, which reads as a word that ends in a number."""
    wider = {word for word in words if " " in word and NUMBER.fullmatch(word.rpartition(" ")[2])}
    if wider:
        with open(path, encoding="utf-8", errors="replace") as lines:
            number = next(n for n, line in enumerate(lines, start=1) if line.rstrip().rsplit(" ", width)[0] in wider)
        raise ValueError(
            f"{path}:{number}: more than {width} numbers, expected {width} as in the other lines; correct or remove it"
        )


def read_fasttext(path: Path) -> VectorFile:
    """Read a .bin of fastText: the words, then the input rows of words and buckets."""
    # Mapped into memory, because the largest have 7 GB, and the second half, the output rows, is not read.
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    size, at = len(data), 4  # behind the magic number

    def take(layout: str) -> tuple[Any, ...]:
        nonlocal at
        values = struct.unpack_from(layout, data, at)
        at += struct.calcsize(layout)
        return values

    try:
        # dim, ws, epoch, minCount, neg, wordNgrams, loss, model, bucket, minn, maxn, lrUpdateRate; t
        version, width, *_, model, buckets, shortest, longest, _ = take("<13i")
        take("<d")
        _, count, labels, _, pruned = take("<3i2q")
        if version not in VERSIONS or model not in MODELS or width < 1 or count < 0 or (longest > 0 and buckets < 0):
            raise ValueError(
                f"{path} is no model of fastText: version {version}, kind {model}, width {width}, {count} words, "
                f"{buckets} buckets; copy it again"
            )
        words: list[str] = []
        for _ in range(count + labels):
            end = data.find(b"\0", at, at + LONGEST_WORD)
            if end < 0:
                raise ValueError(f"word {len(words) + 1:,} of {count:,} does not end")
            words.append(data[at:end].decode(errors="backslashreplace"))  # as gensim does
            at = end + 1
            take("<qb")
        if model == 3 or labels or pruned > 0 or take("<?")[0]:
            raise ValueError(f"{path} is a classifier or is compressed; vectors are read from uncompressed models")
        rows, columns = take("<2q")
        if columns != width or rows != count + buckets * (longest > 0):
            raise ValueError(f"{path} has {rows} rows of {columns}, expected {count} words and {buckets} buckets")
        table = np.frombuffer(data, "<f4", rows * columns, at).reshape(rows, columns)
        at += table.nbytes
        if at < size:
            _, rows, columns = take("<?2q")
            if at + 4 * rows * columns != size:
                raise ValueError(f"its last {size - at:,} bytes are no {rows} output rows of {columns}")
    except (struct.error, ValueError) as error:
        if str(path) in str(error):
            raise
        raise ValueError(f"{path} is no complete model of fastText ({error}); copy it again") from None
    # fastText reads 0 as 1.
    fields = {"method": "fasttext", "buckets": buckets, "shortest": shortest or 1, "longest": longest}
    return VectorFile(tuple(words), table, fields if longest > 0 and buckets > 0 else {})
