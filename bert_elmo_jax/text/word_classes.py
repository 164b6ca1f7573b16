"""Classes of unseen words: digits, capitals and suffixes in English, particles and endings in Korean."""

import re

from bert_elmo_jax.text.words import IDEOGRAPHS

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
