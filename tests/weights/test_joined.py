import numpy as np
import pytest

from bert_elmo_jax.weights.joined import join_parts, split_parts
from bert_elmo_jax.weights.stored import StoredTensor

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
