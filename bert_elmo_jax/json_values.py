"""Parse JSON of unknown origin, and check its values: errors name the file and the field.

`parse_json` bounds depth and digits; `check_fields` compares the fields that a reader uses with their kinds. A field
that is missing or null has its default, which is the reader's business.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

DEEPEST = 64  # containers inside each other; files of models have about 10
MOST_DIGITS = 100  # of a number; `model_max_length` of many released models has 31
# Characters of a text whose every value is looked at. In larger ones, which are vocabularies, Python bounds the digits
# (4,300) and the depth (about 1,000).
SMALL = 1 << 21
LONG = re.compile(rf"[0-9]{{{MOST_DIGITS + 1}}}")
LONG_NUMBER = re.compile(rf"(?:\"((?:[^\"\\\n]|\\.){{0,60}})\"\s*:|[\[,])\s*-?\d{{{MOST_DIGITS + 1}}}")
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class Kind(NamedTuple):
    """A kind of value: its name for messages, and its test."""

    called: str
    accepts: Callable[[Any], bool]


Fields = Mapping[str, Kind]


def parse_json(text: str, source: object) -> Any:
    r"""Return the value of a JSON text; `source` names it in errors.

    >>> parse_json('{"a": [1, 2]}', "a.json")
    {'a': [1, 2]}
    >>> parse_json('{"size": ' + "9" * 101 + "}", "a.json")
    Traceback (most recent call last):
    ValueError: a.json: size is a number of more than 100 digits: copy the file again
    """
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{source} is not JSON: {error}") from None
    except RecursionError:
        raise ValueError(f"{source} is not JSON that can be read: it is nested too deeply") from None
    except ValueError:  # of int(), which converts at most 4,300 digits
        raise _too_long(text, source) from None
    if len(text) < SMALL:
        if LONG.search(text) and LONG_NUMBER.search(text):  # the first is quick, and few texts have such a hash
            raise _too_long(text, source)
        _check_depth(content, source)
    if SURROGATE.search(text):
        try:
            json.dumps(content, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = f"U+{ord(error.object[error.start]):04X}"
            raise ValueError(f"{source} holds half of a character, {half}, which no text has: copy it again") from None
    return content


def _too_long(text: str, source: object) -> ValueError:
    match = LONG_NUMBER.search(text)
    field = f": {match[1]} is" if match and match[1] is not None else " holds"
    return ValueError(f"{source}{field} a number of more than {MOST_DIGITS} digits: copy the file again")


def _check_depth(content: Any, source: object) -> None:
    """Raise if containers are nested deeper than `DEEPEST`."""
    level, depth = [content], 0
    while level := [
        value
        for holder in level
        if isinstance(holder, list | dict)
        for value in (holder.values() if isinstance(holder, dict) else holder)
        if value.__class__ is list or value.__class__ is dict
    ]:
        depth += 1
        if depth >= DEEPEST:
            raise ValueError(f"{source} is not JSON that can be read: it is nested too deeply")


def whole_number(low: int = 0, high: int = 2**31 - 1) -> Kind:
    """Return the kind of the whole numbers in a range.

    >>> whole_number(1, 9).called
    'a whole number from 1 to 9'
    """
    called = f"a whole number from {low:,} to {high:,}" if high < 2**31 - 1 else f"a whole number, {low} or more"
    return Kind(called, lambda value: type(value) is int and low <= value <= high)


def one_of(*names: str) -> Kind:
    """Return the kind of these texts.

    >>> one_of("cosine", "dot").called
    'cosine or dot'
    """
    return Kind(f"{', '.join(names[:-1])} or {names[-1]}", lambda value: isinstance(value, str) and value in names)


def any_of(*kinds: Kind) -> Kind:
    """Return the kind of the values that fit one of these kinds.

    >>> any_of(TEXT, whole_number(1, 2)).called
    'a text, or a whole number from 1 to 2'
    """
    return Kind(", or ".join(kind.called for kind in kinds), lambda value: any(kind.accepts(value) for kind in kinds))


def list_of(kind: Kind, most: int | None = None) -> Kind:
    """Return the kind of the lists whose every value fits a kind, with at most so many values.

    >>> list_of(TEXT, most=3).called, list_of(TEXT).accepts(["a", 1])
    ('a list of at most 3 values, each a text', False)
    """
    called = f"a list of {'' if most is None else f'at most {most:,} '}values, each {kind.called}"
    return Kind(
        called,
        lambda value: (
            isinstance(value, list) and (most is None or len(value) <= most) and all(map(kind.accepts, value))
        ),
    )


def object_of(kind: Kind) -> Kind:
    """Return the kind of the objects whose every value fits a kind, or is null.

    >>> object_of(TEXT).accepts({"query": "query: ", "document": None})
    True
    """

    def accepts(value: Any) -> bool:
        return isinstance(value, dict) and all(inner is None or kind.accepts(inner) for inner in value.values())

    return Kind(f"an object, each value {kind.called}", accepts)


TEXT = Kind("a text", lambda value: isinstance(value, str))
TRUTH = Kind("true or false", lambda value: isinstance(value, bool))
OBJECT = Kind("an object", lambda value: isinstance(value, dict))
LIST = Kind("a list", lambda value: isinstance(value, list))
# A whole number beyond the floats is refused, too: computing with it would raise OverflowError.
NUMBER = Kind("a finite number", lambda value: type(value) in (int, float) and abs(value) <= sys.float_info.max)


def check_fields(content: Mapping[str, Any], kinds: Fields, source: object) -> None:
    """Raise if a field is neither missing nor null and has another kind.

    >>> check_fields({"bias": "no"}, {"bias": TRUTH}, "2_Dense/config.json")
    Traceback (most recent call last):
    ValueError: 2_Dense/config.json: bias is 'no'; expected true or false
    """
    for name, kind in kinds.items():
        value = content.get(name)
        if value is not None and not kind.accepts(value):
            raise ValueError(f"{source}: {name} is {value!r:.60}; expected {kind.called}")
