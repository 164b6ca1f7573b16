"""Quality filters: documents with too few words or letters, many symbols, or much repetition.

The rules follow Gopher's (Rae et al. 2021), with milder limits for short texts, and limits of their own for Korean: its
words say more each, so fewer are enough, and three in a row are a phrase. A document is Korean if more than 30% of its
letters are Hangul. Single Korean letters (ㅋㅋㅋ, ㅠㅠ) are symbols.
"""

import dataclasses
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Integer

from bert_elmo_jax.data.corpora.cleaning.near_duplicates import WordHashes, hash_shingles
from bert_elmo_jax.did_you_mean import did_you_mean

KOREAN_SHARE = 0.3
PUNCTUATION = frozenset(".,!?'\"()-:;…·~/%&“”‘’「」『』《》〈〉—–、。")  # of ordinary text
SPACE, LETTER, HANGUL, PLAIN, SYMBOL = range(5)
REASONS = ("", "too few words", "too few letters", "many symbols", "repeated lines", "repeated phrases")  # by verdict


@dataclasses.dataclass(frozen=True)
class Limits:
    """The limits of one language; shares are of the characters without spaces, or of the phrases."""

    words: int = 10  # at least
    letters: float = 0.7  # at least
    symbols: float = 0.1  # at most: neither letters, digits nor ordinary punctuation
    repeated_lines: float = 0.3  # at most: characters of lines that the document had before
    repeated_phrases: float = 0.3  # at most: runs of words that the document had before
    phrase: int = 5  # words


ENGLISH = Limits()
KOREAN = Limits(words=5, letters=0.65, symbols=0.2, phrase=3)


def read_limits(text: str) -> tuple[Limits, Limits]:
    """Return the limits for English and for Korean: the defaults, or with changes for both.

    >>> read_limits("default,words=3")[1].words, read_limits("default")[1].words
    (3, 5)
    >>> read_limits("default,word=3")
    Traceback (most recent call last):
    ValueError: --filter=default,word=3: no limit 'word'; the limits are words, letters, symbols, repeated_lines, ...
    """
    first, *changes = (part.strip() for part in text.split(","))
    names = [field.name for field in dataclasses.fields(Limits)]
    if first != "default":
        raise ValueError(f"--filter={text} must begin with default: --filter=default, or --filter=default,words=3")
    values: dict[str, float] = {}
    for change in changes:
        name, _, number = change.partition("=")
        if name not in names:
            near = did_you_mean(name, names)
            raise ValueError(f"--filter={text}: no limit {name!r}; the limits are {', '.join(names)}{near}")
        is_count = name in ("words", "phrase")
        try:
            values[name] = int(number) if is_count else float(number)
        except ValueError:
            values[name] = -1
        if not 0 <= values[name] <= (1_000_000 if is_count else 1) or (name == "phrase" and not values[name]):
            expected = "a whole number" if is_count else "a share from 0 to 1"
            raise ValueError(f"--filter={text}: {name}={number} should be {expected}")
    return dataclasses.replace(ENGLISH, **values), dataclasses.replace(KOREAN, **values)  # type: ignore[arg-type]


@lru_cache(maxsize=1)
def _character_classes() -> Integer[np.ndarray, "65536"]:
    """Return the class of each character of the basic plane; others are symbols."""
    classes = np.full(1 << 16, SYMBOL, np.uint8)
    for code in range(1 << 16):
        sign = chr(code)
        kind = unicodedata.category(sign)
        if sign.isspace():
            classes[code] = SPACE
        elif "가" <= sign <= "힣":
            classes[code] = HANGUL
        elif (sign.isalpha() and not "ㄱ" <= sign <= "ㆎ") or kind[0] == "M":
            classes[code] = LETTER
        elif sign in PUNCTUATION or kind[0] == "N":
            classes[code] = PLAIN
    return classes


def judge_documents(
    documents: Sequence[Sequence[str]], words: Sequence[Sequence[str]], limits: tuple[Limits, Limits], table: WordHashes
) -> Integer[np.ndarray, "documents"]:
    """Return the number of the first reason against each document, given by its lines and by its words; 0 is none.

    >>> texts = ["good " * 20, "The ship left the bank of a river at dawn, as we saw.", "배가 강을 건너 은행에 갔다"]
    >>> judge_documents([[text] for text in texts], [text.split() for text in texts], (ENGLISH, KOREAN), WordHashes())
    array([5, 0, 0], dtype=uint8)
    """
    texts = [unicodedata.normalize("NFC", " ".join(lines)) + "\n" for lines in documents]
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), "<u4")
    ends = np.cumsum([len(text) for text in texts])
    classes = _character_classes()[np.minimum(codes, (1 << 16) - 1)]  # the last one is no character
    starts = ends - [len(text) for text in texts]
    counts = [np.add.reduceat((classes == kind).astype(np.int64), starts) for kind in range(5)]
    letters = counts[LETTER] + counts[HANGUL]
    characters = np.maximum(letters + counts[PLAIN] + counts[SYMBOL], 1)
    korean = counts[HANGUL] > KOREAN_SHARE * letters
    shares = {
        "words": np.array([len(document) for document in words]),
        "letters": letters / characters,
        "symbols": counts[SYMBOL] / characters,
        "repeated_lines": np.array([_repeated_lines(lines) for lines in documents]),
        "repeated_phrases": np.where(korean, *(_repeated_phrases(words, one.phrase, table) for one in limits[::-1])),
    }
    verdicts = np.zeros(len(texts), np.uint8)
    for verdict, (name, values) in reversed(list(enumerate(shares.items(), start=1))):
        limit = np.where(korean, getattr(limits[1], name), getattr(limits[0], name))
        verdicts[values < limit if name in ("words", "letters") else values > limit] = verdict
    return verdicts


def _repeated_lines(lines: Sequence[str]) -> float:
    """Return the share of characters in lines that occurred before."""
    once = sum(map(len, set(lines)))
    return 1 - once / max(1, sum(map(len, lines)))


def _repeated_phrases(words: Sequence[Sequence[str]], size: int, table: WordHashes) -> np.ndarray:
    """Return for each document the share of phrases that occurred before in it."""
    phrases, starts = hash_shingles(words, size, table)
    totals = np.diff(starts, append=len(phrases))
    owners = np.repeat(np.arange(len(words), dtype=np.uint64), totals)
    ordered = np.sort(owners << np.uint64(32) | phrases >> np.uint64(32))
    repeats = ordered[1:][ordered[1:] == ordered[:-1]] >> np.uint64(32)
    return np.bincount(repeats.astype(np.int64), minlength=len(words)) / totals
