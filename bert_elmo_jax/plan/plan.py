"""Plan a run before renting hardware: compile a config's training step for other devices, and report what it needs."""

import contextlib
import copy
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import jax
from ml_collections import ConfigDict

from bert_elmo_jax import train
from bert_elmo_jax.families.family import Objective, Phase
from bert_elmo_jax.plan.cards import as_if_present
from bert_elmo_jax.plan.chips import GIB, Topology, compute_roofline
from bert_elmo_jax.plan.compiled_cost import compiled_cost
from bert_elmo_jax.plan.gpu_step import describe_gpu_step, read_gpu_step
from bert_elmo_jax.runs.field_ranges import check_fields
from bert_elmo_jax.runs.initial_state import apply_compute
from bert_elmo_jax.runs.pretraining import build_inputs, build_objective
from bert_elmo_jax.runs.recomputation import asks_for_remat
from bert_elmo_jax.train.ahead_of_time import Compiled, TooLarge, compile_step

PREALLOCATED = 0.75  # of a GPU's memory, by default


def find_largest(
    is_possible: Callable[[int], bool], first: int, most: int = 2**20, tries: int = 8
) -> tuple[int, int | None]:
    """Return the largest number found that fits, and the smallest found that does not (None if all fit).

    Starting at `first`, doubles or halves until the answer changes, then bisects; 0 always fits.
    """
    good, bad, n = 0, None, min(first, most)
    for _ in range(tries):
        if is_possible(n):
            good = n
        else:
            bad = n
        n = min(2 * good, most) if bad is None else (good + bad) // 2 or 1
        if n in (good, bad):
            break
    return good, bad


def plan(config: ConfigDict, topology: Topology, vocab_size: int | None, memory: float | None, tries: int) -> bool:
    """Print a report of each phase, with `tries` for a larger batch; return True if all fit in `memory`."""
    check_fields(config)
    if memory is not None and not 0 < memory < math.inf:
        raise ValueError(f"--memory={memory / GIB:g}: expected GiB of a device, above 0")
    platform = topology.devices[0].platform
    if memory is None and platform == "gpu" and topology.chip is not None:
        memory = PREALLOCATED * topology.chip.memory
        say(f"JAX takes {PREALLOCATED:.0%} of a GPU's memory, {show_gib(memory)}; for another share, give --memory=")
    config = apply_compute(config, platform)
    chooses = asks_for_remat(config)  # a run keeps activations if that fits, and else computes them again
    if chooses:
        config = set_remat(config, False)
    family, objective = build_objective(config, vocab_size, teacher=True)
    teacher = {"constants": jax.eval_shape(lambda: dict(objective.constants))} if objective.constants else {}
    rules = (*family.sharding, *train.RULES)
    mesh = train.make_mesh(**config.mesh, devices=topology.devices)
    params = jax.eval_shape(objective.init, jax.random.key(0))
    axes = " × ".join(f"{name}={size}" for name, size in mesh.shape.items())
    say(f"{sum(leaf.size for leaf in jax.tree.leaves(params)):,} parameters on {mesh.size} devices ({axes})")
    if undivided := train.kept_whole(params, mesh, rules):
        say(f"whole on every device, because the mesh does not divide them: {', '.join(undivided)}")
    limited = topology.chip is not None or memory is not None
    shards = mesh.shape["data"] * mesh.shape["fsdp"]
    unit = shards * config.accumulate

    def compile_rows(config: ConfigDict, objective: Objective, phase: Phase, rows: int) -> Compiled:
        with trace_for(topology.devices):
            compiled = compile_step(*build_inputs(config, objective, phase, rows, mesh), mesh, rules, **teacher)
        if memory is not None and compiled.total > memory:
            raise TooLarge(compiled.total, memory)
        return compiled

    def plan_other_way(phase: Phase, fits: bool) -> bool:
        if (changed := change_remat(config, fits)) is None:
            return False
        fields = " ".join(f"{name}={changed.model[name]}" for name in ("remat", "scan") if name in changed.model)
        other = build_objective(changed, vocab_size, teacher=True)[1]
        try:
            compiled = compile_rows(changed, other, phase, phase.rows)
        except TooLarge as error:
            say(f"  with {fields}: {describe_shortage(error)}")
            return False
        say(f"  with {fields}: fits {show_gib(compiled.total)}")
        if compiled.text is not None and topology.chip is not None:
            for line in describe_gpu_step(read_gpu_step(compiled.text), topology.chip):
                say(f"    {line}")
        return True

    def plan_phase(phase: Phase) -> bool:
        length, outcomes = phase.examples.length, dict[int, bool]()
        say(f"{phase.steps:,} steps of {phase.rows:,} rows of {length}, {phase.rows / shards:g} a device")
        if phase.rows % unit:
            raise ValueError(f"{phase.rows} rows cannot be shared by {unit} (data · fsdp · accumulate): use a multiple")

        def compile_units(units: int) -> bool:
            rows = units * unit
            try:
                compiled = compile_rows(config, objective, phase, rows)
            except TooLarge as error:
                say(f"  {rows:,} rows: {describe_shortage(error)}")
                outcomes[units] = False
                return False
            verb = "fits" if limited else "takes"
            say(f"  {rows:,} rows: {verb} {show_gib(compiled.total)}; compiled in {compiled.seconds:.0f} s")
            if not any(outcomes.values()):  # details of the config's batch, or else of the first that fits
                work = objective.work(params, length) * rows * phase.tokens / mesh.size
                for line in describe_step(compiled, rows * phase.tokens, work, topology):
                    say(f"    {line}")
            outcomes[units] = True
            return True

        most, over = find_largest(compile_units, phase.rows // unit, tries=1 + tries if limited else 1)
        if tries and limited:
            beyond = f"{over * unit:,} do not" if over else "more were not tried"
            say(f"  largest batch found: {most * unit:,} rows fit, {most * unit / shards:g} a device; {beyond}")
        fits = outcomes[phase.rows // unit]
        other_fits = (platform == "gpu" or chooses) and plan_other_way(phase, fits)
        return fits or (chooses and other_fits)

    fitting = [plan_phase(phase) for phase in objective.phases]  # all are reported, also after one that does not fit
    return all(fitting)


def change_remat(config: ConfigDict, fits: bool) -> ConfigDict | None:
    """Return the config with activations computed again if it does not fit, or kept if it does and recomputes them.

    None if there is no other way that could help.
    """
    model = config.get("model", {})
    if "remat" not in model or (fits and not model.remat) or (not fits and model.remat):
        return None
    return set_remat(config, not model.remat)


def set_remat(config: ConfigDict, again: bool) -> ConfigDict:
    """Return a config whose activations are computed again, by a loop over layers, or are kept."""
    changed = copy.deepcopy(config)
    changed.model.remat = again
    if "scan" in changed.model:  # a loop would stack the activations that are kept, and then read them once more
        changed.model.scan = again
    return changed


@contextlib.contextmanager
def trace_for(devices: Sequence[Any]) -> Iterator[None]:
    """Let `jax.default_backend` return the platform of these devices: layers that depend on it are traced for that."""
    platform = devices[0].platform
    with (
        mock.patch.object(jax, "default_backend", lambda: platform),
        as_if_present(devices) if platform == "gpu" else contextlib.nullcontext(),
    ):
        yield


def describe_step(compiled: Compiled, tokens: int, work: float, topology: Topology) -> Sequence[str]:
    """Return lines about one device's part in a step of `tokens`; `work` is the model's own count of operations."""
    chip = topology.chip
    limit = f" of {show_gib(chip.memory)}, including a part for the system" if chip else ""
    lines = [
        f"memory: arguments {show_gib(compiled.arguments)}, outputs {show_gib(compiled.outputs)} (in the memory of "
        f"arguments {show_gib(compiled.aliased)}), temporaries {show_gib(compiled.temporaries)}, program "
        f"{show_gib(compiled.code)}; in all {show_gib(compiled.total)}{limit}"
    ]
    if compiled.text is None:
        unknown = "operations, traffic and collectives are unknown: this jaxlib cannot read the programs of this libtpu"
        return [*lines, f"{unknown}; pip install 'jax[tpu]' installs matching versions"]
    cost = compiled_cost(compiled.text)
    counts, moved = f"the model's own count {work:.4g}", ""
    if compiled.flops:  # XLA counts nothing for a GPU that is not here
        counts += f"; XLA's, each loop once, {compiled.flops:.4g}"
        moved = f" (XLA's, each loop once and with on-chip traffic, {compiled.bytes:.4g})"
    lines.append(f"operations: {cost.flops:.4g} in matrix products ({counts})")
    lines.append(f"memory traffic: {cost.bytes:.4g} bytes{moved}")
    for kind, collective in sorted(cost.collectives.items()):
        lines.append(f"{kind}: {collective.count} of {collective.size:.4g} bytes together, {collective.sent:.4g} sent")
    if not cost.collectives:
        lines.append("no collectives")
    if cost.unknown_loops:
        lines.append(f"loops of unknown length, counted once: {', '.join(cost.unknown_loops)}")
    if cost.uncounted:
        unknown = "custom calls of unknown operations, which are missing in the sum"
        lines.append(f"{unknown}: {', '.join(cost.uncounted)}")
    if chip is None:
        return [*lines, "no roofline: simulated devices have no peak"]
    seconds = compute_roofline(cost, chip, topology.links)
    if any(device.platform == "gpu" for device in topology.devices):
        lines += describe_gpu_step(read_gpu_step(compiled.text), chip, seconds["network"])
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
    """Return bytes in GiB.

    >>> show_gib(3 * 2**29)
    '1.50 GiB'
    """
    return f"{size / GIB:.2f} GiB"


def say(line: str) -> None:
    """Print a line at once, since the next may take minutes."""
    print(line, flush=True)
