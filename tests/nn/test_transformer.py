"""Examples of `bert_elmo_jax.nn.transformer`, and what families vary: the width of embeddings, the activation."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from bert_elmo_jax.nn import activation
from bert_elmo_jax.nn.transformer import MaskedLM, Pooler

pytestmark = pytest.mark.usefixtures("strict_dtypes")
CONFIG = SimpleNamespace(hidden_size=8, initializer_range=0.5, norm_eps=1e-12, activation="relu", dtype="float32")
HIDDEN = jax.random.normal(jax.random.key(0), (2, 5, 8))


@pytest.mark.parametrize("name", ["tanh", "relu"])
def test_pooler(name):
    pooled, variables = Pooler(CONFIG, name).init_with_output(jax.random.key(1), HIDDEN)
    params = variables["params"]
    expected = activation(name)(HIDDEN[:, 0] @ params["kernel"])
    np.testing.assert_allclose(pooled, expected, atol=1e-6)
    both = Pooler(CONFIG, name).apply(variables, HIDDEN, np.array([[0, 3], [0, 1]]))
    assert both.shape == (2, 2, 8)
    np.testing.assert_allclose(both[:, 0], pooled, atol=1e-6)
    every = Pooler(CONFIG, name).apply(variables, HIDDEN, every=True)
    np.testing.assert_allclose(every[:, [0, 3]][0], both[0], atol=1e-6)


@pytest.mark.parametrize(("head_activation", "used"), [(None, "relu"), ("gelu", "gelu")])
def test_a_head_of_narrower_embeddings(head_activation, used):
    words = jax.random.normal(jax.random.key(2), (11, 6))
    logits, variables = MaskedLM(CONFIG, head_activation).init_with_output(jax.random.key(1), HIDDEN, words)
    params = variables["params"]
    assert params["dense"]["kernel"].shape == (8, 6) and logits.shape == (2, 5, 11)
    x = np.asarray(activation(used)(HIDDEN @ params["dense"]["kernel"]))
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
    np.testing.assert_allclose(logits, x @ np.asarray(words).T, atol=1e-4)
