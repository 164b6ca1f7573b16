"""Programs in the tests' own process, each with flags of its own, as when it is started alone."""

import functools
import importlib
import sys

import jax
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


@pytest.fixture
def one_device(monkeypatch):
    """What is compiled for eight takes three times as long."""
    from bert_elmo_jax import train

    monkeypatch.setattr(train, "make_mesh", functools.partial(train.make_mesh, devices=jax.devices()[:1]))
