"""Lines of text -> words, as the text was split that an encoder learned from."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from bert_elmo_jax.text import split_words


def rule_of(encoders: Mapping[str, Any]) -> str:
    """How lines are split: as prepare_data split the text of an ELMo that was pretrained here, else by punctuation."""
    rules = {name: encoder.word_rule for name, encoder in encoders.items() if getattr(encoder, "word_rule", None)}
    if len(set(rules.values())) > 1:
        each = ", ".join(f"{name} by {rule}" for name, rule in rules.items())
        raise ValueError(f"the texts of these encoders were split differently ({each}): ask for them one by one")
    return next(iter(rules.values()), "punctuation")


def words_of_line(text: str | list[str], rule: str) -> list[str]:
    """The words of a line, which is composed as `prepare_data` composes it; what stands in columns is words already.

    >>> words_of_line("좋은 영화.", "punctuation"), words_of_line("좋은 영화.", "whitespace")
    (['좋은', '영화', '.'], ['좋은', '영화.'])
    """
    return split_words(unicodedata.normalize("NFC", text), rule) if isinstance(text, str) else text


def split_by(
    rule: str | None, texts: Callable[[], Iterable[tuple[int, str | list[str]]]]
) -> Iterator[tuple[int, str | list[str]]]:
    """Numbered texts, split into words where there is a rule.

    >>> list(split_by("punctuation", lambda: [(1, "좋은 영화.")]))
    [(1, ['좋은', '영화', '.'])]
    """
    return ((number, text if rule is None else words_of_line(text, rule)) for number, text in texts())
