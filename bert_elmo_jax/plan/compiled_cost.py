"""The cost of one run of a compiled program on each device: matrix products, memory traffic, collectives.

XLA's own `cost_analysis` counts the body of a loop once, so a scan over twelve layers shows a twelfth of its cost. This
module walks the program's text and multiplies the body of a loop by its trip count. A loop of unknown length counts
once and is listed in `unknown_loops`.

Only matrix products and convolutions count as operations, like the peak figures of chips, also in kernels (see
`kernel_flops`); other custom calls are listed in `uncounted`. Bytes are reads and writes of main memory: a fusion
counts as one instruction, a slice counts its own size, and on-chip values are free.
"""

import math
import re
from dataclasses import dataclass, field

import numpy as np

from bert_elmo_jax.plan.custom_calls import custom_call_name, kernel_flops
from bert_elmo_jax.plan.hlo_text import Computation, Instruction, Module, Shape, parse_hlo

COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all", "collective-permute",
               "collective-broadcast")  # fmt: skip
# They only name or hold values, or they are counted elsewhere: at their start, or in the computation they call.
FREE = frozenset(
    "parameter constant get-tuple-element tuple bitcast after-all partition-id replica-id while conditional call "
    "opt-barrier add-dependency async-update".split()
)
SLICES = ("dynamic-slice", "slice", "gather")


@dataclass(frozen=True)
class Collective:
    """All collectives of one kind: their number, and per device the bytes of input and the least bytes to send."""

    count: int = 0
    size: float = 0.0
    sent: float = 0.0

    def __add__(self, other: "Collective") -> "Collective":
        return Collective(self.count + other.count, self.size + other.size, self.sent + other.sent)


@dataclass
class Cost:
    """The cost of one run on one device; see the module."""

    flops: float = 0.0
    bytes: float = 0.0
    collectives: dict[str, Collective] = field(default_factory=dict)
    unknown_loops: list[str] = field(default_factory=list)
    uncounted: list[str] = field(default_factory=list)  # custom calls whose operations are unknown
    channels: set[tuple[str, str]] = field(default_factory=set)  # of the counted collectives

    @property
    def sent(self) -> float:
        """Bytes that a device sends in collectives."""
        return sum((collective.sent for collective in self.collectives.values()), 0.0)


def compiled_cost(text: str) -> Cost:
    """Return the cost of a program, given its `compiled.as_text()`."""
    module, cost = parse_hlo(text), Cost()
    _add(module, module.entry, 1, cost, inside_fusion=False)
    return cost


def _add(module: Module, computation: Computation, times: int, cost: Cost, inside_fusion: bool) -> None:
    for i in computation.instructions.values():
        if i.opcode in ("dot", "convolution"):
            cost.flops += times * (dot_flops if i.opcode == "dot" else _convolution)(computation, i)
        if i.opcode == "custom-call":
            flops = kernel_flops(computation, i)
            if flops is not None:
                cost.flops += times * flops
            elif (name := custom_call_name(i)) not in cost.uncounted:
                cost.uncounted.append(name)
        if i.opcode.removesuffix("-start") in COLLECTIVES:
            _add_collective(module, computation, i, times, cost)
        if not inside_fusion:
            cost.bytes += times * count_traffic(module, computation, i)
        if i.opcode == "while":
            trips = trip_count(module, computation, i)
            if trips is None:
                cost.unknown_loops.append(i.name)
            body = module.computations[i.called("body") or ""]
            _add(module, body, times * (1 if trips is None else trips), cost, inside_fusion)
        elif i.opcode == "conditional":
            _add_worst_branch(module, i, times, cost, inside_fusion)
        elif i.opcode in ("fusion", "call", "async-start") and (
            called := i.called("calls") or i.called("to_apply") or i.called("called_computation")
        ):
            _add(module, module.computations[called], times, cost, inside_fusion or i.opcode != "call")


def _add_worst_branch(module: Module, i: Instruction, times: int, cost: Cost, inside_fusion: bool) -> None:
    """Add the most expensive branch of a conditional: only one branch runs."""
    costs = []
    for name in branch_names(i):
        one = Cost()
        _add(module, module.computations[name], times, one, inside_fusion)
        costs.append(one)
    worst = max(costs, key=lambda one: (one.flops, one.bytes, one.sent))
    cost.flops += worst.flops
    cost.bytes += worst.bytes
    cost.unknown_loops += worst.unknown_loops
    cost.uncounted += [called for called in worst.uncounted if called not in cost.uncounted]
    for kind, new in worst.collectives.items():
        cost.collectives[kind] = cost.collectives.get(kind, Collective()) + new


def branch_names(i: Instruction) -> list[str]:
    """Return the computations that a conditional chooses from."""
    names = re.findall(r"[\w.\-]+", _between(i.attributes, "branch_computations={", "}"))
    return names + [name for side in ("true", "false") if (name := i.called(f"{side}_computation"))]


def trip_count(module: Module, computation: Computation, loop: Instruction) -> int | None:
    """Return the trip count of a `while`: the compiler's, or from a condition i < limit with steps of 1, or None."""
    if annotation := re.search(r'"?known_trip_count"?:?\s*=?\{"?n"?:"?(\d+)"?\}', loop.attributes):
        return int(annotation.group(1))
    condition = module.computations[loop.called("condition") or ""]
    test = condition.instructions[condition.root]
    if test.opcode != "compare" or "direction=LT" not in test.attributes or len(test.operands) != 2:
        return None
    counter, limit = (condition.instructions[name] for name in test.operands)
    number = re.search(r"index=(\d+)", counter.attributes)
    if limit.opcode != "constant" or counter.opcode != "get-tuple-element" or not number:
        return None
    if not _counts_up(module.computations[loop.called("body") or ""], int(number.group(1))):
        return None
    start = computation.instructions[loop.operands[0]]
    while start.opcode in ("tuple", "copy", "bitcast"):  # the initial value of the counter, if constant
        start = computation.instructions[start.operands[int(number.group(1)) if start.opcode == "tuple" else 0]]
    end, begin = (int(re.findall(r"-?\d+", i.attributes)[0]) if i.opcode == "constant" else 0 for i in (limit, start))
    return max(0, end - begin)


def _counts_up(body: Computation, number: int) -> bool:
    """Return False if the body of a loop surely does not add 1 to this element of the state."""
    root = body.instructions[body.root]
    if root.opcode != "tuple":
        return True
    new = body.instructions[root.operands[number]]
    steps = [body.instructions[name] for name in new.operands]
    return new.opcode == "fusion" or (
        new.opcode == "add" and any(step.opcode == "constant" and step.attributes.startswith("(1)") for step in steps)
    )


def _operand(computation: Computation, i: Instruction, number: int) -> Shape:
    return computation.instructions[i.operands[number]].shapes[0]


def dot_flops(computation: Computation, i: Instruction) -> float:
    """Return the operations of a matrix product."""
    sizes = _operand(computation, i, 0).sizes
    summed = [sizes[int(axis)] for axis in _between(i.attributes, "lhs_contracting_dims={", "}").split(",") if axis]
    return 2.0 * i.shapes[0].elements * math.prod(summed)


def _convolution(computation: Computation, i: Instruction) -> float:
    """Return 2 · the number of multiplied pairs. On TPU all products are convolutions, batched ones strided windows."""
    labels = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", i.attributes)
    if labels is None:
        raise ValueError(f"the convolution {i.name} has no dim_labels: {i.attributes[:200]}")
    left, right = _operand(computation, i, 0).sizes, _operand(computation, i, 1).sizes
    inputs, kernel, output = labels.groups()
    spatial = sorted(set(kernel) - {"i", "o"})
    fields = re.findall(r"(\w+)=([\dx_\-]+)", _between(i.attributes, "window={", "}"))
    window = {name: values.split("x") for name, values in fields}
    met = 1
    for n, axis in enumerate(spatial):
        number = {name: int(values[n]) for name, values in window.items() if name in ("size", "stride", "lhs_dilate",
                                                                                         "rhs_dilate")}  # fmt: skip
        low = int(window["pad"][n].split("_")[0]) if "pad" in window else 0
        dilation = number.get("lhs_dilate", 1)
        at = np.arange(i.shapes[0].sizes[output.index(axis)])[:, None] * number.get("stride", 1)
        at = at + np.arange(right[kernel.index(axis)])[None, :] * number.get("rhs_dilate", 1) - low
        met *= int(((at >= 0) & (at <= (left[inputs.index(axis)] - 1) * dilation) & (at % dilation == 0)).sum())
    features = right[kernel.index("i")]
    batch = i.shapes[0].sizes[output.index("b")]
    return 2.0 * met * features * batch * i.shapes[0].sizes[output.index("f")]


def _between(text: str, before: str, after: str) -> str:
    return text.partition(before)[2].partition(after)[0]


def _add_collective(module: Module, computation: Computation, i: Instruction, times: int, cost: Cost) -> None:
    kind = i.opcode.removesuffix("-start")
    if kind == "all-reduce" and computation.name.startswith("all-reduce-scatter"):
        kind = "reduce-scatter"  # the TPU compiler fuses a reduction and a slice
    group, channel = group_size(i.attributes, module.devices), re.search(r"\bchannel_id=\d+", i.attributes)
    if group < 2 or (channel and (kind, channel.group()) in cost.channels):
        return
    if channel:  # the TPU compiler lists an overlapped collective several times
        cost.channels.add((kind, channel.group()))
    size = float(sum(shape.size for name in i.operands for shape in computation.instructions[name].shapes))
    # The lower bound for any algorithm, which a ring reaches.
    share = {"all-reduce": 2 * (group - 1) / group, "all-gather": group - 1.0, "collective-permute": 1.0}
    share["collective-broadcast"] = 1.0
    sent = size * share.get(kind, (group - 1) / group)
    new = Collective(times, times * size, times * sent)
    cost.collectives[kind] = cost.collectives.get(kind, Collective()) + new


def group_size(attributes: str, devices: int) -> int:
    """Return the number of devices that take part in a collective together."""
    text = attributes.partition("replica_groups=")[2]
    if text.startswith("mesh"):
        sizes = dict(re.findall(r"'([^']+)'=(\d+)", _between(text, "[", "]")))
        axes = re.findall(r"'([^']+)'(?::\(\d+\)(\d+))?", _between(text, "{", "}"))
        return math.prod(int(part or sizes[axis]) for axis, part in axes) if axes else devices
    if match := re.match(r"\[(\d+),(\d+)\]<=", text):
        return int(match.group(2))
    if match := re.match(r"\{\{([\d,]+)\}", text):
        return match.group(1).count(",") + 1
    return devices


def count_traffic(module: Module, computation: Computation, i: Instruction) -> float:
    """Return the bytes that an instruction moves between main memory and the chip."""
    if i.opcode in FREE or i.opcode.endswith("-done") or "AllocateBuffer" in i.attributes[:200]:
        return 0.0
    operands = [shape for name in i.operands for shape in computation.instructions[name].shapes]
    results = list(i.shapes)
    if i.opcode.endswith("-start"):  # its results include its operands
        for shape in operands:
            if shape in results:
                results.remove(shape)
        if i.opcode == "slice-start":
            operands = [Shape(shape.dtype, shape.sizes, operands[0].space) for shape in results[:1]]
    if i.opcode == "fusion" and (called := i.called("calls")):
        fused = module.computations[called]
        read = sum(_read(module, fused, fused.parameters[n]) for n, shape in enumerate(operands) if shape.space == 0)
        return read + _written(module, fused, fused.root)
    if i.opcode in SLICES:
        return 2.0 * sum(shape.size for shape in i.shapes if shape.space == 0)
    if i.opcode in ("dynamic-update-slice", "scatter"):
        return 2.0 * _updated(i, operands[1 if i.opcode == "dynamic-update-slice" else -1])
    return float(sum(shape.size for shape in (*operands, *results) if shape.space == 0))


def _read(module: Module, fused: Computation, name: str) -> float:
    """Return the bytes of a value that a fusion reads: all, unless it only slices it or updates it in place."""
    size, total = float(sum(shape.size for shape in fused.instructions[name].shapes)), 0.0
    users = [(i, n) for i in fused.instructions.values() for n, operand in enumerate(i.operands) if operand == name]
    for user, number in users:
        if user.opcode in SLICES and number == 0:
            total += user.shapes[0].size
        elif user.opcode == "bitcast":
            total += _read(module, fused, user.name)
        elif user.opcode == "fusion" and (called := user.called("calls")):
            inner = module.computations[called]
            total += _read(module, inner, inner.parameters[number])
        elif not (user.opcode in ("dynamic-update-slice", "scatter") and number == 0):
            return size
    return min(size, total)


def _written(module: Module, fused: Computation, name: str) -> float:
    i = fused.instructions[name]
    if i.opcode == "tuple":
        return sum((_written(module, fused, operand) for operand in i.operands), 0.0)
    if any(shape.space for shape in i.shapes):
        return 0.0
    if i.opcode == "bitcast":
        return _written(module, fused, i.operands[0])
    if i.opcode == "fusion" and (called := i.called("calls")):
        return _written(module, module.computations[called], module.computations[called].root)
    if i.opcode in ("dynamic-update-slice", "scatter"):
        return _updated(i, _operand(fused, i, 1 if i.opcode == "dynamic-update-slice" else -1))
    return float(sum(shape.size for shape in i.shapes))


def _updated(i: Instruction, update: Shape) -> float:
    """Return the bytes of an array that an update changes; many updates may meet the same elements."""
    return float(min(update.size, i.shapes[0].size))
