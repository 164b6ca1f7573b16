"""What a config's training step would take on devices that are not there: compiled from shapes, told phase by phase."""

import contextlib
from collections.abc import Iterator
from typing import Any

import jax
from ml_collections import ConfigDict

from bert_elmo_jax import train
from bert_elmo_jax.data.rows.batch_shapes import batch_shapes
from bert_elmo_jax.families.family import Objective, Phase
from bert_elmo_jax.plan.ahead_of_time import TooLarge, compile_step, largest
from bert_elmo_jax.plan.chips import Topology
from bert_elmo_jax.plan.report import describe, gib, too_large
from bert_elmo_jax.runs.pretraining import build_objective, build_step


def inputs_of(config: ConfigDict, objective: Objective, phase: Phase, rows: int, mesh: Any) -> tuple[Any, Any, Any]:
    """The step of a phase, and the shapes of a state and of a batch of so many rows."""
    _, method, step = build_step(config, objective)
    shapes = batch_shapes(phase.examples, rows, mesh.shape["data"] * mesh.shape["fsdp"])
    state = jax.eval_shape(
        lambda key: train.new_state(objective.init(key), method, key, objective.carry(rows)), jax.random.key(0)
    )
    return step, state, {name: jax.ShapeDtypeStruct(*shape) for name, shape in shapes.items()}


@contextlib.contextmanager
def traced_for(platform: str) -> Iterator[None]:
    """Two layers ask JAX where they will run while they are traced; here that is not where the tracing is done."""
    found, jax.default_backend = jax.default_backend, lambda: platform
    try:
        yield
    finally:
        jax.default_backend = found


def plan(config: ConfigDict, topology: Topology, vocab_size: int | None, memory: float | None, tries: int) -> bool:
    """Say all there is to say of each phase; whether every one fits as it is."""
    family, objective = build_objective(config, vocab_size)
    rules = (*family.sharding, *train.RULES)
    mesh = train.make_mesh(**config.mesh, devices=topology.devices)
    params = jax.eval_shape(objective.init, jax.random.key(0))
    axes = " × ".join(f"{name}={size}" for name, size in mesh.shape.items())
    say(f"{sum(leaf.size for leaf in jax.tree.leaves(params)):,} parameters on {mesh.size} devices ({axes})")
    if whole := train.kept_whole(params, mesh, rules):
        say(f"whole on every device, because the mesh does not divide them: {', '.join(whole)}")
    limited = topology.chip is not None or memory is not None
    tries = tries if limited else 0

    def plan_phase(phase: Phase) -> bool:
        length, shards = phase.examples.length, mesh.shape["data"] * mesh.shape["fsdp"]
        say(f"{phase.steps:,} steps of {phase.rows:,} rows of {length}, {phase.rows / shards:g} a device")
        unit = shards * config.accumulate
        if phase.rows % unit:
            raise ValueError(f"{phase.rows} rows cannot be shared by {unit} (data · fsdp · accumulate): use a multiple")
        found: dict[int, bool] = {}

        def fits(units: int) -> bool:
            rows = units * unit
            try:
                with traced_for(topology.platform):
                    compiled = compile_step(*inputs_of(config, objective, phase, rows, mesh), mesh, rules)
                if memory is not None and compiled.total > memory:
                    raise TooLarge(compiled.total, memory)
            except TooLarge as error:
                say(f"  {rows:,} rows: {too_large(error)}")
                found[units] = False
                return False
            said = "fits" if limited else "takes"
            say(f"  {rows:,} rows: {said} {gib(compiled.total)}; compiled in {compiled.seconds:.0f} s")
            if not any(found.values()):  # the batch that was asked for, or the first found to fit
                work = objective.work(params, length) * rows * length / mesh.size
                for line in describe(compiled, rows * length, work, topology):
                    say(f"    {line}")
            found[units] = True
            return True

        most, over = largest(fits, phase.rows // unit, tries=1 + tries)
        if tries:
            beyond = f"{over * unit:,} do not" if over else "more were not tried"
            say(f"  largest batch found: {most * unit:,} rows fit, {most * unit / shards:g} a device; {beyond}")
        return found[phase.rows // unit]

    fitting = [plan_phase(phase) for phase in objective.phases]  # all are told of, also after one that does not
    return all(fitting)


def say(line: str) -> None:
    """A line of the answer, at once: the next may take minutes."""
    print(line, flush=True)
