"""Loading a model and starting a run import a bounded part of the package, and no module imports itself in a circle."""

import ast
import functools
import graphlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COUNT = "import sys; print(*sorted(name for name in sys.modules if name.startswith('bert_elmo_jax')))"
LOAD = "from bert_elmo_jax import load; load('tests/goldens/bert_tiny').encode(['강가의 은행'])"


@functools.cache
def imported_by(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", f"{program}; {COUNT}"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


# Of every family, finding a format imports these; of the others than the one that is loaded, nothing more.
FORMATS = re.compile(r"bert_elmo_jax\.families\.\w+(\.formats|\.files|\.json_fields)?")


@pytest.mark.parametrize(
    ("program", "most"), [(LOAD, 75), ("import bert_elmo_jax.runs.pretraining", 132), ("import bert_elmo_jax.data", 3)]
)
def test_few_modules_are_imported(program: str, most: int) -> None:
    modules = [name for name in imported_by(program) if not FORMATS.fullmatch(name)]
    assert len(modules) <= most, modules


def test_loading_a_bert_imports_no_other_model() -> None:
    models = [
        name for name in imported_by(LOAD) if name.startswith("bert_elmo_jax.families") and name.endswith(".model")
    ]
    assert models == ["bert_elmo_jax.families.bert.model"]


def test_loading_a_bert_imports_no_other_reader_and_no_task() -> None:
    unused = "train", "losses", "optim", "networks", "data.tasks", "weights.tensor_bundle", "weights.hdf5", "heads.task"
    modules = imported_by(LOAD)
    assert [name for name in modules if name.startswith(tuple(f"bert_elmo_jax.{part}" for part in unused))] == []


def imports_of(module: str, file: Path, modules: set[str]) -> set[str]:
    """Return the modules that a module imports while it is imported itself."""
    found = set()
    waiting: list[ast.AST] = list(ast.parse(file.read_text(encoding="utf-8")).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}  # modules, or objects of a module
            found |= names & modules or {str(node.module)}
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return found & modules - {module}


def test_no_module_imports_itself_in_a_circle() -> None:
    files = {
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
        for file in (ROOT / "bert_elmo_jax").rglob("*.py")
    }
    graph = {module: imports_of(module, file, set(files)) for module, file in files.items()}
    assert len(graph) > 200 and graph["bert_elmo_jax.nn.attention"] >= {"bert_elmo_jax.nn.layers"}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_names_of_lazy_packages_are_found() -> None:
    program = (
        "import importlib; packages = [importlib.import_module(f'bert_elmo_jax.{name}') for name in "
        "('heads', 'inference', 'losses', 'networks', 'nn', 'optim', 'text', 'train')]; "
        "assert all(getattr(package, name) is not None for package in packages for name in package.__all__); "
        "from bert_elmo_jax.nn import dropout; assert callable(dropout)"
    )
    assert len(imported_by(program)) > 90


def test_an_unknown_name_is_refused() -> None:
    from bert_elmo_jax import optim

    with pytest.raises(
        AttributeError, match=r"module 'bert_elmo_jax\.optim' has no attribute 'adam'; it has Lora, Merge, Rows,.*"
    ):
        optim.adam  # noqa: B018 -- raises
