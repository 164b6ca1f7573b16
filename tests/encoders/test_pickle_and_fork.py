"""A loaded model can be pickled, and refuses to compute in a fork of its process."""

import copy
import os
import pickle

import jax
import numpy as np
import pytest

from bert_elmo_jax import load

from ..inference.test_task_model import TEXTS, write

GOLDENS = ("bert_tiny", "elmo_tiny", "transformer_tiny")


@pytest.fixture(scope="module")
def task_model(tmp_path_factory):
    return load(write(tmp_path_factory.mktemp("run") / "run", "sst2", labels=("a", "b")))


def vectors(model):
    if hasattr(model, "task"):
        return np.array([prediction.probability for prediction in model.predict(TEXTS)])
    if model.reads is None and not hasattr(model, "mix"):  # without a tokenizer
        output = model.forward(np.array([[5, 6, 7]]))
        return np.asarray(output.encoder_layers if hasattr(output, "encoder_layers") else output.layers)
    return np.asarray(model.encode([["[MASK]", "a"]]).layers if hasattr(model, "mix") else model.encode(["a"]).last)


@pytest.mark.parametrize("name", [*GOLDENS, "task"])
def test_pickles(name, goldens, task_model):
    model = task_model if name == "task" else load(goldens / name)
    before = vectors(model)  # with everything compiled, and cached
    again = pickle.loads(pickle.dumps(model))
    assert type(again) is type(model) and again.source == model.source
    np.testing.assert_array_equal(vectors(again), before)
    assert again.fingerprint == model.fingerprint
    np.testing.assert_array_equal(vectors(copy.copy(model)), before)
    assert len(pickle.dumps(model)) < 1.2 * sum(array.nbytes for array in jax.tree.leaves(model.params)) + 500_000


@pytest.mark.parametrize("name", [*GOLDENS, "task"])
def test_a_fork_is_refused(name, goldens, task_model, monkeypatch):
    model = task_model if name == "task" else load(goldens / name)
    vectors(model)
    pid = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: pid + 1)
    message = rf"loaded in process {pid}, and JAX cannot compute in a fork of it: load the model after the fork, or"
    with pytest.raises(RuntimeError, match=message):
        vectors(model)
    with pytest.raises(RuntimeError, match=message):
        model.params  # noqa: B018
    assert repr(model)
    assert len(vectors(pickle.loads(pickle.dumps(model))))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_a_real_fork_ends(goldens):
    model = load(goldens / "bert_tiny")
    vectors(model)
    child = os.fork()
    if child == 0:
        try:
            vectors(model)
        except RuntimeError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
