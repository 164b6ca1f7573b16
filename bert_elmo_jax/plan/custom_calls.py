"""The operations of custom calls: kernels written in Pallas, and XLA's own."""

import re

from bert_elmo_jax.plan.hlo_text import Computation, Instruction, Shape

# XLA's own calls that move or mark values, without a matrix product.
NO_PRODUCTS = frozenset(
    "AllocateBuffer AssumeGatherIndicesInBound AsyncCollectiveDone AsyncCollectiveStart ConcatBitcast "
    "GatherScatterIndicesBitpacked LayoutConstraint MoveToDevice MoveToHost PadToStatic PartialReduce PinToDevice "
    "PinToDeviceSram SPMDFullToShardShape SPMDShardToFullShape Sharding SliceToDynamic TopK "
    "annotate_device_placement".split()
)
# The passes of JAX's splash attention, and the products of queries by keys, or of the same size, that each one makes.
# `dkv` makes one more where it also returns the gradient of the queries.
PASSES = {"fwd": 2, "dq": 3, "dkv": 4}
_SPLASH = re.compile(r"splash_m[hq]a_(fwd|dq|dkv)_")
_ESTIMATE = re.compile(r'"cost_estimate":\s*\{[^{}]*?"flops":\s*"?(\d+)')


def kernel_flops(computation: Computation, i: Instruction) -> float | None:
    """Return the operations in the matrix products of a custom call, or None if they are unknown.

    They are the kernel's own estimate if it has one. Splash attention has none, and they follow from the shapes of its
    arrays; with a causal mask, blocks that the kernel skips are counted too.
    """
    if match := _ESTIMATE.search(i.attributes):
        return float(match.group(1))
    if _target(i) in NO_PRODUCTS:
        return 0.0
    if _target(i) == "tpu_custom_call" and (match := _SPLASH.match(i.name)):
        return _splash_flops(computation, i, match.group(1))
    return None


def custom_call_name(i: Instruction) -> str:
    """Return the name of a custom call for a report: of its kernel, or else of its target."""
    kernel = re.sub(r"(\.\d+|\.clone|\.remat\d*)+$", "", i.name)
    return kernel if _target(i) == "tpu_custom_call" else _target(i)


def _target(i: Instruction) -> str:
    match = re.search(r'custom_call_target="([^"]*)"', i.attributes)
    return match.group(1) if match else i.name


def _splash_flops(computation: Computation, i: Instruction, part: str) -> float:
    """Return the operations of one pass, from queries [… T, H], keys [… S, H] and values, its first float operands."""
    operands = [shape for name in i.operands for shape in computation.instructions[name].shapes]
    query, key, *_ = [shape for shape in operands if shape.dtype.startswith(("f", "bf"))]
    count = PASSES[part]
    if part == "dkv" and any(_is_split(shape, query) for shape in i.shapes):
        count += 1
    return 2.0 * count * query.elements * key.sizes[-2]


def _is_split(shape: Shape, query: Shape) -> bool:
    """Return True for gradients of the queries, one for each block of keys: their axes, and one more."""
    return len(shape.sizes) == len(query.sizes) + 1 and shape.sizes[-2:] == query.sizes[-2:]
