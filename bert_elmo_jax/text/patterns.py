"""Checks of the regular expressions in a `tokenizer.json`, which the library's engine could try without end.

The engine goes back and tries again. It needs a time that grows exponentially with the text if a group is repeated
that itself holds a repeat, as in `(a+)+`, and with a high power of its length if many repeats follow each other.
"""

import re
from collections.abc import Iterator

LONGEST = 10_000  # characters of a pattern; published ones have a few hundred
DEEPEST = 50  # groups in groups
MOST_REPEATS = 4  # without end, one after the other; published patterns have two
MANY = 10  # a number of times from which a repeat counts as one without end

_ESCAPE = r"(?P<escape>\\(?:[pPkg]\{[^}]{0,99}\}|[kg]<[^>]{0,99}>|x\{[^}]{0,99}\}|.))"
_TOKEN = re.compile(
    _ESCAPE + r"|(?P<set>\[\^?\]?)|(?P<comment>\(\?#[^)]*\))"
    r"|(?P<open>\((?:\?(?:<?[=!]|[>~|]|<\w+>|(?P<flags>[a-zA-Z-]*)(?::|(?=\)))))?)|(?P<close>\))|(?P<bar>\|)"
    r"|(?P<repeat>[*+?][?+]?|\{(?P<least>\d{0,6})(?P<comma>,?)(?P<most>\d{0,6})\}\??)|(?P<other>.)",
    re.S,
)
_IN_SET = re.compile(_ESCAPE + r"|(?P<set>\[\^?\]?)|(?P<end>\])|(?P<other>.)", re.S)


def check_pattern(pattern: str) -> None:
    r"""Raise if a pattern is too long, or could be tried without end; the message continues "its pattern …".

    >>> check_pattern(r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+(?!\S)|\s+")
    >>> check_pattern("(a+)+$")
    Traceback (most recent call last):
    ValueError: repeats '(a+)', in which something is repeated
    """
    if len(pattern) > LONGEST:
        raise ValueError(f"has {len(pattern):,} characters; at most {LONGEST:,} are supported")
    groups: list[list[int]] = [[0, 0, 0]]  # start, repeats of the present alternative, the most of an alternative
    start = repeats = 0  # of the last item
    for match in _list_items(pattern):
        kind, text = match.lastgroup, match.group()
        if kind == "comment":
            continue
        if kind == "repeat":
            most = _count_most(match)
            if most >= MANY and repeats:
                raise ValueError(f"repeats {pattern[start : match.start()]!r:.60}, in which something is repeated")
            more = repeats * (most - 1) if repeats else int(most >= MANY and _varies(match))
            repeats += more
            groups[-1][1] += more
        elif kind == "close" and len(groups) > 1:
            start, *alternatives = groups.pop()
            repeats = max(alternatives)
            groups[-1][1] += repeats
        else:
            start, repeats = match.start(), 0
        if kind == "bar":
            groups[-1][1:] = 0, max(groups[-1][1:])
        elif kind == "open":
            groups.append([start, 0, 0])
        if text.startswith("\\g") or "x" in (match.groupdict().get("flags") or ""):
            raise ValueError(f"has {text!r}, which is not supported")
        if len(groups) > DEEPEST:
            raise ValueError(f"has more than {DEEPEST} groups in groups")
        if groups[-1][1] > MOST_REPEATS:
            raise ValueError(f"has more than {MOST_REPEATS} repeats without end, one after the other")


def _list_items(pattern: str) -> Iterator["re.Match[str]"]:
    """Yield the items of a pattern. A set of characters in brackets is one item, with the sets in it."""
    at = depth = 0
    while match := (_IN_SET if depth else _TOKEN).match(pattern, at):
        at = match.end()
        if not depth:
            yield match
        depth += {"set": 1, "end": -1}.get(match.lastgroup or "", 0)


def _count_most(match: "re.Match[str]") -> int:
    """Return how often something is repeated at most, MANY without a bound."""
    if match.group()[0] != "{":
        return 1 if match.group()[0] == "?" else MANY
    return int(match["most"] or (MANY if match["comma"] else match["least"] or 1)) or 1


def _varies(match: "re.Match[str]") -> bool:
    return match.group()[0] != "{" or bool(match["comma"])
