"""The types of `load`, for a project that uses the package, and the classes that it returns."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import bert_elmo_jax
from bert_elmo_jax.families.cove.encoder import CoveEncoder
from bert_elmo_jax.families.elmo.encoder import ElmoEncoder
from bert_elmo_jax.families.piece_encoder import PieceEncoder
from bert_elmo_jax.families.transformer.translator import Translator
from bert_elmo_jax.inference.model_types import Model
from bert_elmo_jax.inference.task_model import TaskModel

ROOT = Path(__file__).parents[2]
CLASSES = (PieceEncoder, TaskModel, ElmoEncoder, CoveEncoder, Translator)
METHODS = [name for name, value in vars(Model).items() if inspect.isfunction(value) and not name.startswith("_")]
USE = """
from bert_elmo_jax import __version__, load

model = load("x")
last = model.encode(["a"], layers="all").last
shape: tuple[int, ...] = last.shape
reveal_type(model)
reveal_type(last)
reveal_type(model.fill_mask("a [MASK]")[0].probability)
reveal_type(__version__)
"""


@pytest.mark.long
def test_another_project_sees_arrays(tmp_path):
    def check(text):
        (tmp_path / "use.py").write_text(text, encoding="utf-8")
        words = [sys.executable, "-m", "mypy", "--strict", "--disallow-any-expr", "--follow-imports=silent", "use.py"]
        environment = {**os.environ, "MYPYPATH": str(ROOT)}
        return subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True).stdout

    shown = check(USE)
    assert "Success" in shown and '"Any"' not in shown, shown
    assert 'is "bert_elmo_jax.inference.model_types.Model"' in shown
    assert 'is "numpy.ndarray[' in shown and shown.count('"float"') == 1 and shown.count('"str"') == 1
    assert '"Model" has no attribute "encoed"; maybe "encode"?' in check(f"{USE}\nmodel.encoed\n")
    assert 'has no attribute "laod"' in check("import bert_elmo_jax\n\nbert_elmo_jax.laod\n")


@pytest.mark.parametrize("name", METHODS)
def test_a_class_has_each_method_with_its_arguments(name):
    classes = [cls for cls in CLASSES if hasattr(cls, name)]
    assert classes, name
    arguments = [set(inspect.signature(getattr(cls, name)).parameters) for cls in classes]
    typed = [p for p in inspect.signature(getattr(Model, name)).parameters.values() if p.kind is p.KEYWORD_ONLY]
    assert {p.name for p in typed} <= set().union(*arguments)


def test_the_earlier_name_of_an_argument_warns():
    with pytest.warns(DeprecationWarning, match=r"implementation=…\) is now load\(attention=…\)"):
        model = bert_elmo_jax.load(ROOT / "tests" / "goldens" / "bert_tiny", implementation="reference")
    assert model.config.attention == "reference"


def test_public_names():
    assert dir(bert_elmo_jax) == sorted(bert_elmo_jax.__all__) and {"load", "__version__", "nn"} <= set(
        dir(bert_elmo_jax)
    )
    for name in bert_elmo_jax.__all__:
        getattr(bert_elmo_jax, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'laod'; it has .*; did you mean load\?"):
        bert_elmo_jax.laod  # noqa: B018
