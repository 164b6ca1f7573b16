"""LSTMs of torch: their gates, their two biases, and trees that are sums of tensors.

The gates are i, f, g, o there, and i, j (= g), f, o here, where the forget gate has a bias of 1 of its own. Of torch's
two biases, only the sum matters.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.weights.parameter_tree import FLOATS, Report, flatten, nest
from bert_elmo_jax.weights.stored import StoredTensor

GATES = (0, 2, 1, 3)  # places of torch's gates i, f, g, o in the order i, g, f, o; the same permutation goes back
LAYER = "encoder/layer_"  # the beginning of the paths whose tensors have gates
Table = Mapping[str, tuple[str, ...]]  # our path -> the tensors whose sum it is; none: a bias that torch leaves out


def read_sums(
    stored: Mapping[str, StoredTensor], table: Table, shapes: Mapping[str, tuple[int, ...]], report: Report
) -> dict[str, Any]:
    """Read the tree of these shapes as float32 and fill in the report; raise if the weights cannot be used.

    Kernels are stored [out, in]. A path of the `table` without a shape contradicts the configuration.
    """
    for path, shape in shapes.items():
        lacking = [name for name in table[path] if name not in stored] if path in table else [path]
        if lacking:
            report.missing[path] = ", ".join(lacking)
            continue
        expected = shape[::-1] if path.endswith("kernel") else shape
        for name in table[path]:
            tensor = stored[name]
            if tensor.shape != expected or tensor.dtype not in FLOATS:
                types = ", ".join(sorted(FLOATS))
                report.misshaped[name] = f"{list(tensor.shape)} of {tensor.dtype}, expected {list(expected)} of {types}"
        report.mapped[path] = " + ".join(table[path]) or "no biases"
    report.contradictions += [f"{path} is not in the configuration" for path in table if path not in shapes]
    used = {name for names in table.values() for name in names} | set(report.skipped)
    report.unexpected += sorted(set(stored) - used)
    report.raise_if_unusable()
    with np.errstate(all="ignore"):  # values too large for float32 become infinity, which is reported below
        flat = {path: _to_ours(path, shape, [stored[name] for name in table[path]]) for path, shape in shapes.items()}
    broken = [report.mapped[path] for path, array in flat.items() if not np.isfinite(array).all()]
    if broken:
        raise ValueError(
            f"{report.source} holds NaN or infinity (as float32) in {', '.join(broken)}; the file is damaged"
        )
    return nest(flat)


def make_tensors(params: Mapping[str, Any], table: Table) -> dict[str, np.ndarray]:
    """Return the tensors of a tree; of several whose sum is a parameter, all but the first are zeros."""
    flat, tensors = flatten(params), {}
    for path, (first, *further) in table.items():
        array = np.array(flat[path], np.float32)
        if path.startswith(LAYER):
            if path.endswith("bias"):
                array[_forget(array)] += 1
            array = reorder_gates(array.T)
        elif path.endswith("kernel"):
            array = array.T
        tensors[first] = np.ascontiguousarray(array)  # safetensors writes the raw bytes
        tensors |= {name: np.zeros_like(array) for name in further}
    return tensors


def reorder_gates(array: Float32[np.ndarray, "G ..."]) -> Float32[np.ndarray, "G ..."]:
    """Return an array with torch's order of gates in ours, or the other way around.

    >>> reorder_gates(np.float32([1, 2, 3, 4])).tolist()
    [1.0, 3.0, 2.0, 4.0]
    """
    parts = np.split(array, 4)
    return np.concatenate([parts[gate] for gate in GATES])


def _forget(array: np.ndarray) -> slice:
    """Return the place of the forget gate in our order."""
    return slice(len(array) // 2, len(array) // 4 * 3)


def _to_ours(path: str, shape: tuple[int, ...], stored: list[StoredTensor]) -> Float32[np.ndarray, "..."]:
    arrays = [np.array(tensor.read(), np.float32) for tensor in stored]
    array = sum(arrays[1:], arrays[0]) if arrays else np.zeros(shape, np.float32)
    if path.startswith(LAYER):
        array = reorder_gates(array)
    if path.endswith("kernel"):
        return np.ascontiguousarray(array.T)
    if path.startswith(LAYER):
        array[_forget(array)] -= 1
    return array
