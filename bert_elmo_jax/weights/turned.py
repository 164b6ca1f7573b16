"""Kernels that a file stores [in, out], where the other kernels of its format are [out, in]."""

from collections.abc import Mapping, Sequence

import numpy as np

from bert_elmo_jax.weights.stored import StoredTensor


def turn_stored(stored: Mapping[str, StoredTensor], modules: Sequence[str]) -> dict[str, StoredTensor]:
    """Return the tensors of a file with the kernels of these modules as [out, in].

    >>> kernel = StoredTensor((1, 2), "float32", lambda: np.array([[1.0, 2.0]]))
    >>> turned = turn_stored({"h.0.attn.c_attn.weight": kernel}, ["attn.c_attn"])["h.0.attn.c_attn.weight"]
    >>> turned.shape, turned.read().tolist()
    ((2, 1), [[1.0], [2.0]])
    """

    def turn(tensor: StoredTensor) -> StoredTensor:
        return StoredTensor(tensor.shape[::-1], tensor.dtype, lambda: tensor.read().T)

    return {name: turn(tensor) if _is_kernel(name, modules) else tensor for name, tensor in stored.items()}


def turn_kernels(tensors: Mapping[str, np.ndarray], modules: Sequence[str]) -> dict[str, np.ndarray]:
    """Return tensors to write with the kernels of these modules transposed.

    >>> turn_kernels({"c_fc.weight": np.ones((2, 3)), "c_fc.bias": np.ones(2)}, ["c_fc"])["c_fc.weight"].shape
    (3, 2)
    """
    return {
        name: np.ascontiguousarray(tensor.T) if _is_kernel(name, modules) else tensor
        for name, tensor in tensors.items()
    }


def _is_kernel(name: str, modules: Sequence[str]) -> bool:
    module, _, kind = name.rpartition(".")
    return kind == "weight" and any(f".{module}".endswith(f".{ending}") for ending in modules)
