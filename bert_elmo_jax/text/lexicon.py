"""The vocabulary of a task's network, with six ways to treat unknown words.

A word has its own row in the vector table if it has a pretrained vector or occurs `min_count` times in training.
`Unknown` selects how the others are represented:

- `unk`: they share the vector of `<UNK>`.
- `classes`: words of the same class (numbers, capitals, suffixes, Korean endings) share a vector.
- `characters`: they share one vector, and the network reads their characters.
- `vectors`: they use their pretrained vectors, which the lexicon keeps.
- `random`: each has a random vector, seeded by a hash of the word, so that a question and its context agree.
- `vectors_or_random`: its pretrained vector if it has one, else a random one.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float32, Int32

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.files import read_array, read_json, write_json
from bert_elmo_jax.text.vectors import WordVectors
from bert_elmo_jax.text.word_features import WordFeatures
from bert_elmo_jax.text.words import IDEOGRAPHS, UNK_WORD

Unknown = Literal["unk", "classes", "characters", "vectors", "random", "vectors_or_random"]
FROM_FILE = ("vectors", "vectors_or_random")  # the ways that keep the vectors of a file
OFTEN = 5  # the usual count from which a word has its own row
MOST_VECTORS = 500_000  # how many vectors of a file `vectors` keeps; files put the most frequent words first
NEW = -1  # the id of a word whose vector comes from `Lexicon.vectors`

# The first match wins, so longer suffixes and endings come first.
SUFFIXES = ("ness", "ment", "tion", "sion", "able", "ible", "ful", "ing", "est", "ous", "ity", "ion", "ive", "ish",
            "ist", "ism", "al", "ly", "ed", "er", "or", "es", "s", "y")  # fmt: skip
# Particles of nouns, then endings of verbs and adjectives.
ENDINGS = ("에서는", "으로는", "에게서", "에서", "에게", "으로", "까지", "부터", "처럼", "보다", "이나", "이라", "한테",
           "께서", "습니다", "입니다", "했다", "한다", "았다", "었다", "지만", "면서", "려고", "아서", "어서", "해서",
           "는데", "니다", "하고", "하는", "하게", "은", "는", "이", "가", "을", "를", "의", "에", "도", "만", "와",
           "과", "로", "들", "다", "요", "고", "며", "면", "서", "게", "지", "네", "까", "한", "된", "할", "인", "음",
           "기", "적")  # fmt: skip
_NUMBER = re.compile(r"[-+]?[\d.,:/]*\d[\d.,:/]*%?")
_IDEOGRAPH = re.compile(f"[{IDEOGRAPHS}]")
_HANGUL = re.compile(r"[가-힣ㄱ-ㅎㅏ-ㅣ]")
_SHAPES = ("number", "number-and-letters", "marks", "capitals", "capitalised-hyphen", "capitalised", "hyphen",
           "ideographs", "Hangul-and-others", "Hangul", "other")  # fmt: skip

CLASSES: tuple[str, ...] = (*_SHAPES, *(f"-{suffix}" for suffix in SUFFIXES), *(f"~{ending}" for ending in ENDINGS))


class Lexicon:
    """Maps words to ids: 0 is `<UNK>`, followed by the word classes, if any, and the words.

    With `characters`, the network also reads the characters of every word; `unknown="characters"` implies it.

    >>> Lexicon(["배", "river"], "unk", width=4).ids(["river", "1999", "배"]).tolist()
    [2, 0, 1]
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
        characters: bool | None = None,
        features: WordFeatures | None = None,
    ):
        if unknown not in get_args(Unknown):
            usual = get_args(Unknown)
            expected = f"{', '.join(usual)}{did_you_mean(unknown, usual)}"
            raise ValueError(f"unknown={unknown!r} is not known; expected one of {expected}")
        self.words, self.unknown, self.width, self.seed = tuple(words), unknown, width, seed
        self.scale = width**-0.5 if scale is None else scale
        self.characters = unknown == "characters" if characters is None else characters
        self.specials = (UNK_WORD, *(f"<{name}>" for name in CLASSES)) if unknown == "classes" else (UNK_WORD,)
        self.features = features  # hand-made ones
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
        min_count: int = OFTEN,
        pretrained: WordVectors | None = None,
        tuned: bool = True,
        seed: int = 0,
        later: WordVectors | None = None,
        characters: bool | None = None,
        features: WordFeatures | None = None,
        scale: float | None = None,
    ) -> "Lexicon":
        """Build a lexicon from the word counts of training data, most frequent words first.

        A word that occurs `min_count` times has a row of its own. Unless vectors are `tuned`, it needs a pretrained
        one, because its random vector would never change. Random vectors have the deviation `scale`, by default that
        of the pretrained ones.
        """
        least = min_count if tuned or pretrained is None else float("inf")
        frequent = [
            word for word, row in zip(counts, places_of(list(counts), pretrained)) if row >= 0 or counts[word] >= least
        ]
        frequent.sort(key=lambda word: (-counts[word], word))
        if scale is None and pretrained is not None and len(pretrained.words):
            scale = float(pretrained.vectors.std()) or None
        return cls(
            frequent, unknown, width, seed=seed, scale=scale, later=later, characters=characters, features=features
        )

    def __len__(self) -> int:
        return len(self.specials) + len(self.words)

    @property
    def brings_vectors(self) -> bool:
        """True if some words have a vector that is not in the table but comes from `vectors`."""
        return self.unknown in (*FROM_FILE, "random")

    @property
    def kept_vectors(self) -> WordVectors | None:
        """The vectors of words that have no row in the table; None unless unknown words have `vectors`."""
        return self._later

    def ids(self, words: Sequence[str]) -> Int32[np.ndarray, "N"]:
        """Return the row of each word, or `NEW` for words whose vector comes from `vectors`."""
        return np.fromiter(map(self._id, words), np.int32, len(words))

    def vectors(self, words: Sequence[str]) -> Float32[np.ndarray, "N D"]:
        """Return the vectors of `NEW` words, and zeros for the others."""
        vectors = np.zeros((len(words), self.width), np.float32)
        for n, word in enumerate(words):
            if self._id(word) == NEW:
                place = self._place(word)
                vectors[n] = self._draw(word) if self._later is None or place < 0 else self._later.vectors[place]
        return vectors

    def table(
        self, pretrained: WordVectors | None = None
    ) -> tuple[Float32[np.ndarray, "S D"], Float32[np.ndarray, "V D"]]:
        """Return the initial vectors of the special words and the words: pretrained if known, else random."""
        specials, words = (
            np.array([self._draw(name) for name in names], np.float32).reshape(len(names), self.width)
            for names in (self.specials, self.words)
        )
        if pretrained is not None:
            for n, place in enumerate(places_of(self.words, pretrained)):
                if place >= 0:
                    words[n] = pretrained.vectors[place]
        return specials, words

    @property
    def fingerprint(self) -> str:
        """A hash of the words, the options and the kept vectors."""
        sums = hashlib.sha256(json.dumps(self._fields(), ensure_ascii=True).encode())
        if self._later is not None:
            sums.update("\n".join(self._later.words).encode("utf-8", "replace"))
            sums.update(np.ascontiguousarray(self._later.vectors).data)
        return sums.hexdigest()

    def save(self, folder: str | Path) -> None:
        """Write the lexicon to a folder, `lexicon.json` last."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if self._later is not None:
            np.save(folder / "vectors.npy", self._later.vectors)
            write_json(folder / "vectors.json", {"words": list(self._later.words)}, indent=2)
        write_json(folder / "lexicon.json", self._fields(), indent=2)

    @classmethod
    def load(cls, folder: str | Path) -> "Lexicon":
        """Load a saved lexicon; kept vectors are memory-mapped."""
        folder = Path(folder)
        fields = read_json(folder / "lexicon.json", default={})
        if not fields:
            raise FileNotFoundError(f"there is no lexicon.json in {folder}; copy the folder again from the run")
        try:
            later = None
            if fields["unknown"] in FROM_FILE:
                names = tuple(read_json(folder / "vectors.json", default={})["words"])
                later = WordVectors(names, read_array(folder / "vectors.npy", mapped=True), len(names), 0)
                if len(later.vectors) != len(names):
                    raise ValueError(f"vectors.npy has {len(later.vectors)} rows for {len(names)} words")
            return cls(
                fields["words"], fields["unknown"], fields["width"], seed=fields["seed"], scale=fields["scale"],
                later=later, characters=fields.get("characters"),
                features=WordFeatures.read(fields["features"]) if "features" in fields else None,
            )  # fmt: skip
        except (KeyError, TypeError, OSError, ValueError, EOFError) as error:
            raise ValueError(f"{folder} holds an incomplete lexicon ({error}); copy it again from the run") from error

    def _fields(self) -> dict[str, Any]:
        # Earlier lexicons have no such fields, and their fingerprints stay.
        later: dict[str, Any] = (
            {} if self.characters == (self.unknown == "characters") else {"characters": self.characters}
        )
        later |= {} if self.features is None else {"features": self.features.asdict()}
        return {
            "unknown": self.unknown, "width": self.width, "seed": self.seed, "scale": self.scale,
            "words": list(self.words), **later,
        }  # fmt: skip

    def _id(self, word: str) -> int:
        if word in self._numbers:
            return self._numbers[word]
        if self.unknown == "classes":
            return self._classes[word_class(word)]
        return NEW if self.unknown.endswith("random") or (self.unknown in FROM_FILE and self._place(word) >= 0) else 0

    def _place(self, word: str) -> int:
        return self._places.get(word, self._places.get(word.lower(), -1))

    def _draw(self, word: str) -> Float32[np.ndarray, "D"]:
        return random_vector(word, self.seed, self.width) * np.float32(self.scale)


def random_vector(word: str, seed: int, width: int) -> Float32[np.ndarray, "{width}"]:
    """Draw a uniform vector with mean 0 and standard deviation 1 that depends only on word and seed."""
    key = hashlib.blake2b(f"{seed} {word}".encode("utf-8", "replace"), digest_size=16).digest()
    draw = np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))
    return draw.uniform(-(3**0.5), 3**0.5, width).astype(np.float32)


def places_of(words: Sequence[str], vectors: WordVectors | None) -> Int32[np.ndarray, "N"]:
    """Return the index of each word's pretrained vector, falling back to the lower-cased word, then to -1."""
    place = {} if vectors is None else {word: n for n, word in enumerate(vectors.words)}
    return np.array([place.get(word, place.get(word.lower(), -1)) for word in words], np.int32)


def word_class(word: str) -> str:
    """Return the class of a word, one of `CLASSES`."""
    if _NUMBER.fullmatch(word):
        return "number"
    if not any(character.isalnum() for character in word):
        return "marks"
    if any(character.isdigit() for character in word):
        return "number-and-letters"
    letters = [character for character in word if character.isalpha()]
    if _HANGUL.search(word):
        if not all(_HANGUL.fullmatch(letter) for letter in letters):
            return "Hangul-and-others"
        # An ending needs a stem in front of it.
        bare = "".join(letters)
        return next((f"~{ending}" for ending in ENDINGS if bare.endswith(ending) and len(bare) > len(ending)), "Hangul")
    if letters and all(_IDEOGRAPH.fullmatch(letter) for letter in letters):
        return "ideographs"
    if len(letters) > 1 and all(letter.isupper() for letter in letters):
        return "capitals"
    if word[0].isupper():
        return "capitalised-hyphen" if "-" in word[1:] else "capitalised"
    if "-" in word[1:-1]:
        return "hyphen"
    lower = word.lower()
    ending = next((suffix for suffix in SUFFIXES if lower.endswith(suffix) and len(lower) > len(suffix) + 2), None)
    return f"-{ending}" if ending else "other"
