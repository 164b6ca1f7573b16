"""Korean pages, notebooks and strings keep to the spellings that docs/glossary.ko.md lists."""

import re
from pathlib import Path

import pytest

from .test_pages import NOTEBOOKS, ROOT, TWINS, read

GLOSSARY = Path("docs/glossary.ko.md")
LIST = "## 표기"  # the section with the list: what to write, and the forms that are not used
HANGUL = re.compile("[가-힣]")
# Korean sentences of the toy world, endings of Korean words and this project's tests of them are no pages.
LANGUAGE = {"bert_elmo_jax/toyworld", "bert_elmo_jax/text"}
STRINGS = [
    path.relative_to(ROOT)
    for folder in ("bert_elmo_jax", "experiments", "docs", "tests/campaigns")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if not any(path.is_relative_to(ROOT / name) for name in LANGUAGE)
    and HANGUL.search(path.read_text(encoding="utf-8"))
]


def spellings():
    """Return each pattern of a form that is not used, with the form to write; patterns are literal unless in code."""
    rows = re.findall(r"^\| (.*) \| (.*) \|$", read(GLOSSARY).split(LIST)[1], re.M)[1:]
    return {
        re.compile(form.strip("`").replace(r"\|", "|") if form.startswith("`") else re.escape(form)): preferred
        for preferred, forms in rows
        for form in re.findall(r"`[^`]+`|[^,`]+", forms.replace(", ", ","))
    }


def find_mistakes(text):
    """Return (line, form found, form to write) for lines with Hangul, outside of code and the list."""
    mistakes, fenced, listed = [], False, False
    for number, line in enumerate(text.splitlines(), start=1):
        fenced ^= line.startswith("```")
        listed = line == LIST or (listed and not line.startswith("## "))
        if HANGUL.search(line) and not fenced and not listed:
            mistakes += [
                (number, form[0], preferred) for pattern, preferred in SPELLINGS for form in pattern.finditer(line)
            ]
    return mistakes


SPELLINGS = spellings().items()


def test_mistakes_are_found_where_they_are():
    assert find_mistakes("# 표\n라벨과 3 에포크\n```\n라벨\n```\n정확도 58 %, `SQuAD 2.0`\n") == [
        (2, "라벨", "레이블"), (2, "3 에포크", "3에포크"), (6, "8 %", "58%"),
    ]  # fmt: skip
    assert not find_mistakes("레이블 3에포크, 정확도 58%, 8 GB, 세 에포크\n")
    assert len(SPELLINGS) > 40
    assert not [(pattern, form) for pattern, _ in SPELLINGS for _, form in SPELLINGS if pattern.search(form)]


@pytest.mark.parametrize("page", [*(korean for _, korean in TWINS), *NOTEBOOKS, *STRINGS], ids=str)
def test_korean_keeps_to_the_glossary(page):
    mistakes = [f"{page}:{number}: write {write} for {form}" for number, form, write in find_mistakes(read(page))]
    assert not mistakes, "\n".join(mistakes)
