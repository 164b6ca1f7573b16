"""Functions for reading the notebooks in tests."""

import ast
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs the extra `dev`")

ROOT = Path(__file__).parents[1]
FILES = {path.stem: path for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}
SENSES, PRETRAIN, FINETUNE = "1_senses", "2_pretrain_on_colab_tpu", "3_finetune_and_inspect"
PAPER, WHY, OWN_CODE, STORY = "4_paper_to_table", "5_why_attention", "6_your_own_code", "7_the_story"
TWINS = {f"{name}.ko": name for name in (SENSES, PRETRAIN, FINETUNE, PAPER, WHY, OWN_CODE, STORY)}


def read(name):
    return nbformat.read(FILES[name], as_version=4)


def code_of(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def cell_with(name, words):
    """Return the source of the only cell of a notebook that contains these words."""
    (source,) = [cell.source for cell in code_of(read(name)) if words in cell.source]
    return source


def settings_of(notebook):
    first = code_of(notebook)[0]
    assert first.metadata.tags == ["parameters"]
    (statement,) = ast.parse(first.source).body
    assert statement.targets[0].id == "settings"
    return ast.literal_eval(statement.value)
