"""Where every array of a run lives: a mesh of devices, and a list of rules from paths to axes.

The mesh has three axes. `data` repeats the parameters and splits the batch; `fsdp` splits both; `tensor` splits the
parameters inside a layer. Rules stand here beside the step and not inside modules, so that any model can be placed in
any way, and a run can go on elsewhere.
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
    """A mesh with the axes `data`, `fsdp` and `tensor`; `data=-1` takes all the devices that are left.

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
            f"a mesh of data={data} × fsdp={fsdp} × tensor={tensor} is for {data * fsdp * tensor} devices, there are "
            f"{len(devices)}: choose factors of {len(devices)}"
        )
    # Linen does not follow explicit axis types, which newer versions would choose.
    return jax.make_mesh((data, fsdp, tensor), AXES, axis_types=(AxisType.Auto,) * 3, devices=devices)


def path_name(path: Sequence[Any]) -> str:
    """The path of a leaf as text, its parts joined by `/`.

    >>> jax.tree_util.tree_flatten_with_path({"encoder": [0.0]})[0][0][0]
    (DictKey(key='encoder'), SequenceKey(idx=0))
    >>> path_name(_)
    'encoder/0'
    """
    return "/".join(str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", key)))) for key in path)


def shardings(tree: Any, mesh: Mesh, rules: Rules = RULES) -> Any:
    """The sharding of every leaf of a tree (of arrays, or of their shapes).

    An axis whose size the mesh does not divide is kept whole, as a vocabulary of 30,522 words on four devices is;
    `kept_whole` names them.
    """
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: NamedSharding(mesh, _spec(path_name(path), np.shape(leaf), mesh, rules)[0]), tree
    )


def kept_whole(tree: Any, mesh: Mesh, rules: Rules = RULES) -> list[str]:
    """The leaves of which an axis should be split by the rules, and is not, because its size does not divide.

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
    """The axes of one leaf, and whether one had to be given up."""
    found = next((spec for pattern, spec in rules if re.search(pattern, name)), P())
    if len(found) > len(shape):
        found = P()  # a statistic of a parameter, not of its shape
    sizes = [0 if axes is None else math.prod(mesh.shape[axis] for axis in _tuple(axes)) for axes in found]
    fits = [not size or length % size == 0 for length, size in zip(shape, sizes)]
    return P(*(axes if fit else None for axes, fit in zip(found, fits))), not all(fits)


def _tuple(axes: str | tuple[str, ...]) -> tuple[str, ...]:
    return (axes,) if isinstance(axes, str) else axes


def place_batch(batch: Mapping[str, np.ndarray], mesh: Mesh) -> dict[str, jax.Array]:
    """A batch on the devices, its rows split; each process gives its own rows of it."""
    sharding = NamedSharding(mesh, BATCH)
    parts = mesh.shape["data"] * mesh.shape["fsdp"] // jax.process_count() or 1
    for name, values in batch.items():
        if len(values) % parts:
            raise ValueError(
                f"a batch's {name} has {len(values)} rows, which {parts} devices cannot share equally: choose a "
                f"multiple of {parts}"
            )
    return {name: jax.make_array_from_process_local_data(sharding, values) for name, values in batch.items()}
