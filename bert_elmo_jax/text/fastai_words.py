"""The words of a language model of fastai, in lower case and with marks such as `xxbos`."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int32

from bert_elmo_jax.files import write_json

UNK, PAD, BOS, EOS = "xxunk", "xxpad", "xxbos", "xxeos"
LEGACY = {"_unk_": UNK, "_pad_": PAD}  # the names in files of fastai 0.7
FILLER = "xxfake"  # repeated at the end, to make the size a multiple of 8


class FastaiVocabulary:
    """The words of a fastai language model: `xxunk`, `xxpad`, `xxbos`, …, then the others by frequency.

    A text begins with `xxbos`, if there is such a word. fastai writes words in lower case, after marks such as `xxmaj`;
    here a word that is not in the list is looked up in lower case, without the mark.

    >>> words = FastaiVocabulary(["xxunk", "xxpad", "xxbos", "the", "bank"])
    >>> words.ids(["The", "bank", "unheard"]).tolist(), words.bos_id
    ([3, 4, 0], 2)
    """

    kind = "fastai"
    rule = None  # of `split_words`: unknown
    counts = None

    def __init__(self, words: Sequence[str], source: str = "this list"):
        self.words = tuple(LEGACY.get(word, word) for word in words)
        self.vocab_size = len(self.words)
        index = {word: number for number, word in reversed(list(enumerate(self.words)))}  # fillers have the first id
        repeated = [word for word, count in Counter(self.words).items() if count > 1 and word != FILLER]
        if UNK not in index:
            raise ValueError(
                f"{source} has no {UNK} among its {len(words):,} words: it is no vocabulary of fastai. Expected a list "
                f"such as {UNK}, {PAD}, {BOS}, …"
            )
        if repeated:
            raise ValueError(f"{source} has repeated words: {', '.join(map(repr, repeated[:5]))}; each has one id")
        self.unk_id = index[UNK]
        self.pad_id = index.get(PAD)
        self.bos_id, self.eos_id = index.get(BOS), index.get(EOS)
        self._index = index
        self.fingerprint = hashlib.sha256("\n".join(self.words).encode("utf-8", "surrogatepass")).hexdigest()

    def ids(self, words: Sequence[str]) -> Int32[np.ndarray, "N"]:
        """Return the id of each word, found also in lower case; `xxunk` for unknown ones."""
        find, unk = self._index.get, self.unk_id
        numbers = (number if (number := find(word)) is not None else find(word.lower(), unk) for word in words)
        return np.fromiter(numbers, np.int32, len(words))

    def save(self, folder: str | Path) -> None:
        """Write `itos.json`."""
        write_json(Path(folder) / "itos.json", list(self.words))

    def __len__(self) -> int:
        return self.vocab_size

    def __contains__(self, word: str) -> bool:
        return word in self._index
