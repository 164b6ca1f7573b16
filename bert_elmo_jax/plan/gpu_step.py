"""The work of a compiled step on a GPU: its kernels, and about how long they take.

A kernel is bound by products, by attention or by memory, and a step is the sum, because a GPU runs one after the other.
Rates are shares of a card's peaks, as traces of a BERT-base's step on an H200 showed them: docs/results/gpu.md. XLA
chooses the program of a product by trying them on a card, so without one only the number of operations is known.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from bert_elmo_jax.plan.chips import Chip
from bert_elmo_jax.plan.compiled_cost import FREE, branch_names, count_traffic, dot_flops, trip_count
from bert_elmo_jax.plan.custom_calls import CUBLAS, CUDNN_ATTENTION, kernel_flops, target_of
from bert_elmo_jax.plan.hlo_text import Computation, Instruction, Module, parse_hlo


class Rates(NamedTuple):
    """The shares of a card's peaks that kernels reach, and the seconds between two kernels."""

    products: float
    attention: float  # its operations; it takes as long as they or its bytes do
    attention_bytes: float
    memory: float
    gap: float


LIKELY = Rates(0.73, 0.30, 0.50, 0.57, 2.8e-6)
BEST = Rates(0.80, 0.36, 0.75, 0.75, 1.5e-6)
WORST = Rates(0.60, 0.22, 0.40, 0.45, 4.5e-6)


@dataclass
class GpuStep:
    """The kernels of one run of a program, their operations, and the bytes of those that are no products."""

    kernels: Counter[str] = field(default_factory=Counter)  # by kind: products, attention, memory
    products: dict[int, float] = field(default_factory=dict)  # operations by the bytes of an input's element
    attention: float = 0.0  # operations
    attention_bytes: float = 0.0
    other_bytes: float = 0.0


def read_gpu_step(text: str) -> GpuStep:
    """Return the kernels of a program, given its `compiled.as_text()`."""
    module, step = parse_hlo(text), GpuStep()
    _add(module, module.entry, 1, step)
    return step


def _add(module: Module, computation: Computation, times: int, step: GpuStep) -> None:
    for i in computation.instructions.values():
        if i.opcode == "while":
            trips = trip_count(module, computation, i)
            _add(module, module.computations[i.called("body") or ""], times * (1 if trips is None else trips), step)
        elif i.opcode in ("call", "async-start") and (called := i.called("to_apply") or i.called("calls")):
            _add(module, module.computations[called], times, step)
        elif i.opcode == "conditional":
            branches = [module.computations[name] for name in branch_names(i)]
            _add(module, max(branches, key=lambda branch: len(branch.instructions)), times, step)
        elif i.opcode not in FREE and not i.opcode.endswith("-done"):
            _add_kernel(module, computation, i, times, step)


def _add_kernel(module: Module, computation: Computation, i: Instruction, times: int, step: GpuStep) -> None:
    moved = times * count_traffic(module, computation, i)
    if i.opcode == "custom-call" and CUDNN_ATTENTION.match(target_of(i)):
        step.kernels["attention"] += times
        step.attention += times * (kernel_flops(computation, i) or 0.0)
        step.attention_bytes += moved
    elif products := _products(module, computation, i):
        step.kernels["products"] += times
        for size, flops in products.items():
            step.products[size] = step.products.get(size, 0.0) + times * flops
    else:
        step.kernels["memory"] += times
        step.other_bytes += moved


def _products(module: Module, computation: Computation, i: Instruction) -> dict[int, float]:
    """Return the operations of the products in a kernel, by the bytes of an element of their inputs."""
    if i.opcode == "custom-call" and CUBLAS.match(target_of(i)):
        return {_element(computation, i): kernel_flops(computation, i) or 0.0}
    if i.opcode == "dot":
        return {_element(computation, i): dot_flops(computation, i)}
    found: dict[int, float] = {}
    if i.opcode == "fusion" and (called := i.called("calls")):
        fused = module.computations[called]
        for inner in fused.instructions.values():
            for size, flops in _products(module, fused, inner).items():
                found[size] = found.get(size, 0.0) + flops
    return found


def _element(computation: Computation, i: Instruction) -> int:
    shape = computation.instructions[i.operands[0]].shapes[0]
    return max(1, shape.size // max(1, shape.elements))


def estimate_seconds(step: GpuStep, chip: Chip, rates: Rates = LIKELY) -> dict[str, float]:
    """Return the seconds of a step on a card by what bounds its kernels.

    Products of float32 inputs run in TF32, at half of bfloat16's rate.

    >>> from bert_elmo_jax.plan.chips import CHIPS
    >>> step = GpuStep(Counter(products=1), {2: 0.73 * 989e12})
    >>> estimate_seconds(step, CHIPS["h200"])["products"]
    1.0
    """
    peak = chip.bfloat16
    products = sum(flops * max(1.0, size / 2) for size, flops in step.products.items())
    moved = step.attention_bytes / (rates.attention_bytes * chip.bandwidth)
    return {
        "products": products / (rates.products * peak),
        "attention": max(step.attention / (rates.attention * peak), moved),
        "memory": step.other_bytes / (rates.memory * chip.bandwidth),
        "between kernels": sum(step.kernels.values()) * rates.gap,
    }


def estimate_range(step: GpuStep, chip: Chip) -> tuple[float, float, float]:
    """Return the least, the likely and the most seconds of a step."""
    best, likely, worst = (sum(estimate_seconds(step, chip, rates).values()) for rates in (BEST, LIKELY, WORST))
    return best, likely, worst


def describe_gpu_step(step: GpuStep, chip: Chip, network: float = 0.0) -> list[str]:
    """Return lines about the kernels of a step, and how long it takes; `network` are the seconds of its collectives."""
    counts = ", ".join(f"{count:,} of {kind}" for kind, count in sorted(step.kernels.items()))
    total = sum(step.kernels.values())
    parts = estimate_seconds(step, chip)
    low, middle, high = (1000 * seconds for seconds in estimate_range(step, chip))
    shown = ", ".join(f"{name} {1000 * seconds:.3g}" for name, seconds in parts.items())
    waits = f"; collectives add up to {1000 * network:.3g} ms, as far as nothing runs beside them" if network else ""
    return [
        f"kernels: {total:,} ({counts}); {step.other_bytes / 1e9:.4g} GB outside of products and attention",
        f"a step, estimated: {middle:.3g} ms, between {low:.3g} and {high:.3g} ({shown}){waits}",
    ]
