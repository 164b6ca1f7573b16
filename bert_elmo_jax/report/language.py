"""The language of a page: its phrases are written in English, and `korean_phrases.py` has their Korean."""

import os
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Literal

from bert_elmo_jax.report.korean_phrases import KOREAN

Language = Literal["en", "ko"]
LANGUAGES: tuple[Language, ...] = ("en", "ko")
Translate = Callable[..., str]  # (phrase, **values) -> the phrase in the language of a page


class Phrase(str):
    """An English sentence that remembers its template and its values, which may be phrases, so a page can translate it.

    >>> Phrase("{count} rows", count=30)
    '30 rows'
    """

    template: str
    values: Mapping[str, object]

    def __new__(cls, template: str, **values: object) -> "Phrase":
        """Return the English sentence."""
        phrase = super().__new__(cls, template.format(**values) if values else template)
        phrase.template, phrase.values = template, values
        return phrase


def translator(language: Language) -> Translate:
    """Return the function that puts the phrases of a page into a language; a phrase without Korean stays English.

    >>> translator("ko")("{count} rows", count=30), translator("en")("{count} rows", count=30)
    ('30행', '30 rows')
    """

    def translate(text: str, **values: object) -> str:
        phrase = text if isinstance(text, Phrase) else Phrase(text, **values)
        if language == "en" or phrase.template not in KOREAN:
            return str(phrase)
        template = KOREAN[phrase.template]
        texts = {
            name: translate(value) if isinstance(value, Phrase) else value for name, value in phrase.values.items()
        }
        return template.format(**texts) if texts else template

    return translate


def translate_phrases(value: Any, translate: Translate) -> Any:
    """Return a value whose phrases are translated, also those in lists, mappings and dataclasses such as figures.

    Other texts, such as names of models and words, stay unchanged.

    >>> translate_phrases({Phrase("mean"): ["mean", Phrase("{count} rows", count=30)]}, translator("ko"))
    {'평균': ['mean', '30행']}
    """
    if isinstance(value, Phrase):
        return translate(value)
    if isinstance(value, Mapping):
        return {translate_phrases(key, translate): translate_phrases(item, translate) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = (translate_phrases(item, translate) for item in value)
        return list(items) if isinstance(value, list) else tuple(items)
    if is_dataclass(value) and not isinstance(value, type):
        changes = {field.name: translate_phrases(getattr(value, field.name), translate) for field in fields(value)}
        return replace(value, **changes)
    return value


def choose_language(language: str | None = None, environment: Mapping[str, str] = os.environ) -> Language:
    """Return a language; by default the locale chooses it: Korean for ko_KR, else English.

    >>> choose_language("ko"), choose_language(None, {"LANG": "ko_KR.UTF-8"}), choose_language(None, {"LANG": "C"})
    ('ko', 'ko', 'en')
    """
    if language is None:
        locale = next(filter(None, (environment.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
        return "ko" if locale.lower().startswith("ko") else "en"
    for known_language in LANGUAGES:
        if language == known_language:
            return known_language
    raise ValueError(f"language={language!r}: expected one of {', '.join(LANGUAGES)}")


english = translator("en")
