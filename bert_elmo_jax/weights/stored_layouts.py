"""Tensors that a file stores otherwise than its format: several as one, part after part, or kernels as [in, out]."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from bert_elmo_jax.weights.stored import StoredTensor


def split_parts(
    stored: Mapping[str, StoredTensor], joined: Mapping[str, Sequence[str]], heads: int = 1
) -> dict[str, StoredTensor]:
    """Return the tensors of a file, with the parts of `joined` modules instead of the whole.

    Rows lie part by part, or for each of `heads` attention heads part by part. A tensor whose rows cannot be split
    evenly is not split, and is then reported as unexpected.

    >>> both = StoredTensor((4, 2), "float32", lambda: np.arange(8.0).reshape(4, 2))
    >>> parts = split_parts({"mlp.Wi.weight": both}, {"mlp.Wi": ("gate", "up")})
    >>> [(name, part.shape, part.read().tolist()) for name, part in parts.items()]
    [('mlp.Wi.gate.weight', (2, 2), [[0.0, 1.0], [2.0, 3.0]]), ('mlp.Wi.up.weight', (2, 2), [[4.0, 5.0], [6.0, 7.0]])]
    """
    split: dict[str, StoredTensor] = {}
    for name, tensor in stored.items():
        module, _, kind = name.rpartition(".")
        parts = next((parts for ending, parts in joined.items() if _ends(module, ending)), ())
        if not parts or not tensor.shape or tensor.shape[0] % (heads * len(parts)):
            split[name] = tensor
            continue
        shape = (tensor.shape[0] // len(parts), *tensor.shape[1:])
        for number, part in enumerate(parts):
            rows_of = _rows(tensor, heads, len(parts), number)
            split[f"{module}.{part}.{kind}"] = StoredTensor(shape, tensor.dtype, rows_of)
    return split


def join_parts(
    tensors: Mapping[str, np.ndarray], joined: Mapping[str, Sequence[str]], heads: int = 1
) -> dict[str, np.ndarray]:
    """Return the tensors with the parts of `joined` modules put together again, as `split_parts` reads them."""
    joined_tensors: dict[str, np.ndarray] = {}
    for name, tensor in tensors.items():
        module, _, kind = name.rpartition(".")
        above, _, part = module.rpartition(".")
        parts = next((parts for ending, parts in joined.items() if _ends(above, ending) and part in parts), None)
        if parts is None:
            joined_tensors[name] = tensor
        elif part == parts[0]:
            apart = [tensors[f"{above}.{other}.{kind}"] for other in parts]
            by_head = np.stack([part.reshape(heads, -1, *part.shape[1:]) for part in apart], axis=1)
            joined_tensors[f"{above}.{kind}"] = by_head.reshape(-1, *tensor.shape[1:])
    return joined_tensors


def turn_stored(stored: Mapping[str, StoredTensor], modules: Sequence[str]) -> dict[str, StoredTensor]:
    """Return the tensors of a file with the kernels of these modules as [out, in]."""

    def turn(tensor: StoredTensor) -> StoredTensor:
        return StoredTensor(tensor.shape[::-1], tensor.dtype, lambda: tensor.read().T)

    return {name: turn(tensor) if _is_kernel(name, modules) else tensor for name, tensor in stored.items()}


def turn_kernels(tensors: Mapping[str, np.ndarray], modules: Sequence[str]) -> dict[str, np.ndarray]:
    """Return tensors to write with the kernels of these modules transposed."""
    return {
        name: np.ascontiguousarray(tensor.T) if _is_kernel(name, modules) else tensor
        for name, tensor in tensors.items()
    }


def _is_kernel(name: str, modules: Sequence[str]) -> bool:
    module, _, kind = name.rpartition(".")
    return kind == "weight" and any(_ends(module, ending) for ending in modules)


def _ends(module: str, ending: str) -> bool:
    return f".{module}".endswith(f".{ending}")


def _rows(tensor: StoredTensor, heads: int, parts: int, number: int) -> Callable[[], np.ndarray]:
    rest = tensor.shape[1:]
    return lambda: tensor.read().reshape(heads, parts, -1, *rest)[:, number].reshape(-1, *rest)
