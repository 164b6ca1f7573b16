"""The prose of the Korean README has every figure and all code of the English one; test_pages.py checks the rest."""

import re
from collections import Counter
from pathlib import Path

import pytest

from .test_pages import CODE, COMMAND, FENCED, NUMBER, blocks, read, tables

ENGLISH, KOREAN = TWINS = tuple(read(Path(name)) for name in ("README.md", "README.ko.md"))


def sections(text):
    """Return the text before the first heading and below each, without fenced blocks and tables."""
    return re.split(r"^## .*$", re.sub(r"^\|.*$", "", FENCED.sub("", text), flags=re.M), flags=re.M)


def test_there_are_blocks_and_tables():
    assert len([code for language, code in blocks(ENGLISH) if language == "python"]) >= 1
    assert len(COMMAND.findall(ENGLISH)) >= 4
    assert len(re.findall(r"^## ", FENCED.sub("", ENGLISH), re.M)) > 0
    assert tables(ENGLISH)


@pytest.mark.parametrize("pattern", [NUMBER, CODE], ids=["figures", "code"])
def test_prose_of_the_korean_twin_lacks_nothing(pattern):
    """It may have more: Korean writes digits where English writes words, and repeats a name where English says `it`."""
    for english, korean in zip(*map(sections, TWINS), strict=True):
        lost = Counter(pattern.findall(english)) - Counter(pattern.findall(korean))
        assert not lost, f"the Korean README lacks {sorted(lost)} where the English one says: {english.strip()}"


def test_numbers_end_where_korean_goes_on():
    assert NUMBER.findall("문장 1,000개, 5.23과 10⁻⁷이고 **0.49**로") == ["1,000", "5.23", "10⁻⁷", "0.49"]
    assert NUMBER.findall("10⁻⁷까지") != NUMBER.findall("10⁻⁵까지")
