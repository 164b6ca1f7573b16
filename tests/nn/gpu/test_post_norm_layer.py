"""A BERT whose layers are kernels is the same BERT."""

import functools

import jax
import numpy as np
import pytest

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.families.piece_objective import FULL, mark_full, piece_loss
from bert_elmo_jax.gpu_switches import SWITCHES, using
from bert_elmo_jax.nn.gpu import post_norm_layer
from experiments.benchmarks._inputs import make_batch

FAMILY = get_family("bert")
SIZES = {
    "num_layers": 2, "hidden_size": 48, "num_heads": 2, "feed_forward_size": 96, "vocab_size": 100,
    "max_positions": 16, "attention": "fused", "attention_dropout": 0.0, "dropout": 0.1, "initializer_range": 0.1,
}  # fmt: skip


def loss_and_gradients(kernels, full, dtype, run=lambda f, params: jax.device_get(jax.jit(f)(params)), **fields):
    config = FAMILY.config(**{**SIZES, "dtype": dtype, **fields})
    batch = dict(make_batch(config, 3, 11))
    if not full:
        lengths = np.array([[11], [7], [1]])
        batch["segments"] = batch["segments"] * (np.arange(11) < lengths)
        batch["mlm_weights"] = batch["mlm_weights"] * (batch["mlm_positions"] < lengths)
    with using(*kernels, interpret=True):
        batch = mark_full(batch)
        assert (FULL in batch) == (full and "full_rows" in kernels)
        loss = piece_loss(FAMILY, config, pairs=True, packed=False)

        def total(params):
            terms = loss(params, batch, jax.random.key(3), None)[0]
            return sum(total / weight for total, weight in terms.values())

        return run(jax.value_and_grad(total), params())


@functools.cache
def params():
    init = jax.jit(lambda: init_params(FAMILY, FAMILY.config(**SIZES), jax.random.key(0), ("mlm", "nsp"), pooler=True))
    return jax.device_get(init())


CASES = [(True, {"remat": True, "scan": True}), (False, {"num_layers": 1})]


@pytest.mark.parametrize(("full", "fields"), CASES)
def test_the_layer_is_used_where_it_suits(full, fields, monkeypatch):
    """It is traced; `test_kernels.py` has the numbers of each kernel, and `make proofs` the numbers of a whole BERT."""
    suits = post_norm_layer.suits
    calls = []
    monkeypatch.setattr(post_norm_layer, "suits", lambda *a: calls.append(suits(*a)) or calls[-1])
    for kernels in ((), SWITCHES):
        loss_and_gradients(kernels, full, "bfloat16", jax.eval_shape, **fields)
    assert calls == [True]  # without switches it is not asked


@pytest.mark.long
@pytest.mark.parametrize(("full", "fields"), CASES)
def test_the_same_loss_and_gradients(full, fields, monkeypatch):
    monkeypatch.setattr(post_norm_layer, "suits", lambda *_: True)
    exact = loss_and_gradients((), full, "float32", **fields)
    wide = loss_and_gradients(SWITCHES, full, "float32", **fields)
    assert np.allclose(wide[0], exact[0], rtol=1e-6)
    differences = jax.tree.map(lambda ours, right: float(np.abs(ours - right).max()), wide[1], exact[1])
    wrong = [place for place, far in jax.tree_util.tree_leaves_with_path(differences) if far > 2e-5]
    assert not wrong, differences


@pytest.mark.long
@pytest.mark.parametrize(("full", "fields"), CASES)
def test_half_precision_is_as_near_as_without_kernels(full, fields):
    exact = loss_and_gradients((), full, "float32", **fields)
    before, after = (loss_and_gradients(kernels, full, "bfloat16", **fields) for kernels in ((), SWITCHES))

    def far(result):
        return sum(float(np.square(a - b).sum()) for a, b in zip(*map(jax.tree.leaves, (result, exact)), strict=True))

    assert far(after) <= 2 * far(before)  # of so few numbers; each kernel has its own, closer test
