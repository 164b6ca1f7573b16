"""Kernels that are stored as [in, out]: transposed on reading, and back on writing."""

import numpy as np

from bert_elmo_jax.weights.stored import StoredTensor
from bert_elmo_jax.weights.turned import turn_kernels, turn_stored

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
