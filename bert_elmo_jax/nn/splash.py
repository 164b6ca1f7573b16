"""Attention by JAX's splash kernel for TPUs, which never writes an attention map to main memory.

The kernel and its gradient keep scores and softmax in the chip's vector memory, one block of the map at a time.
XLA cannot split a kernel over devices. So where the arrays are placed on a mesh, the kernel runs inside
`shard_map`: each device gets its own rows (axes `data` and `fsdp`) and heads (axis `tensor`).
"""

import importlib
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bert_elmo_jax.nn.any_array import AnyArray

LANES = 128  # the kernel's blocks are multiples of this
BLOCKS = (512, 384, 256, 128)
ROW_AXES, HEAD_AXIS = ("data", "fsdp"), "tensor"  # names of mesh axes, as in `train.parallel`
PAD = -1  # the segment of the positions that are added here; callers' segments start at 0


def splash(
    query: Float[Array, "B T A H"],
    key: Float[Array, "B T A H"],
    value: Float[Array, "B T A H"],
    segments: Int[AnyArray, "B T"] | None = None,
    *,
    lengths: Int[AnyArray, " B"] | None = None,
    causal: bool = False,
    window: int | None = None,
    dropout: float = 0.0,
    dropout_key: PRNGKeyArray | None = None,
    platform: str | None = None,
    interpret: bool = False,
) -> Float[Array, "B T A H"]:
    """Compute attention by the splash kernel; raise on attention dropout, and on other platforms than a TPU.

    Rows are padded to a multiple of 128 for the kernel. `platform` is where the computation will run, by default JAX's
    default backend. `interpret` runs the kernel's operations one by one on any platform, which is slow: for tests.
    """
    platform = jax.default_backend() if platform is None else platform
    if dropout_key is not None and dropout > 0:
        raise ValueError(
            f"splash attention has no dropout on the attention maps, but got a rate of {dropout}: "
            "set attention_dropout=0 (the other dropouts stay), or use attention='reference'"
        )
    if platform != "tpu" and not interpret:
        raise ValueError(
            f"splash attention is a kernel for TPUs, but the platform is {platform}: use attention='fused' on a "
            "GPU, or attention='reference'; all have the same parameters"
        )
    if segments is not None and lengths is not None:
        raise ValueError("attention got both segments and lengths; give segments for packed rows, else lengths")
    tokens = query.shape[1]
    missing = -tokens % LANES
    if lengths is not None:
        segments = (jnp.arange(tokens)[None, :] < jnp.asarray(lengths)[:, None]).astype(jnp.int32)
    if segments is None and missing:
        segments = jnp.zeros(query.shape[:2], jnp.int32)
    # The kernel does not scale the scores.
    query = (query.astype(jnp.float32) * (1 / math.sqrt(query.shape[-1]))).astype(query.dtype)
    inputs = [jnp.pad(x, ((0, 0), (0, missing), (0, 0), (0, 0))).swapaxes(1, 2) for x in (query, key, value)]
    if segments is not None:
        segments = jnp.asarray(segments).astype(jnp.int32)
        inputs.append(jnp.pad(segments, ((0, 0), (0, missing)), constant_values=PAD))

    def attend(*inputs: Array) -> Array:
        _, heads, length, _ = inputs[0].shape
        kernel, ids = _build_kernel(heads, length, causal, window, interpret), None
        if len(inputs) == 4:
            ids = _import("kernel").SegmentIds(inputs[3], inputs[3])
        return jax.vmap(kernel)(*inputs[:3], ids)

    mesh = _find_mesh(query)
    if mesh is not None:
        spec = _split(mesh, *query.shape[::2])
        specs = (spec, spec, spec, P(spec[0]))[: len(inputs)]
        # Kernels do not declare along which axes their outputs vary.
        attend = jax.shard_map(attend, mesh=mesh, in_specs=specs, out_specs=spec, check_vma=False)
    with jax.numpy_dtype_promotion("standard"):  # JAX's own code mixes types
        return attend(*inputs).swapaxes(1, 2)[:, :tokens]


def _import(name: str) -> Any:
    """Return a module of JAX's kernel. Pallas takes half a second to import, so this waits until it is used."""
    return importlib.import_module(f"jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_{name}")


def _build_kernel(heads: int, length: int, causal: bool, window: int | None, interpret: bool) -> Any:
    """Return a function of queries, keys and values [A, T, H], and segments, of one row."""
    kernels, masks = _import("kernel"), _import("mask")
    block = next(size for size in BLOCKS if length % size == 0)
    sizes = kernels.BlockSizes(
        block_q=block, block_kv=block, block_q_dkv=block, block_kv_dkv=block, use_fused_bwd_kernel=True
    )
    one = masks.CausalMask((length, length)) if causal else masks.FullMask((length, length))
    if window is not None:  # the kernel skips the blocks outside
        one = masks.LocalMask((length, length), (window, 0 if causal else window), 0)
    return kernels.make_splash_mha(
        masks.MultiHeadMask([one] * heads), block_sizes=sizes, head_shards=1, q_seq_shards=1, interpret=interpret
    )


def _find_mesh(x: Array) -> AbstractMesh | None:
    """Return the mesh that an array of a jitted function is placed on, or None if it has one device or is local."""
    mesh = jax.typeof(x).sharding.mesh
    automatic = all(kind == AxisType.Auto for kind in mesh.axis_types)
    return mesh if not mesh.empty and automatic and mesh.size > 1 else None


def _split(mesh: AbstractMesh, rows: int, heads: int) -> P:
    """Return how to split rows and heads; an axis that does not divide them is not used."""
    sizes = {name: mesh.shape.get(name, 1) for name in (*ROW_AXES, HEAD_AXIS)}
    by_rows = tuple(name for name in ROW_AXES if name in mesh.shape)
    rows_fit = by_rows and rows % math.prod(sizes[name] for name in by_rows) == 0
    heads_fit = HEAD_AXIS in mesh.shape and heads % sizes[HEAD_AXIS] == 0
    return P(by_rows if rows_fit else None, HEAD_AXIS if heads_fit else None)
