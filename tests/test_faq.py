"""Every message that docs/faq.md quotes is in the code, and the Korean page quotes the same ones."""

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
QUOTED = re.compile(r"^```text\n(.*?)\n```$", re.M | re.S)
MESSAGES = QUOTED.findall((ROOT / "docs" / "faq.md").read_text(encoding="utf-8"))
VARIABLE = "\0"  # stands for a placeholder such as <file>, and for a value in an f-string


@functools.cache
def templates(path):
    """Return the texts in a Python file, with adjacent literals joined and values replaced by VARIABLE."""

    def text_of(node):
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else VARIABLE
        if isinstance(node, ast.JoinedStr):
            return "".join(map(text_of, node.values))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return text_of(node.left) + text_of(node.right)
        return VARIABLE

    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    texts = {text_of(node) for node in nodes if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp)}
    return [text for text in texts if text.strip(VARIABLE)]


def parts_of(message):
    """Return the fixed parts of a quoted message; punctuation may join two texts of the code."""
    parts = (part.strip(" :.,'()") for part in re.split(r"<[^<>]+>|; |: | \(", message))
    return [part for part in parts if len(part) > 3]


def find(message):
    """Return the files that have every fixed part of a message."""
    parts = parts_of(message)
    files = [path for folder in ("bert_elmo_jax", "experiments") for path in (ROOT / folder).rglob("*.py")]
    return [path for path in files if all(any(part in text for text in templates(path)) for part in parts)]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: re.sub(r"\W+", "_", message)[:40])
def test_messages_are_in_the_code(message):
    assert sum(map(len, parts_of(message))) >= 20, "too little fixed text to be found by"
    assert find(message), f"no file has all of {parts_of(message)}: update docs/faq.md and docs/faq.ko.md"


def test_about_the_test():
    assert len(MESSAGES) >= 20
    assert not find("this sentence is in <no> file of the library")
    assert parts_of("<file>:<line>: no column <names> among <columns>; give it") == ["no column", "among", "give it"]


def test_twins_quote_the_same_messages():
    assert QUOTED.findall((ROOT / "docs" / "faq.ko.md").read_text(encoding="utf-8")) == MESSAGES
