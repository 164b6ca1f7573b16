"""Counts of strings and characters in a corpus, for training both kinds of tokenizer."""

from collections import Counter
from collections.abc import Callable, Iterable

from bert_elmo_jax.text.special import SPECIALS

# The share of a corpus's characters that must have a piece; rarer characters may become [UNK].
COVERAGE = 0.9995


def count_strings(texts: Iterable[str]) -> Counter[str]:
    """Count the strings between spaces and newlines, so that each distinct string is normalised only once.

    Other whitespace is left to the libraries, which define it differently from Python.
    """
    if isinstance(texts, str):
        raise TypeError(f"expected several texts; found one, {texts!r:.60}. Put it in a list: [text]")
    counts: Counter[str] = Counter()
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"expected texts, each a str; found {text!r:.60}, a {type(text).__name__}")
        counts.update(text.replace("\n", " ").split(" "))
    del counts[""]
    return counts


def choose_alphabet(words: Counter[str], vocab_size: int, forms: Callable[[str], list[str]]) -> list[str]:
    """Return the sorted single-character pieces; `forms(character)` lists the pieces that a character needs.

    Takes the most frequent characters until they cover 99.95 % of the corpus, then rare ones while all pieces fit into
    a third of the vocabulary.
    """
    if not words:
        raise ValueError("the texts hold no words (or only too long ones), so there is nothing to learn from")
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    room = vocab_size - len(SPECIALS)
    needed = COVERAGE * counts.total()
    covered = 0
    pieces: list[str] = []
    for character, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        more = forms(character)
        if covered >= needed and len(pieces) + len(more) > room // 3:
            break
        covered += count
        pieces += more
    if len(pieces) > room:
        raise ValueError(
            f"vocab_size={vocab_size} is too small: the {len(SPECIALS)} special pieces and the characters of these "
            f"texts alone take {len(SPECIALS) + len(pieces)}; add a few thousand (8192 suits English novels, 16000 "
            "Korean)"
        )
    return sorted(pieces)
