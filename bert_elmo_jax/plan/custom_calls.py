"""The operations of custom calls: kernels written in Pallas, and XLA's own."""

import math
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
CUBLAS = re.compile(r"__cublas")
CUDNN_ATTENTION = re.compile(r"__cudnn\$fmha")
# Our kernels for a GPU, which multiply no matrices: see `nn/gpu`.
_OURS = re.compile(
    r'op_name="[^"]*\b(drop_add_norm|drop_add_norm_back|bias_gelu|bias_gelu_back|merge_heads|row_losses)\)?/'
)
_SPLASH = re.compile(r"splash_m[hq]a_(fwd|dq|dkv)_")
_ESTIMATE = re.compile(r'"cost_estimate":\s*\{[^{}]*?"flops":\s*"?(\d+)')


def kernel_flops(computation: Computation, i: Instruction) -> float | None:
    """Return the operations in the matrix products of a custom call, or None if they are unknown.

    They are the kernel's own estimate if it has one. Splash attention has none, and they follow from the shapes of its
    arrays; with a causal mask, blocks that the kernel skips are counted too.
    """
    if match := _ESTIMATE.search(i.attributes):
        return float(match.group(1))
    if target_of(i) in NO_PRODUCTS or (target_of(i) == "__gpu$xla.gpu.triton" and _OURS.search(i.attributes)):
        return 0.0
    if CUBLAS.match(target_of(i)):
        return _cublas_flops(computation, i)
    if CUDNN_ATTENTION.match(target_of(i)):
        return _cudnn_flops(computation, i)
    if target_of(i) == "tpu_custom_call" and (match := _SPLASH.match(i.name)):
        return _splash_flops(computation, i, match.group(1))
    return None


def custom_call_name(i: Instruction) -> str:
    """Return the name of a custom call for a report: of its kernel, or else of its target."""
    kernel = re.sub(r"(\.\d+|\.clone|\.remat\d*)+$", "", i.name)
    return kernel if target_of(i) == "tpu_custom_call" else target_of(i)


def target_of(i: Instruction) -> str:
    """Return which program a custom call runs."""
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


def _cublas_flops(computation: Computation, i: Instruction) -> float | None:
    """Return the operations of a product by cuBLAS, from the summed axes of its first operand."""
    axes = re.search(r'"lhs_contracting_dimensions":\s*\[([^\]]*)\]', i.attributes)
    if axes is None:
        return None
    sizes = computation.instructions[i.operands[0]].shapes[0].sizes
    summed = [sizes[int(axis)] for axis in re.findall(r"\d+", axes.group(1))]
    return 2.0 * i.shapes[0].elements * math.prod(summed)


def _cudnn_flops(computation: Computation, i: Instruction) -> float | None:
    """Return the operations of a pass of attention, whose maps have the sizes [B, A, T, T].

    It has two products of queries by keys, or of the same size; backward it has five.
    """
    maps = re.search(r'"intermediate_tensor_shape":.*?"dimensions":\s*\[([^\]]*)\]', i.attributes)
    if maps is None:
        return None
    sizes = [int(size) for size in re.findall(r"\d+", maps.group(1))]
    width = computation.instructions[i.operands[0]].shapes[0].sizes[-1]
    return 2.0 * (5 if target_of(i).endswith("Backward") else 2) * math.prod(sizes) * width
