"""Loading a model and starting a run import a bounded part of the package."""

import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bert_elmo_jax import optim

ROOT = Path(__file__).parents[2]
COUNT = "import sys; print(*sorted(name for name in sys.modules if name.startswith('bert_elmo_jax')))"
DATA, RUN = "import bert_elmo_jax.data", "import bert_elmo_jax.runs.pretraining"
LOAD = "from bert_elmo_jax import load; load('tests/goldens/bert_tiny').encode(['강가의 은행'])"
LAZY = (
    "import importlib; packages = [importlib.import_module(f'bert_elmo_jax.{name}') for name in "
    "('heads', 'inference', 'losses', 'networks', 'nn', 'optim', 'text', 'train')]; "
    "assert all(getattr(package, name) is not None for package in packages for name in package.__all__); "
    "from bert_elmo_jax.nn import dropout; assert callable(dropout)"
)
# Of every family, finding a format imports these; of the others than the one that is loaded, nothing more.
FORMATS = re.compile(r"bert_elmo_jax\.families\.\w+(\.formats|\.files|\.json_fields)?")


@functools.cache
def imported_by(*programs: str) -> list[list[str]]:
    """Return the imported modules after each of these programs, which run in one process, one after the other."""
    source = "\n".join(f"{program}; {COUNT}" for program in programs)
    done = subprocess.run([sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_few_modules_are_imported() -> None:
    for modules, most in zip(imported_by(DATA, LOAD) + imported_by(RUN, LAZY)[:1], (3, 88, 161), strict=True):
        counted = [name for name in modules if not FORMATS.fullmatch(name)]
        assert len(counted) <= most, counted


def test_loading_a_bert_imports_no_other_model_no_other_reader_and_no_task() -> None:
    _, modules = imported_by(DATA, LOAD)
    models = [name for name in modules if name.startswith("bert_elmo_jax.families") and name.endswith(".model")]
    assert models == ["bert_elmo_jax.families.bert.model"]
    unused = "train", "losses", "optim", "networks", "data.tasks", "weights.tensor_bundle", "weights.hdf5", "heads.task"
    assert [name for name in modules if name.startswith(tuple(f"bert_elmo_jax.{part}" for part in unused))] == []


def test_names_of_lazy_packages_are_found_and_unknown_ones_refused() -> None:
    assert len(imported_by(RUN, LAZY)[1]) > 90
    with pytest.raises(AttributeError, match=r"module 'bert_elmo_jax\.optim' has no attribute 'adam'; it has Lora, .*"):
        optim.adam  # noqa: B018 -- raises
