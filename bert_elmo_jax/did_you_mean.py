"""Suggestions for misspelt names and files in error messages."""

import difflib
import os
from collections.abc import Iterable
from pathlib import Path


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """Return the end of an error message that suggests the most similar known name, or "" if none is similar."""
    near = nearest(name, names)
    return f"; did you mean {near}?" if near else ""


def near_file(path: str | Path, *, folders: bool = False) -> str:
    """Return the end of an error message that suggests the folder's most similarly named file (or folder), or ""."""
    folder, name = os.path.split(path)
    try:
        with os.scandir(folder or ".") as entries:
            near = nearest(name, sorted(entry.name for entry in entries if folders or entry.is_file()))
    except (OSError, ValueError):
        return ""
    return f"; did you mean {os.path.join(folder, near)}?" if near else ""  # noqa: PTH118 -- keeps the spelling


def nearest(name: object, names: Iterable[str]) -> str | None:
    """Return the one of `names` that is most similar to `name`, or None; case is ignored, hyphens are underscores."""
    folded: dict[str, str] = {}
    for candidate in names:
        folded.setdefault(_folded(candidate), candidate)
    matches = difflib.get_close_matches(_folded(str(name)), folded, n=1)
    return folded[matches[0]] if matches else None


def _folded(name: str) -> str:
    return name.casefold().replace("-", "_")
