"""Run a step on many devices: `jit` over a mesh, with rules that map paths to axes, or `pmap`.

The mesh has three axes. `data` replicates the parameters and splits the batch; `fsdp` splits both; `tensor` splits the
parameters inside a layer. Modules do not know the rules, so any model can be placed in any way, and a run can resume
on other devices.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from bert_elmo_jax.optim.paths import path_name
from bert_elmo_jax.train.step import State, Step

DEVICES = "devices"  # pmap's axis
AXES = ("data", "fsdp", "tensor")
BATCH = P(("data", "fsdp"))

Rules = Sequence[tuple[str, P]]

# The first pattern found in a path decides; a parameter that matches none is replicated. Moments of an optimiser lie
# under the path of their parameter, so they follow it. Families put their own rules before these.
RULES: Rules = ((r"/kernel$", P("fsdp")),)
EMPTY: Mapping[str, Any] = MappingProxyType({})


def make_mesh(data: int = -1, fsdp: int = 1, tensor: int = 1, devices: Sequence[jax.Device] | None = None) -> Mesh:
    """Make a mesh with the axes `data`, `fsdp` and `tensor`; `data=-1` takes all remaining devices.

    >>> make_mesh().axis_names
    ('data', 'fsdp', 'tensor')
    """
    devices = jax.devices() if devices is None else devices
    if min(fsdp, tensor) < 1 or (data < 1 and data != -1):
        raise ValueError(f"a mesh of data={data} × fsdp={fsdp} × tensor={tensor}: use whole numbers from 1")
    if data == -1:
        data = len(devices) // (fsdp * tensor)
        if data * fsdp * tensor != len(devices):
            raise ValueError(
                f"a mesh of fsdp={fsdp} × tensor={tensor} needs {fsdp * tensor} devices or a multiple, but there "
                f"{'is' if len(devices) == 1 else 'are'} {len(devices)}: choose factors of {len(devices)}"
            )
    if data * fsdp * tensor != len(devices):
        raise ValueError(
            f"a mesh of data={data} × fsdp={fsdp} × tensor={tensor} is for {data * fsdp * tensor} devices, but there "
            f"are {len(devices)}: choose factors of {len(devices)}"
        )
    # Linen does not support explicit axis types, the default of newer versions.
    mesh = jax.make_mesh((data, fsdp, tensor), AXES, axis_types=(AxisType.Auto,) * 3, devices=devices)
    check_processes(mesh.devices)
    return mesh


def check_processes(devices: np.ndarray) -> None:
    """Raise if devices along the last axis of a mesh, `tensor`, are of several processes.

    They need the same rows of a batch, but each process reads different ones.
    """
    data, fsdp, tensor = devices.shape
    processes = {device.process_index for device in devices.flat}
    if any(len({device.process_index for device in row}) > 1 for row in devices.reshape(-1, tensor)):
        raise ValueError(
            f"a mesh of data={data} × fsdp={fsdp} × tensor={tensor} splits a layer across {len(processes)} processes, "
            f"each of which reads different rows: lower tensor to a factor of the {devices.size // len(processes)} "
            "devices of a process"
        )


def shardings(tree: Any, mesh: Mesh, rules: Rules = RULES) -> Any:
    """Return the sharding of every leaf; an axis that the mesh does not divide is not split (see `kept_whole`)."""
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
    spec = next((spec for pattern, spec in rules if re.search(pattern, name)), P())
    if len(spec) > len(shape):
        spec = P()  # a statistic of a parameter, with fewer axes
    sizes = [
        0 if axes is None else math.prod(mesh.shape[axis] for axis in (axes if isinstance(axes, tuple) else (axes,)))
        for axes in spec
    ]
    divisible = [not size or length % size == 0 for length, size in zip(shape, sizes)]
    return P(*(axes if fit else None for axes, fit in zip(spec, divisible))), not all(divisible)


def check_rows(batch: Mapping[str, Any], parts: int) -> None:
    """Raise if the rows of a batch, of arrays or shapes, cannot be split into equal parts.

    >>> check_rows({"x": np.zeros((6, 2))}, 4)
    Traceback (most recent call last):
    ValueError: a batch's x has 6 rows, which 4 devices cannot share equally: choose a multiple of 4
    """
    for name, values in batch.items():
        rows = values.shape[0]
        if rows % parts:
            raise ValueError(
                f"a batch's {name} has {rows} rows, which {parts} devices cannot share equally: choose a multiple of "
                f"{parts}"
            )


@dataclass(frozen=True)
class Parallel:
    """A compiled step with its input and output conversions.

    `place` puts a state onto the devices, `put` a training batch. `step` donates the state it is given. `gather`
    returns the state in the layout of checkpoints and evaluations, and `put_held_out` places a batch to evaluate it.
    """

    place: Callable[[State], State]
    put: Callable[[Mapping[str, np.ndarray]], Any]
    step: Step
    gather: Callable[[State], State]
    put_held_out: Callable[[Mapping[str, np.ndarray]], Any]


@dataclass(frozen=True)
class Placement:
    """The devices of a run: a `mesh`, or with `axis=DEVICES` all devices of this process under pmap.

    >>> Placement(make_mesh()).parts == len(jax.devices())
    True
    """

    mesh: Mesh | None = None
    axis: str | None = None

    @property
    def parts(self) -> int:
        """The number of equal parts that the rows of a batch are split into."""
        if self.mesh is None:
            return 1 if self.axis is None else jax.local_device_count()
        return int(self.mesh.shape["data"] * self.mesh.shape["fsdp"])

    def compile(
        self,
        step: Step,
        state: State,
        rules: Rules = RULES,
        carry_axis: int | None = None,
        constants: Mapping[str, Any] = EMPTY,
    ) -> Parallel:
        """Return the step (made with this `axis`) for these devices; see `over_mesh` and `over_pmap`."""
        if self.mesh is not None:
            return over_mesh(step, state, self.mesh, rules, constants)
        return over_pmap(step, carry_axis, constants)


ONE_DEVICE = Placement()


def over_mesh(
    step: Step, state: State, mesh: Mesh, rules: Rules = RULES, constants: Mapping[str, Any] = EMPTY
) -> Parallel:
    """Compile the step for a mesh; `state` may consist of shapes only.

    `put` adds `constants` to every batch: trees that are placed once, by the same rules as parameters.
    """
    placed, rows = shardings(state, mesh, rules), NamedSharding(mesh, BATCH)
    run = jax.jit(step, donate_argnums=0, out_shardings=(placed, NamedSharding(mesh, P())))
    placed_constants = jax.tree.map(_place, dict(constants), shardings(dict(constants), mesh, rules))
    parts = mesh.shape["data"] * mesh.shape["fsdp"] // jax.process_count() or 1

    def put(batch: Mapping[str, np.ndarray]) -> dict[str, Any]:  # each process passes its own rows
        check_rows(batch, parts)
        arrays = {name: jax.make_array_from_process_local_data(rows, values) for name, values in batch.items()}
        return arrays | placed_constants

    def put_held_out(batch: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        rows = len(next(iter(batch.values())))
        return put(batch) if rows % parts == 0 else {**batch, **placed_constants}

    return Parallel(lambda state: jax.tree.map(_place, state, placed), put, run, lambda state: state, put_held_out)


def _place(leaf: Any, sharding: NamedSharding) -> jax.Array:
    """Put a leaf of a state, which every process has in full, onto the devices of all processes."""
    if sharding.is_fully_addressable:
        # A copy, because the step donates its state and must not consume the caller's arrays.
        return jax.device_put(leaf, sharding, may_alias=False)
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        return leaf  # already placed by reading the checkpoint
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(_place(jax.random.key_data(leaf), sharding))
    host = np.array(leaf)
    return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])


def _first_copy(values: jax.Array) -> jax.Array:
    """Return what lies on the first device; `values[0]` would be a program of all devices, which may block a step."""
    return values.addressable_shards[0].data[0]


def over_pmap(step: Step, carry_axis: int | None = 0, constants: Mapping[str, Any] = EMPTY) -> Parallel:
    """Run the step (made with `axis=DEVICES`) on this process's devices, each with all parameters and `constants`.

    Each device has its rows of the carry, along `carry_axis`, or with None the whole carry. Evaluations use one device.
    """
    count = jax.local_device_count()
    run = jax.pmap(step, axis_name=DEVICES, donate_argnums=0)
    constants_on_one = jax.device_put(dict(constants))
    constants_on_all: Any = {}
    if constants:  # copied to the devices once, not in every step
        constants_on_all = jax.pmap(lambda _, tree: tree, in_axes=(0, None))(np.zeros(count), dict(constants))

    def repeat(tree: Any) -> Any:
        return jax.tree.map(lambda a: jnp.broadcast_to(a, (count, *a.shape)), tree)

    def place(state: State) -> State:
        if carry_axis is None:
            return repeat(state)
        carry = jax.tree.map(lambda a: jnp.stack(jnp.split(a, count, carry_axis)), state.carry)
        return dataclasses.replace(repeat(dataclasses.replace(state, carry=None)), carry=carry)

    def gather(state: State) -> State:
        if carry_axis is None:
            return jax.tree.map(_first_copy, state)
        first = jax.tree.map(_first_copy, dataclasses.replace(state, carry=None))
        carry = jax.tree.map(lambda a: jnp.concatenate(list(a), carry_axis), state.carry)
        return dataclasses.replace(first, carry=carry)

    def put(batch: Mapping[str, np.ndarray]) -> dict[str, Any]:
        check_rows(batch, count)
        rows = {name: values.reshape(count, -1, *values.shape[1:]) for name, values in batch.items()}
        return rows | constants_on_all

    def one(state: State, batch: Any) -> tuple[State, dict[str, Any]]:
        state, metrics = run(state, batch)
        return state, {name: _first_copy(value) for name, value in metrics.items()}

    return Parallel(place, put, one, gather, lambda batch: {**batch, **constants_on_one})
