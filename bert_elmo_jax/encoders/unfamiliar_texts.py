"""Warn of texts that a tokenizer knows little of: many unknown pieces, or several pieces for each character."""

import functools
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

# A share of unknown pieces. On the tables of docs/tutorials, a vocabulary of the same language that saw only the other
# half of a table leaves 0.1% (English) to 10% (Korean) unknown, and one of the other language 80 to 88%.
MANY = 0.3
# Pieces for each character, of a tokenizer that writes everything as bytes: one of the same language has less than 1,
# and GPT-2 and RoBERTa have 2.9 for Korean.
SPLIT = 1.5
SAMPLE = 20  # texts whose letters are looked at
REMEDY = "use a model of their language, such as klue/bert-base for Korean or google-bert/bert-base-cased for English"


class UnfamiliarTexts(UserWarning):
    """The warning that a tokenizer knows little of some texts."""


def describe_unfamiliar(tokenizer: Any, ids: Iterable[np.ndarray], texts: Sequence[Any], source: str) -> str | None:
    """Return a warning about the pieces of texts (`ids`), or None; `texts` has some of them as strings or words.

    >>> from bert_elmo_jax.text import train_wordpiece
    >>> toy = train_wordpiece(["the river bank"] * 9, vocab_size=60)
    >>> describe_unfamiliar(toy, [toy.encode("the river").ids], ["the river"], "runs/toy") is None
    True
    >>> print(describe_unfamiliar(toy, [toy.encode("강가의 은행").ids], ["강가의 은행"], "runs/toy").split(",")[0])
    runs/toy: 100% of the pieces of these texts are [UNK] (2 of 2)
    """
    frame = {
        *tokenizer.frame.before,
        *tokenizer.frame.between,
        *tokenizer.frame.after,
        tokenizer.pad_id,
        tokenizer.sep_id,
    }
    if tokenizer.unk_id in frame or tokenizer.unk_id is None:  # as in a GPT-2, whose pieces are bytes
        unknown = pieces = 0
    else:
        numbers = np.concatenate([*ids, np.zeros(0, np.int32)])
        pieces = int((~np.isin(numbers, list(frame))).sum())
        unknown = int((numbers == tokenizer.unk_id).sum())
    if pieces and unknown >= MANY * pieces:
        name = tokenizer.tokens[tokenizer.unk_id]
        return (
            f"{source}: {unknown / pieces:.0%} of the pieces of these texts are {name} ({unknown:,} of {pieces:,}), so "
            f"different texts look alike. Usually the model was made for another language, or its vocabulary is a toy"
            f"{_describe_script(tokenizer, texts)}: {REMEDY}"
        )
    text = " ".join(map(_as_string, texts[:SAMPLE]))[:2000]
    characters = [sign for sign in text if not sign.isspace()]
    letters = [sign for sign in characters if sign.isalpha() and not sign.isascii()]
    if len(letters) * 2 < len(characters) or not letters:
        return None
    ratio = len(tokenizer.encode(text, specials=False)) / len(characters)
    if ratio < SPLIT:
        return None
    return (
        f"{source}: its tokenizer has {ratio:.1f} pieces for each character of these texts, so it was made for another "
        f"language: {REMEDY}"
    )


def warn_of_unfamiliar(
    encoder: Any, ids: Iterable[np.ndarray], texts: Sequence[Any], stacklevel: int = 3, source: str | None = None
) -> None:
    """Warn if the tokenizer of an encoder knows little of some texts, unless its `warns_of_texts` is False.

    If it is "once", the first warning makes it False.
    """
    if encoder.warns_of_texts:
        message = describe_unfamiliar(encoder.tokenizer, ids, texts, source or encoder.source)
        if message is not None:
            encoder.warns_of_texts = encoder.warns_of_texts != "once"
            warnings.warn(message, UnfamiliarTexts, stacklevel=stacklevel + 1)


def warn_of_unknown_words(encoder: Any, sentences: Sequence[Sequence[str]], stacklevel: int = 3) -> None:
    """Warn if a model does not know many words of some sentences, as `warn_of_unfamiliar` does."""
    words = [word for sentence in sentences for word in sentence]
    if not encoder.warns_of_texts or not words:
        return
    unknown = encoder.count_unknown(words)
    if unknown >= MANY * len(words):
        message = (
            f"{encoder.source}: {unknown / len(words):.0%} of the words of these texts are unknown ({unknown:,} of "
            f"{len(words):,}), so different texts look alike. Usually the model was made for another language, its "
            "vocabulary is a toy, or punctuation sticks to the words: lists of words are taken as they are"
        )
        encoder.warns_of_texts = encoder.warns_of_texts != "once"
        warnings.warn(message, UnfamiliarTexts, stacklevel=stacklevel)


def _as_string(text: Any) -> str:
    return text if isinstance(text, str) else " ".join(map(_as_string, text))


def _describe_script(tokenizer: Any, texts: Sequence[Any]) -> str:
    """Return how many pieces have the letters that the texts are written in, if these are few."""
    script = find_script(" ".join(map(_as_string, texts[:SAMPLE])))
    count = _count_scripts(tokenizer.tokens)[script] if script else 0
    if not script or count > len(tokenizer.tokens) / 100:
        return ""
    return f" (the letters of the texts are {script}, and {count:,} of its {len(tokenizer.tokens):,} pieces have any)"


def find_script(text: str) -> str:
    """Return the script of most letters of a text, "" without letters.

    >>> find_script("강가의 은행 A"), find_script("the river"), find_script("Река 1"), find_script("…")
    ('Hangul', 'Latin', 'Cyrillic', '')
    """
    scripts = Counter(unicodedata.name(sign, "").partition(" ")[0].title() for sign in text if sign.isalpha())
    return scripts.most_common(1)[0][0] if scripts else ""


@functools.lru_cache(maxsize=8)
def _count_scripts(tokens: tuple[str, ...]) -> Counter[str]:
    """Return the number of pieces of each script."""
    return Counter(map(find_script, tokens))
