"""The words that a task's network knows, and what stands for those that it does not.

A word has a row of its own in the table of vectors if it has a pretrained one, or was seen five times. For all others
there is one of five ways (`Unknown`):

- `unk`: they share one vector, `<UNK>`.
- `classes`: those of a class (`word_classes`: numbers, capitals, suffixes, Korean endings) share one.
- `characters`: they share one, and the network reads their characters.
- `vectors`: a word first met later has its pretrained vector; the lexicon keeps the file's for that.
- `random`: each has a vector of its own, drawn from a hash of the word: the same word has the same vector, in a
  question as in its context, and nothing is stored.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float32, Int32

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.files import read_json, write_json
from bert_elmo_jax.text.vectors import WordVectors
from bert_elmo_jax.text.word_classes import CLASSES, word_class
from bert_elmo_jax.text.words import UNK_WORD

Unknown = Literal["unk", "classes", "characters", "vectors", "random"]
OFTEN = 5  # times that a word is seen to have a row of its own
KEPT = 500_000  # vectors of a file that `vectors` keeps: the most frequent words, as such files are in that order
NEW = -1  # the number of a word that brings its vector along


class Lexicon:
    """Words and their numbers: 0 is `<UNK>`, then come the classes if there are any, then the words.

    >>> lexicon = Lexicon(["배", "river"], "classes", width=4)
    >>> lexicon.ids(["river", "1999", "강가에서"]).tolist() == [len(lexicon) - 1, 1, 1 + CLASSES.index("~에서")]
    True
    >>> random = Lexicon(["배"], "random", width=4)
    >>> ids = random.ids(["강", "배", "강"])
    >>> vectors = random.vectors(["강", "배", "강"])
    >>> ids.tolist(), bool((vectors[0] == vectors[2]).all()), vectors[1].tolist()
    ([-1, 1, -1], True, [0.0, 0.0, 0.0, 0.0])
    """

    kind = "lexicon"

    def __init__(
        self,
        words: Sequence[str],
        unknown: Unknown,
        width: int,
        *,
        seed: int = 0,
        scale: float | None = None,
        later: WordVectors | None = None,
    ):
        if unknown not in get_args(Unknown):
            known = get_args(Unknown)
            hint = did_you_mean(unknown, known)
            raise ValueError(f"unknown={unknown!r} is not known; it is one of {', '.join(known)}{hint}")
        if (unknown == "vectors") != (later is not None):
            raise ValueError(f"unknown={unknown!r}: a file of vectors belongs to 'vectors', and to nothing else")
        if later is not None and later.vectors.shape[1:] != (width,):
            raise ValueError(f"vectors of {later.vectors.shape[1]} numbers were given for words of {width}")
        if len(set(words)) < len(words):
            raise ValueError("a word stands in the list more than once; give each once")
        self.words, self.unknown, self.width, self.seed = tuple(words), unknown, width, seed
        self.scale = width**-0.5 if scale is None else scale
        self.specials = (UNK_WORD, *(f"<{name}>" for name in CLASSES)) if unknown == "classes" else (UNK_WORD,)
        self._later = later
        self._numbers = {word: number for number, word in enumerate(self.words, start=len(self.specials))}
        self._classes = {name: number for number, name in enumerate(CLASSES, start=1)}
        self._places = {} if later is None else {word: place for place, word in enumerate(later.words)}

    @classmethod
    def build(
        cls,
        counts: Mapping[str, int],
        unknown: Unknown,
        width: int,
        *,
        known: WordVectors | None = None,
        tuned: bool = True,
        seed: int = 0,
        later: WordVectors | None = None,
    ) -> "Lexicon":
        """The lexicon of training data, from how often each word was seen; the most frequent first.

        `known` are pretrained vectors of these words. Where vectors are not `tuned`, a word without one would keep what
        was drawn for it, and so has no row.

        >>> known = WordVectors(("강",), np.ones((1, 2), np.float32), 1, 0)
        >>> Lexicon.build({"배": 7, "강": 1, "눈": 1}, "unk", 2, known=known).words
        ('배', '강')
        >>> Lexicon.build({"배": 7, "강": 1, "눈": 1}, "unk", 2, known=known, tuned=False).words
        ('강',)
        """
        there = places_of(list(counts), known)
        kept = [
            word
            for word, place in zip(counts, there)
            if place >= 0 or (counts[word] >= OFTEN and (tuned or known is None))
        ]
        kept.sort(key=lambda word: (-counts[word], word))
        scale = float(known.vectors.std()) or None if known is not None and len(known.words) else None
        return cls(kept, unknown, width, seed=seed, scale=scale, later=later)

    def __len__(self) -> int:
        return len(self.specials) + len(self.words)

    @property
    def brings_vectors(self) -> bool:
        """Whether some words' vectors are not in the table but come along with the text."""
        return self.unknown in ("vectors", "random")

    def ids(self, words: Sequence[str]) -> Int32[np.ndarray, "N"]:
        """The number of each word's vector; `NEW` of those that `vectors` has one for."""
        return np.fromiter((self._id(word) for word in words), np.int32, len(words))

    def vectors(self, words: Sequence[str]) -> Float32[np.ndarray, "N D"]:
        """The vectors that new words bring along; zeros for the others."""
        found = np.zeros((len(words), self.width), np.float32)
        new = [(n, word) for n, word in enumerate(words) if self._id(word) == NEW]
        drawn: dict[str, Float32[np.ndarray, "D"]] = {}
        for n, word in new:
            if word not in drawn:
                drawn[word] = self._new(word)
            found[n] = drawn[word]
        return found

    def table(self, known: WordVectors | None = None) -> tuple[Float32[np.ndarray, "S D"], Float32[np.ndarray, "V D"]]:
        """The vectors to begin with, of the specials and of the words: those that are known, the others drawn.

        >>> specials, words = Lexicon(["배"], "unk", 2).table(WordVectors(("배",), np.ones((1, 2), np.float32), 1, 0))
        >>> specials.shape, words.tolist()
        ((1, 2), [[1.0, 1.0]])
        """
        specials, words = (self._drawn(names) for names in (self.specials, self.words))
        if known is not None:
            for n, place in enumerate(places_of(self.words, known)):
                if place >= 0:
                    words[n] = known.vectors[place]
        return specials, words

    @property
    def fingerprint(self) -> str:
        """What names the lexicon: the same for the same numbers and vectors."""
        sums = hashlib.sha256(json.dumps(self._facts(), ensure_ascii=True).encode())
        if self._later is not None:
            sums.update("\n".join(self._later.words).encode("utf-8", "replace"))
            sums.update(np.ascontiguousarray(self._later.vectors).data)
        return sums.hexdigest()

    def save(self, folder: str | Path) -> None:
        """Write it into a folder; `lexicon.json` comes last."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if self._later is not None:
            np.save(folder / "vectors.npy", self._later.vectors)
            write_json(folder / "vectors.json", {"words": list(self._later.words)}, indent=2)
        write_json(folder / "lexicon.json", self._facts(), indent=2)

    @classmethod
    def load(cls, folder: str | Path) -> "Lexicon":
        """Read one that was saved; kept vectors stay on the disk until a word needs its own."""
        folder = Path(folder)
        facts = read_json(folder / "lexicon.json", default={})
        if not facts:
            raise FileNotFoundError(f"there is no lexicon.json in {folder}; copy the folder again from the run")
        try:
            later = None
            if facts["unknown"] == "vectors":
                names = tuple(read_json(folder / "vectors.json", default={})["words"])
                later = WordVectors(names, np.load(folder / "vectors.npy", mmap_mode="r"), len(names), 0)
                if len(later.vectors) != len(names):
                    raise ValueError(f"vectors.npy has {len(later.vectors)} rows for {len(names)} words")
            return cls(
                facts["words"], facts["unknown"], facts["width"], seed=facts["seed"], scale=facts["scale"], later=later
            )
        except (KeyError, TypeError, OSError, ValueError, EOFError) as error:
            raise ValueError(f"{folder} holds no whole lexicon ({error}); copy it again from the run") from error

    def _facts(self) -> dict[str, Any]:
        return {
            "unknown": self.unknown, "width": self.width, "seed": self.seed, "scale": self.scale,
            "words": list(self.words),
        }  # fmt: skip

    def _id(self, word: str) -> int:
        number = self._numbers.get(word)
        if number is not None:
            return number
        if self.unknown == "classes":
            return self._classes[word_class(word)]
        if self.unknown == "random" or (self.unknown == "vectors" and self._place(word) >= 0):
            return NEW
        return 0

    def _place(self, word: str) -> int:
        return self._places.get(word, self._places.get(word.lower(), -1))

    def _new(self, word: str) -> Float32[np.ndarray, "D"]:
        if self._later is not None:
            return np.asarray(self._later.vectors[self._place(word)], np.float32)
        return random_vector(word, self.seed, self.width) * np.float32(self.scale)

    def _drawn(self, names: Sequence[str]) -> Float32[np.ndarray, "N D"]:
        whole = np.zeros((len(names), self.width), np.float32)
        for n, name in enumerate(names):
            whole[n] = random_vector(name, self.seed, self.width) * np.float32(self.scale)
        return whole


def random_vector(word: str, seed: int, width: int) -> Float32[np.ndarray, "{width}"]:
    """Numbers drawn evenly with mean 0 and spread 1, that depend on word and seed alone.

    >>> bool((random_vector("강", 0, 3) == random_vector("강", 0, 3)).all())
    True
    >>> bool((random_vector("강", 0, 3) == random_vector("강", 1, 3)).any())
    False
    """
    key = hashlib.blake2b(f"{seed} {word}".encode("utf-8", "replace"), digest_size=16).digest()
    draw = np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))
    return draw.uniform(-(3**0.5), 3**0.5, width).astype(np.float32)


def places_of(words: Sequence[str], known: WordVectors | None) -> Int32[np.ndarray, "N"]:
    """Where the pretrained vector of each word stands: its own, or that of the word in lower case; -1 if nowhere.

    >>> places_of(["River", "배", "눈"], WordVectors(("배", "river"), np.ones((2, 2), np.float32), 2, 0)).tolist()
    [1, 0, -1]
    """
    place = {} if known is None else {word: n for n, word in enumerate(known.words)}
    return np.array([place.get(word, place.get(word.lower(), -1)) for word in words], np.int32)
