"""A fixed table of word vectors that belongs to a model, from a text file or saved with a run."""

import functools
import hashlib
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.files import read_array, read_json, write_json
from bert_elmo_jax.json_values import LIST
from bert_elmo_jax.text.vectors import read_vectors, width_of
from bert_elmo_jax.text.words import find_decomposed

PATTERNS = ("glove*.txt", "vectors.txt", "*.vec")  # names of text files with word vectors
SAVED = ("word_vectors.json", "word_vectors.npy")


class Table(NamedTuple):
    """Words with the places of their vectors; the array may be a file."""

    places: dict[str, int]
    vectors: Float32[np.ndarray, "N D"]


class WordTable:
    r"""One fixed vector per word; unknown words have zeros.

    The numbers are read at the first use, because a file may have millions of words.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "vectors.txt"
    >>> _ = file.write_text("배 0.5 1\nriver 2 3\n", encoding="utf-8")
    >>> WordTable(file).of(["배", "강가"]).tolist()
    [[0.5, 1.0], [0.0, 0.0]]
    """

    kind = "vectors"

    def __init__(self, source: str | Path):
        self.source = Path(source)
        saved = [self.source / name for name in SAVED]
        if self.source.is_dir() and not all(file.is_file() for file in saved):
            raise FileNotFoundError(f"{self.source} has no word vectors: it lacks {' or '.join(SAVED)}")
        if self.source.is_dir():
            self.width = _read_table(saved[1]).shape[1]
        else:
            self.width = width_of(self.source)

    @classmethod
    def find(cls, folder: str | Path, width: int) -> "WordTable | None":
        """Return the vectors of a width in a folder, None if there is no file; raise if there are several.

        A single file is returned even if it has another width.
        """
        folder = Path(folder)
        if all((folder / name).is_file() for name in SAVED):
            return cls(folder)
        files = sorted({file for pattern in PATTERNS for file in folder.glob(pattern) if file.is_file()})
        if len(files) > 1:
            fitting = [file for file in files if width_of(file) == width]
            if len(fitting) != 1:
                listed = ", ".join(file.name for file in files)
                which = f"{len(fitting) or 'none'} of them with vectors of {width} numbers"
                raise ValueError(f"{folder} has {len(files)} files of word vectors, {which}: {listed}; leave one there")
            files = fitting
        return cls(files[0]) if files else None

    @functools.cached_property
    def table(self) -> Table:
        """All words and vectors."""
        if not self.source.is_dir():
            read = read_vectors(self.source, None)
            return Table({word: place for place, word in enumerate(read.words)}, read.vectors)
        words = read_json(self.source / SAVED[0], default={}, fields={"words": LIST}).get("words", [])
        vectors = _read_table(self.source / SAVED[1])
        if len(words) != len(vectors):
            raise ValueError(f"{self.source} has {len(vectors)} vectors for {len(words)} words; copy it again")
        return Table({word: place for place, word in enumerate(words)}, vectors)

    @functools.cached_property
    def _decomposed(self) -> dict[str, int]:
        return find_decomposed(self.table.places)

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash of words and vectors."""
        sums = hashlib.sha256("\n".join(self.table.places).encode("utf-8", "surrogatepass"))
        sums.update(np.ascontiguousarray(self.table.vectors).data)
        return sums.hexdigest()

    def of(self, words: Sequence[str]) -> Float32[np.ndarray, "N D"]:
        """Return the vectors of words, found also composed (NFC); zeros for unknown ones."""
        vectors = np.zeros((len(words), self.width), np.float32)
        for n, word in enumerate(words):
            place = self.table.places.get(word)
            if place is None:
                composed = unicodedata.normalize("NFC", word)
                place = self.table.places.get(composed, self._decomposed.get(composed))
            if place is not None:
                vectors[n] = self.table.vectors[place]
        return vectors

    def save(self, folder: str | Path) -> None:
        """Write words and vectors to a folder, from which `WordTable` reads them back without parsing."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / SAVED[1], self.table.vectors)
        write_json(folder / SAVED[0], {"words": list(self.table.places)})


def _read_table(file: Path) -> np.ndarray:
    array: np.ndarray = read_array(file, mapped=True)
    if array.ndim != 2 or array.dtype.kind != "f":
        raise ValueError(f"{file} holds {array.dtype} of shape {list(array.shape)}, no table of vectors: copy it again")
    return array
