"""Lines of text -> words, split as the text that an encoder was pretrained on."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from bert_elmo_jax.text import split_words


def choose_word_rule(encoders: Mapping[str, Any]) -> str:
    """Return the word rule of encoders that were pretrained here on words, otherwise "punctuation"."""
    rules = {name: encoder.word_rule for name, encoder in encoders.items() if getattr(encoder, "word_rule", None)}
    if len(set(rules.values())) > 1:
        each = ", ".join(f"{name} by {rule}" for name, rule in rules.items())
        raise ValueError(f"the texts of these encoders were split differently ({each}): use one encoder at a time")
    return next(iter(rules.values()), "punctuation")


def split_line(text: str | list[str], rule: str) -> list[str]:
    """Return the words of a line, normalised as in `prepare_data`; a list of words stays as it was given."""
    return split_words(unicodedata.normalize("NFC", text), rule) if isinstance(text, str) else text


def split_texts(
    rule: str | None, texts: Callable[[], Iterable[tuple[int, str | list[str]]]]
) -> Iterator[tuple[int, str | list[str]]]:
    """Yield numbered texts, split into words if there is a rule."""
    return ((number, text if rule is None else split_line(text, rule)) for number, text in texts())
