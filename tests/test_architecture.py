"""docs/architecture.md describes the tree, and no code outside a family's folder asks which family it has."""

import ast
import configparser
import re
from pathlib import Path

import pytest

from bert_elmo_jax.families import REGISTRY

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "bert_elmo_jax"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
# Names of families that code outside their folders may hold, and why.
ALLOWED = {
    "quickstart": "it pretrains a BERT and an ELMo by design",
    "runs/ideal": "the toy world's ideal reader is compared with both",
}


def package_folders():
    return {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}


def test_the_page_lists_every_folder():
    table = PAGE.partition("## Layout")[2].partition("## Who may import whom")[0]
    listed = set(re.findall(r"`(\w+)/`", "\n".join(line.split("|")[1] for line in table.splitlines() if "|" in line)))
    assert listed == package_folders()


def test_the_page_has_the_import_order_of_the_contracts():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    layers = config["importlinter:contract:layers"]["layers"].split("\n")
    names = [[part.strip().removeprefix("bert_elmo_jax.") for part in layer.split(":")] for layer in layers if layer]
    [line] = re.findall(r"^`(experiments → .*)`$", PAGE, re.M)
    assert [part.split(", ") for part in line.split(" → ")] == names


def code_files():
    for folder in (PACKAGE, ROOT / "experiments"):
        for path in sorted(folder.rglob("*.py")):
            place = path.relative_to(folder).as_posix()
            outside = not place.startswith(("configs/", "sweeps/", "benchmarks/")) if folder != PACKAGE else True
            allowed = any(place.startswith(f"{name}/") for name in ALLOWED)
            if outside and not allowed and not re.match(rf"families/({'|'.join(REGISTRY)}|__init__)\b", place):
                yield path


def identifiers(tree):
    """Yield every name in the code, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            yield node.arg, node.lineno
        elif isinstance(node, ast.ImportFrom):
            for name in (*(node.module or "").split("."), *(alias.name for alias in node.names)):
                yield name, node.lineno


@pytest.mark.parametrize("family", REGISTRY)
def test_nobody_asks_which_family(family):
    own = re.compile(rf"(?i)(^|_){family}(_|$)|(^|[a-z]){family.capitalize()}[A-Z]")
    # The optimiser that a paper describes, and classes of the library `tokenizers`.
    others = {"bert_elmo_jax", f"{family}_adam", "BertPreTokenizer", "BertNormalizer"}
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in code_files()
        for name, line in identifiers(ast.parse(path.read_text(encoding="utf-8")))
        if own.search(name) and name not in others
    ]
    assert not found, "\n".join(found)


def test_nobody_asks_for_the_class_of_a_configuration():
    found = []
    for path in code_files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            asks = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
            if asks and re.search(r"\w+Config\b(?<!ConfigDict)", ast.unparse(node.args[1])):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}")
    assert not found, "\n".join(found)
