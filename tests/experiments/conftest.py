"""Programs in the tests' own process, each with flags of its own, as when it is started alone."""

import importlib
import sys

import pytest
from absl import flags


@pytest.fixture(scope="module")
def program():
    """Imports a module of experiments by name; its flags leave with the test file: others may have the same names."""
    before = set(flags.FLAGS)

    def take(name):
        module = importlib.import_module(f"experiments.{name}")
        flags.FLAGS.mark_as_parsed()
        return module

    yield take
    for name in set(flags.FLAGS) - before:
        delattr(flags.FLAGS, name)
    for name in [name for name in sys.modules if name.startswith("experiments.")]:
        del sys.modules[name]
