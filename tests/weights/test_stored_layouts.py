"""Tensors that a file stores otherwise than its format: joined ones, and kernels as [in, out]."""

import numpy as np
import pytest

from bert_elmo_jax.weights.stored import StoredTensor
from bert_elmo_jax.weights.stored_layouts import join_parts, split_parts, turn_kernels, turn_stored

PARTS = {"attn.Wqkv": ("query", "key", "value"), "mlp.Wi": ("gate", "up")}


def stored(*shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    return StoredTensor(shape, "float32", lambda: array)


@pytest.mark.parametrize("name", ["attn.Wqkv.weight", "model.layers.3.attn.Wqkv.bias", "layers.0.mlp.Wi.weight"])
def test_split_and_joined_it_is_the_same(name):
    tensor = stored(6, 2) if name.endswith("weight") else stored(6)
    parts = split_parts({name: tensor, "other.weight": stored(3)}, PARTS)
    assert len(parts) == 1 + (2 if "Wi" in name else 3) and name not in parts
    joined = join_parts({name: part.read() for name, part in parts.items()}, PARTS)
    assert list(joined) == [name, "other.weight"]
    np.testing.assert_array_equal(joined[name], tensor.read())


def test_other_tensors_stay():
    tensors = {"attn.Wqkv.weight": stored(7, 2), "mlp.Wi.weight": stored(), "my_mlp.Wi.weight": stored(4)}
    assert split_parts(tensors, PARTS) == tensors
    tensors = {"attn.Wqkv.query.weight": np.ones(2)}
    assert join_parts(tensors, {}) == tensors


MODULES = ("attn.c_attn", "c_fc")


def test_only_the_kernels_of_the_named_modules_are_turned():
    tensors = {
        "h.0.attn.c_attn.weight": np.arange(6.0).reshape(2, 3),
        "h.0.attn.c_attn.bias": np.arange(3.0),
        "h.0.other_c_fc.weight": np.ones((2, 3)),
        "c_fc.weight": np.ones((4, 2)),
    }
    stored = {n: StoredTensor(t.shape, str(t.dtype), lambda t=t: t) for n, t in tensors.items()}
    turned = {name: tensor.read() for name, tensor in turn_stored(stored, MODULES).items()}
    shapes = {name: tensor.shape for name, tensor in turn_stored(stored, MODULES).items()}
    assert shapes == {name: value.shape for name, value in turned.items()}
    assert list(shapes.values()) == [(3, 2), (3,), (2, 3), (2, 4)]
    again = turn_kernels(turned, MODULES)
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(again[name], tensor)
        assert again[name].flags["C_CONTIGUOUS"]
