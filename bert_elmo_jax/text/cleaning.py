"""Changes of a text before a SentencePiece model reads it, as ALBERT's tokenizer makes them."""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bert_elmo_jax.files import read_json
from bert_elmo_jax.text.tokenizer_checks import read_tokenizer_config

CLASSES, TYPES = ("AlbertTokenizer", "AlbertTokenizerFast"), ("albert",)  # they clean unless a file disagrees
Placed = list[tuple[str, tuple[int, int]]]  # characters with their places in the original text


@dataclass(frozen=True)
class Cleaning:
    """The changes: of case, of accents (with compatibility forms, NFKD), and of spaces (with quotes of TeX).

    It is false without changes.

    >>> Cleaning(lowercase=True, strip_accents=True, tidy_spaces=True).clean("  ``Caf\u00e9''  12 ")
    '"cafe" 12'
    """

    lowercase: bool = False
    strip_accents: bool = False
    tidy_spaces: bool = False

    def __bool__(self) -> bool:
        return self.lowercase or self.strip_accents or self.tidy_spaces

    @property
    def identity(self) -> bytes:
        """Bytes for a fingerprint, none without changes."""
        return repr(self).encode() if self else b""

    def config(self) -> dict[str, Any]:
        """Return the entries of `tokenizer_config.json`, which are transformers' names."""
        if not self:
            return {}
        return {
            "tokenizer_class": CLASSES[0],
            "do_lower_case": self.lowercase,
            "keep_accents": not self.strip_accents,
            "remove_space": self.tidy_spaces,
        }

    def clean(self, text: str) -> str:
        """Return the changed text."""
        return self.place(text)[0] if self else text

    def place(self, text: str) -> tuple[str, list[tuple[int, int]]]:
        """Return the changed text, and for each of its characters the (start, end) in the original.

        >>> Cleaning(tidy_spaces=True).place(" a  ''")
        ('a "', [(1, 2), (2, 4), (4, 6)])
        """
        placed: Placed = [(character, (n, n + 1)) for n, character in enumerate(text)]
        if self.tidy_spaces:
            placed = _join_quotes(_join_spaces(placed))
        if self.strip_accents:
            parts_of = {character: unicodedata.normalize("NFKD", character) for character, _ in placed}
            placed = [(part, place) for character, place in placed for part in parts_of[character]]
            # All marks, as in transformers; ALBERT's first code kept the few of combining class 0.
            placed = [(part, place) for part, place in placed if unicodedata.category(part)[0] != "M"]
        if self.lowercase:
            lowered = "".join(character for character, _ in placed).lower()  # a final sigma depends on its neighbours
            same = len(lowered) == len(placed)
            parts: Iterable[str] = lowered if same else (character.lower() for character, _ in placed)
            placed = [(part, place) for characters, (_, place) in zip(parts, placed) for part in characters]
        return "".join(character for character, _ in placed), [place for _, place in placed]


def read_cleaning(folder: Path) -> Cleaning:
    """Return the changes that the files of a folder ask for."""
    settings = read_tokenizer_config(folder)
    cleans = settings.get("tokenizer_class") in CLASSES
    if settings.get("tokenizer_class") is None:
        cleans = read_json(folder / "config.json", default={}).get("model_type") in TYPES

    def choose(name: str, usual: bool) -> bool:
        return usual if settings.get(name) is None else bool(settings[name])

    keeps = choose("keep_accents", not cleans)
    return Cleaning(choose("do_lower_case", cleans), not keeps, choose("remove_space", cleans))


def _join_spaces(placed: Placed) -> Placed:
    """Join white space to single spaces, and leave it out at both ends."""
    joined: Placed = []
    for character, (start, end) in placed:
        if not character.isspace():
            joined.append((character, (start, end)))
        elif joined:
            previous, (first, _) = joined[-1]
            joined[-1:] = [(" ", (first, end))] if previous == " " else [joined[-1], (" ", (start, end))]
    return joined[:-1] if joined and joined[-1][0] == " " else joined


def _join_quotes(placed: Placed) -> Placed:
    joined: Placed = []
    n = 0
    while n < len(placed):
        pair = "".join(character for character, _ in placed[n : n + 2])
        if pair in ("``", "''"):
            joined.append(('"', (placed[n][1][0], placed[n + 1][1][1])))
        else:
            joined.append(placed[n])
        n += 1 + (pair in ("``", "''"))
    return joined
