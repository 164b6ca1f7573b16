"""The five special pieces every tokenizer has, and the checks of what goes in."""

from collections.abc import Iterable, Sequence
from typing import NoReturn

import numpy as np
from jaxtyping import Integer

PAD, UNK, CLS, SEP, MASK = SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def reject_text(texts: Iterable[object], error: Exception) -> NoReturn:
    r"""Explains why a library refused some text; called only after it did, so that good text costs nothing.

    >>> reject_text(["fine", "half \ud83d"], UnicodeError("unhelpful"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: text 1 holds a lone surrogate, U+D83D at character 5: half of a character...
    """
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {number} is {text!r:.60}, a {type(text).__name__}; expected a str") from None
        try:
            text.encode()
        except UnicodeEncodeError as problem:
            raise ValueError(
                f"text {number} holds a lone surrogate, U+{ord(text[problem.start]):04X} at character {problem.start}: "
                "half of a character, which no encoding can write. Decode its source as UTF-16 or with "
                "errors='replace', or remove it."
            ) from None
    raise error


def check_ids(ids: Sequence[int] | Integer[np.ndarray, "N"], vocab_size: int) -> list[int]:
    """The ids as a list, each of them that of a piece.

    >>> check_ids([3, 9], vocab_size=5)
    Traceback (most recent call last):
    ...
    ValueError: id 9 at position 1 is none of this vocabulary's 5 pieces; the ids come from another tokenizer
    """
    numbers = np.asarray(ids, np.int64)
    outside = (numbers < 0) | (numbers >= vocab_size)
    if outside.any():
        position = int(np.argmax(outside))
        raise ValueError(
            f"id {numbers[position]} at position {position} is none of this vocabulary's {vocab_size} pieces; "
            "the ids come from another tokenizer"
        )
    return numbers.tolist()
