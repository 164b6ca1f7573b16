"""Plan a run before renting hardware: compile a config's training step for other devices, and report what it needs."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import jax
from jax.sharding import Mesh
from ml_collections import ConfigDict

from bert_elmo_jax import train
from bert_elmo_jax.families.family import Objective, Phase
from bert_elmo_jax.plan.ahead_of_time import Compiled, TooLarge, compile_step, find_largest
from bert_elmo_jax.plan.chips import GIB, Topology, compute_roofline
from bert_elmo_jax.plan.compiled_cost import compiled_cost
from bert_elmo_jax.runs.pretraining import build_objective, build_step


def plan(config: ConfigDict, topology: Topology, vocab_size: int | None, memory: float | None, tries: int) -> bool:
    """Print a report of each phase, and return True if all phases fit in `memory`, or in the chip's.

    `tries` compilations search for the largest batch that fits.
    """
    family, objective = build_objective(config, vocab_size)
    rules = (*family.sharding, *train.RULES)
    mesh = train.make_mesh(**config.mesh, devices=topology.devices)
    params = jax.eval_shape(objective.init, jax.random.key(0))
    axes = " × ".join(f"{name}={size}" for name, size in mesh.shape.items())
    say(f"{sum(leaf.size for leaf in jax.tree.leaves(params)):,} parameters on {mesh.size} devices ({axes})")
    if whole := train.kept_whole(params, mesh, rules):
        say(f"whole on every device, because the mesh does not divide them: {', '.join(whole)}")
    limited = topology.chip is not None or memory is not None
    shards = mesh.shape["data"] * mesh.shape["fsdp"]
    unit = shards * config.accumulate

    def plan_phase(phase: Phase) -> bool:
        length, found = phase.examples.length, dict[int, bool]()
        say(f"{phase.steps:,} steps of {phase.rows:,} rows of {length}, {phase.rows / shards:g} a device")
        if phase.rows % unit:
            raise ValueError(f"{phase.rows} rows cannot be shared by {unit} (data · fsdp · accumulate): use a multiple")

        def fits(units: int) -> bool:
            rows = units * unit
            try:
                with trace_for(topology.platform):
                    compiled = compile_step(*build_inputs(config, objective, phase, rows, mesh), mesh, rules)
                if memory is not None and compiled.total > memory:
                    raise TooLarge(compiled.total, memory)
            except TooLarge as error:
                say(f"  {rows:,} rows: {describe_shortage(error)}")
                found[units] = False
                return False
            verb = "fits" if limited else "takes"
            say(f"  {rows:,} rows: {verb} {show_gib(compiled.total)}; compiled in {compiled.seconds:.0f} s")
            if not any(found.values()):  # details of the config's batch, or else of the first that fits
                work = objective.work(params, length) * rows * length / mesh.size
                for line in describe_step(compiled, rows * length, work, topology):
                    say(f"    {line}")
            found[units] = True
            return True

        most, over = find_largest(fits, phase.rows // unit, tries=1 + tries if limited else 1)
        if tries and limited:
            beyond = f"{over * unit:,} do not" if over else "more were not tried"
            say(f"  largest batch found: {most * unit:,} rows fit, {most * unit / shards:g} a device; {beyond}")
        return found[phase.rows // unit]

    fitting = [plan_phase(phase) for phase in objective.phases]  # all are reported, also after one that does not fit
    return all(fitting)


def build_inputs(
    config: ConfigDict, objective: Objective, phase: Phase, rows: int, mesh: Mesh
) -> tuple[train.step.Step, Any, dict[str, jax.ShapeDtypeStruct]]:
    """Return the step of a phase, and the shapes of a state and of a batch of so many rows."""
    _, method, step = build_step(config, objective)
    shapes = phase.examples.shapes(rows, mesh.shape["data"] * mesh.shape["fsdp"])
    state = jax.eval_shape(
        lambda key: train.new_state(objective.init(key), method, key, objective.carry(rows)), jax.random.key(0)
    )
    return step, state, {name: jax.ShapeDtypeStruct(*shape) for name, shape in shapes.items()}


@contextlib.contextmanager
def trace_for(platform: str) -> Iterator[None]:
    """Let `jax.default_backend` return another platform: layers that depend on it are traced for that one."""
    found, jax.default_backend = jax.default_backend, lambda: platform
    try:
        yield
    finally:
        jax.default_backend = found


def describe_step(compiled: Compiled, tokens: int, work: float, topology: Topology) -> Sequence[str]:
    """Return lines about the part of one device in a step of `tokens` positions.

    `work` is the model's own count of operations: 6 for every weight and position, without recomputation.
    """
    chip = topology.chip
    limit = f" of {show_gib(chip.memory)}, including a part for the system" if chip else ""
    lines = [
        f"memory: arguments {show_gib(compiled.arguments)}, outputs {show_gib(compiled.outputs)} (in the memory of "
        f"arguments {show_gib(compiled.aliased)}), temporaries {show_gib(compiled.temporaries)}, program "
        f"{show_gib(compiled.code)}; in all {show_gib(compiled.total)}{limit}"
    ]
    if compiled.text is None:
        return [
            *lines,
            "operations, traffic and collectives are unknown: this jaxlib cannot read the programs of this libtpu; "
            "pip install 'jax[tpu]' installs matching versions",
        ]
    cost = compiled_cost(compiled.text)
    lines += [
        f"operations: {cost.flops:.4g} in matrix products (the model's own count {work:.4g}; XLA's, each loop once, "
        f"{compiled.flops:.4g})",
        f"memory traffic: {cost.bytes:.4g} bytes (XLA's, each loop once and with on-chip traffic, "
        f"{compiled.bytes:.4g})",
    ]
    lines += [
        f"{kind}: {found.count} of {found.size:.4g} bytes together, {found.sent:.4g} sent"
        for kind, found in sorted(cost.collectives.items())
    ] or ["no collectives"]
    if cost.unknown_loops:
        lines.append(f"loops of unknown length, counted once: {', '.join(cost.unknown_loops)}")
    if chip is None:
        return [*lines, "no roofline: simulated devices have no peak"]
    seconds = compute_roofline(cost, chip, topology.links)
    bound = max(seconds, key=lambda name: seconds[name])
    times = ", ".join(f"{name} {1000 * value:.3g} ms" for name, value in seconds.items())
    lines.append(
        f"at best, a step: {times}; bound by {bound}: {tokens / seconds[bound]:,.0f} tokens a second on all devices, "
        f"the model's own operations at {work / seconds[bound] / chip.bfloat16:.0%} of the peak"
    )
    return lines


def describe_shortage(error: TooLarge) -> str:
    """Return a line about a step that does not fit."""
    if error.needs is None or error.has is None:
        return f"does not fit: {' '.join(str(error).split())[:300]}"
    return f"does not fit: needs {show_gib(error.needs)}, has {show_gib(error.has)}"


def show_gib(size: int | float) -> str:
    """Return bytes in GiB."""
    return f"{size / GIB:.2f} GiB"


def say(line: str) -> None:
    """Print a line at once, since the next may take minutes."""
    print(line, flush=True)
