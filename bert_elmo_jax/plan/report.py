"""What a compiled step is told to be: lines for whoever is about to rent hardware."""

from bert_elmo_jax.plan.ahead_of_time import Compiled, TooLarge
from bert_elmo_jax.plan.chips import GIB, Topology, roofline
from bert_elmo_jax.plan.compiled_cost import compiled_cost


def describe(compiled: Compiled, tokens: int, work: float, topology: Topology) -> list[str]:
    """All about one device's part of a step of `tokens` positions, of which the model needs `work` operations.

    The model's own count is 6 for every weight and position, recomputation and what only moves numbers left out.
    """
    has = topology.chip
    limit = f" of {gib(has.memory)}, of which the system keeps some" if has else ""
    memory = (
        f"memory: arguments {gib(compiled.arguments)}, outputs {gib(compiled.outputs)} (in the arguments' place "
        f"{gib(compiled.aliased)}), temporaries {gib(compiled.temporaries)}, program {gib(compiled.code)}; in all "
        f"{gib(compiled.total)}{limit}"
    )
    if compiled.text is None:
        return [
            memory,
            "operations, traffic and collectives cannot be told: this jaxlib does not read this libtpu's programs; "
            "pip install 'jax[tpu]' has the two that belong together",
        ]
    cost = compiled_cost(compiled.text)
    lines = [
        memory,
        f"operations: {cost.flops:.4g} in matrix products (the model's own count {work:.4g}; XLA's, each loop once, "
        f"{compiled.flops:.4g})",
        f"memory traffic: {cost.bytes:.4g} bytes (XLA's, each loop once and with what stays on the chip, "
        f"{compiled.bytes:.4g})",
    ]
    lines += [
        f"{kind}: {found.count} of {found.size:.4g} bytes together, {found.sent:.4g} sent"
        for kind, found in sorted(cost.collectives.items())
    ] or ["no collectives"]
    if cost.unknown_loops:
        lines.append(f"counted as one turn, as their length is unknown: {', '.join(cost.unknown_loops)}")
    if has is None:
        return [*lines, "no roofline: simulated devices have no peak"]
    seconds = roofline(cost, has, topology.links)
    bound = max(seconds, key=lambda name: seconds[name])
    times = ", ".join(f"{name} {1000 * value:.3g} ms" for name, value in seconds.items())
    speed = tokens / seconds[bound]
    return [
        *lines,
        f"at best, a step: {times}; bound by {bound}: {speed:,.0f} tokens a second on all devices, the model's own "
        f"operations at {work / seconds[bound] / has.bfloat16:.0%} of the peak",
    ]


def too_large(error: TooLarge) -> str:
    """What does not fit, in a line."""
    if error.needs is None or error.has is None:
        return f"does not fit: {' '.join(str(error).split())[:300]}"
    return f"does not fit: needs {gib(error.needs)}, has {gib(error.has)}"


def gib(size: int | float) -> str:
    """Bytes in GiB.

    >>> gib(3 * 2**29)
    '1.50 GiB'
    """
    return f"{size / GIB:.2f} GiB"
