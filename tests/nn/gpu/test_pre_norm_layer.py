"""A GPT-2, a ModernBERT and a EuroBERT whose layers are kernels are the same models."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.families.piece_objective import piece_loss
from bert_elmo_jax.gpu_switches import DEFAULT, SWITCHES, using
from bert_elmo_jax.nn.gpu import pre_norm_layer
from experiments.benchmarks._inputs import make_batch

SIZES = {
    "num_layers": 3, "hidden_size": 48, "num_heads": 2, "feed_forward_size": 96, "vocab_size": 100,
    "max_positions": 16, "attention": "fused", "attention_dropout": 0.0, "dropout": 0.1, "initializer_range": 0.1,
}  # fmt: skip
BIASES = {"attention_bias": True, "feed_forward_bias": True, "norm_bias": True}
LONG = pytest.mark.long
# Rows of several sequences for GPT; a window, rotations and no first norm; RMSNorm, biases, and shared keys.
CASES = [
    pytest.param("gpt", {}, (), marks=LONG),
    pytest.param("gpt", {"remat": True, "scan": True}, (), marks=LONG),
    pytest.param("gpt", {"activation": "relu", "norm_first": False}, (), marks=LONG),
    ("modernbert", {"local_attention": 4}, ("mlm",)),
    pytest.param("modernbert", BIASES, ("mlm",), marks=LONG),
    pytest.param("eurobert", {"key_value_heads": 1, "attention_bias": True}, ("mlm",), marks=LONG),
]


def make(name, heads, dtype, fields):
    """Return a configuration, its parameters, and a function of kernels that gives the loss and its gradients."""
    family = get_family(name)
    fields = {**SIZES, "dtype": dtype, **fields}
    field_names = {field.name for field in dataclasses.fields(family.config)} | {"attention"}
    config = family.config(**{field: value for field, value in fields.items() if field in field_names})
    batch = dict(make_batch(config, 3, 11, "token" if heads else "next", sequences=1 if heads else 2))

    def total(params):
        terms = piece_loss(family, config, packed=not heads)(params, batch, jax.random.key(3), None)[0]
        return sum(total / weight for total, weight in terms.values())

    @functools.cache
    def params():
        plain = dataclasses.replace(config, dtype="float32")
        return jax.device_get(jax.jit(lambda: init_params(family, plain, jax.random.key(0), heads))())

    def run(kernels, compute=lambda f: jax.device_get(jax.jit(f)(params()))):
        with using(*kernels, interpret=True):
            return compute(jax.value_and_grad(total))

    return run, params


def far(result, exact):
    pairs = zip(*map(jax.tree.leaves, (result, exact)), strict=True)
    return sum(float(np.square(np.asarray(a, np.float64) - b).sum()) for a, b in pairs)


@pytest.mark.parametrize(("name", "fields", "heads"), CASES)
def test_the_same_loss_and_gradients(name, fields, heads, monkeypatch):
    run, _ = make(name, heads, "float32", fields)
    monkeypatch.setattr(pre_norm_layer, "suits", lambda config, *_: getattr(config, "norm_first", True))
    exact, ours = run(()), run(SWITCHES)
    assert np.allclose(ours[0], exact[0], rtol=1e-6)
    differences = jax.tree.map(lambda mine, right: float(np.abs(mine - right).max()), ours[1], exact[1])
    assert max(jax.tree.leaves(differences)) < 2e-5, differences
    if fields.get("norm_first", True):
        assert far(ours, exact) > 0, "without a rounding of its own, the kernels were not used"


@LONG
@pytest.mark.parametrize(
    ("name", "fields", "heads"), [case if isinstance(case, tuple) else case.values for case in CASES]
)
def test_half_precision_is_as_near_as_without_kernels(name, fields, heads):
    exact = make(name, heads, "float32", fields)[0](())
    run, _ = make(name, heads, "bfloat16", fields)
    before, after = run(()), run(SWITCHES)
    assert far(after, exact) <= 2 * far(before, exact)


@pytest.mark.parametrize(("name", "heads"), [("gpt", ()), ("modernbert", ("mlm",))])
def test_they_are_used_where_they_suit_and_only_if_switched_on(name, heads, monkeypatch):
    run, params = make(name, heads, "bfloat16", {})
    suits, answers = pre_norm_layer.suits, []
    monkeypatch.setattr(pre_norm_layer, "suits", lambda *a: answers.append(suits(*a)) or answers[-1])
    for kernels in ((), DEFAULT, SWITCHES):
        run(kernels, lambda f: jax.eval_shape(f, params()))
    assert answers == [True]
    make(name, heads, "float32", {})[0](SWITCHES, lambda f: jax.eval_shape(f, params()))
    assert answers == [True, False]
