"""The five special pieces of every tokenizer, and checks of texts and ids."""

from collections.abc import Iterable, Sequence
from typing import NoReturn

import numpy as np
from jaxtyping import Integer

PAD, UNK, CLS, SEP, MASK = SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def reject_text(texts: Iterable[object], error: Exception) -> NoReturn:
    """Raise an error that explains why a library refused some text.

    Called only after the library has failed, so that valid text costs nothing.
    """
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {number} is {text!r:.60}, a {type(text).__name__}; expected a str") from None
        try:
            text.encode()
        except UnicodeEncodeError as problem:
            raise ValueError(
                f"text {number} holds a lone surrogate, U+{ord(text[problem.start]):04X} at character {problem.start}: "
                "half of a character, which cannot be encoded. Decode the source as UTF-16 or with errors='replace', "
                "or remove it."
            ) from None
    raise error


def check_ids(ids: Sequence[int] | Integer[np.ndarray, "N"], vocab_size: int) -> list[int]:
    """Return the ids as a list; raise if one is not in the vocabulary."""
    numbers = np.asarray(ids, np.int64)
    outside = (numbers < 0) | (numbers >= vocab_size)
    if outside.any():
        position = int(np.argmax(outside))
        raise ValueError(
            f"id {numbers[position]} at position {position} is not in this vocabulary of {vocab_size} pieces; "
            "use the tokenizer that made the ids"
        )
    return numbers.tolist()
