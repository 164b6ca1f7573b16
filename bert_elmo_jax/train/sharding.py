"""The placement of arrays: a mesh of devices, and a list of rules that map paths to axes.

The mesh has three axes. `data` replicates the parameters and splits the batch; `fsdp` splits both; `tensor` splits the
parameters inside a layer. Modules do not know the rules, so any model can be placed in any way, and a run can resume
on other devices.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = ("data", "fsdp", "tensor")
BATCH = P(("data", "fsdp"))

Rules = Sequence[tuple[str, P]]

# The first pattern found in a path decides; a parameter that matches none is replicated. Moments of an optimiser lie
# under the path of their parameter, so they follow it. Families put their own rules before these.
RULES: Rules = ((r"/kernel$", P("fsdp")),)


def make_mesh(data: int = -1, fsdp: int = 1, tensor: int = 1, devices: Sequence[jax.Device] | None = None) -> Mesh:
    """Make a mesh with the axes `data`, `fsdp` and `tensor`; `data=-1` takes all remaining devices.

    >>> make_mesh().axis_names
    ('data', 'fsdp', 'tensor')
    """
    devices = jax.devices() if devices is None else devices
    if fsdp < 1 or tensor < 1 or (data < 1 and data != -1):
        raise ValueError(f"a mesh of data={data}, fsdp={fsdp}, tensor={tensor}: use whole numbers from 1 (data: or -1)")
    if data == -1:
        data = len(devices) // (fsdp * tensor)
    if data * fsdp * tensor != len(devices):
        raise ValueError(
            f"a mesh of data={data} × fsdp={fsdp} × tensor={tensor} is for {data * fsdp * tensor} devices, but there "
            f"are {len(devices)}: choose factors of {len(devices)}"
        )
    # Linen does not support explicit axis types, the default of newer versions.
    return jax.make_mesh((data, fsdp, tensor), AXES, axis_types=(AxisType.Auto,) * 3, devices=devices)


def path_name(path: Sequence[Any]) -> str:
    """Return the path of a leaf as text, joined by `/`.

    >>> jax.tree_util.tree_flatten_with_path({"encoder": [0.0]})[0][0][0]
    (DictKey(key='encoder'), SequenceKey(idx=0))
    >>> path_name(_)
    'encoder/0'
    """
    return "/".join(str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", key)))) for key in path)


def shardings(tree: Any, mesh: Mesh, rules: Rules = RULES) -> Any:
    """Return the sharding of every leaf of a tree of arrays or shapes.

    An axis is not split if the mesh does not divide its size, such as 30,522 words on four devices; see `kept_whole`.
    """
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: NamedSharding(mesh, _spec(path_name(path), np.shape(leaf), mesh, rules)[0]), tree
    )


def kept_whole(tree: Any, mesh: Mesh, rules: Rules = RULES) -> list[str]:
    """Return the leaves with an axis that the rules split but the mesh does not divide.

    >>> kept_whole({"lm": {"bias": np.zeros(30523)}}, make_mesh())
    []
    """
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return [
        f"{path_name(path)} {list(np.shape(leaf))}"
        for path, leaf in leaves
        if _spec(path_name(path), np.shape(leaf), mesh, rules)[1]
    ]


def _spec(name: str, shape: tuple[int, ...], mesh: Mesh, rules: Rules) -> tuple[P, bool]:
    """Return the axes of one leaf, and whether one of them could not be split."""
    found = next((spec for pattern, spec in rules if re.search(pattern, name)), P())
    if len(found) > len(shape):
        found = P()  # a statistic of a parameter, with fewer axes
    sizes = [
        0 if axes is None else math.prod(mesh.shape[axis] for axis in (axes if isinstance(axes, tuple) else (axes,)))
        for axes in found
    ]
    fits = [not size or length % size == 0 for length, size in zip(shape, sizes)]
    return P(*(axes if fit else None for axes, fit in zip(found, fits))), not all(fits)


def check_rows(batch: Mapping[str, Any], parts: int) -> None:
    """Raise if the rows of a batch, of arrays or shapes, cannot be split into equal parts."""
    for name, values in batch.items():
        rows = values.shape[0]
        if rows % parts:
            raise ValueError(
                f"a batch's {name} has {rows} rows, which {parts} devices cannot share equally: choose a multiple of "
                f"{parts}"
            )


def place_batch(batch: Mapping[str, np.ndarray], mesh: Mesh) -> dict[str, jax.Array]:
    """Put a batch onto the devices, split by rows; each process passes its own rows."""
    sharding = NamedSharding(mesh, BATCH)
    check_rows(batch, mesh.shape["data"] * mesh.shape["fsdp"] // jax.process_count() or 1)
    return {name: jax.make_array_from_process_local_data(sharding, values) for name, values in batch.items()}
