"""The softmax over a whole vocabulary, computed in chunks.

With 800,000 words, the logits of 1,000 positions take 3 GB, and so do their gradients. Here only `[positions, chunk]`
logits exist at a time: the forward pass carries the sum of exponentials between chunks, and the backward pass
recomputes the logits. The vocabulary is neither padded nor copied. Where all logits take little memory, training keeps
them instead, which saves one of four products.
"""

import math
from functools import partial
from typing import SupportsFloat

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Float32, Int

from bert_elmo_jax.losses.cross_entropy import Sums, inside

KEEP = 150_000_000  # logits, 600 MB


def full_softmax(
    hidden: Float[Array, "N D"],
    table: Float[Array, "V D"],
    bias: Float[Array, " V"],
    targets: Int[Array, " N"],
    weights: Float[Array, " N"] | Int[Array, " N"],
    chunk: int = 8192,
    keep: int = KEEP,
) -> Sums:
    """Return Σ weight · cross entropy of the logits `hidden @ table.T + bias`, and Σ weight, in float32.

    Where there are at most `keep` logits, the backward pass does not compute them again.

    >>> hidden, table, targets, weights = jnp.ones((2, 8)), jnp.ones((9, 8)), jnp.array([3, 1]), jnp.array([1, 0])
    >>> total, weight = full_softmax(hidden, table, jnp.zeros(9), targets, weights, chunk=4)
    >>> round(float(jnp.exp(total / weight)), 3)
    9.0
    """
    weights = weights.astype(jnp.float32)
    counts = weights != 0
    hidden = jnp.where(counts[:, None], hidden, jnp.zeros_like(hidden))
    targets = inside(targets, counts, table.shape[0])
    rows = jnp.take(table, targets, axis=0, mode="fill").astype(hidden.dtype)
    chosen = jnp.einsum("nd,nd->n", hidden, rows, preferred_element_type=jnp.float32)
    chosen = chosen + jnp.take(bias, targets, mode="fill").astype(jnp.float32)
    # Masked, because ignored targets became word 0, whose loss may be infinite, and 0 · ∞ is NaN.
    losses = jnp.where(counts, log_normaliser(hidden, table, bias, chunk, keep) - chosen, jnp.zeros_like(chosen))
    return jnp.sum(weights * losses), weights.sum()


def perplexity(total: SupportsFloat, weight: SupportsFloat) -> float:
    """Return exp(total / weight), from sums over a held-out text.

    >>> round(perplexity(total=30 * 3.68, weight=30), 1)
    39.6
    """
    if not float(weight) > 0:
        raise ValueError(f"perplexity needs at least one predicted word, but the weight is {weight}")
    mean = float(total) / float(weight)
    return math.exp(mean) if mean < 709 else math.inf


@partial(jax.custom_vjp, nondiff_argnums=(3, 4))
def log_normaliser(
    hidden: Float[Array, "N D"], table: Float[Array, "V D"], bias: Float[Array, " V"], chunk: int, keep: int = KEEP
) -> Float32[Array, " N"]:
    """Return log Σᵥ exp(hidden · tableᵥ + biasᵥ), computed in chunks."""

    def add(carry: tuple[Array, Array], begin: Array) -> tuple[tuple[Array, Array], None]:
        largest, total = carry
        logits = chunk_of_logits(hidden, table, bias, begin, chunk)[0]
        above = jnp.maximum(largest, logits.max(axis=1))
        # Avoid -inf - -inf = NaN while all logits were -inf.
        anchor = jnp.where(jnp.isneginf(above), jnp.zeros_like(above), above)
        return (above, total * jnp.exp(largest - anchor) + jnp.exp(logits - anchor[:, None]).sum(axis=1)), None

    n = hidden.shape[0]
    start = jnp.full(n, -jnp.inf, jnp.float32), jnp.zeros(n, jnp.float32)
    (largest, total), _ = lax.scan(add, start, jnp.arange(0, table.shape[0], chunk))
    return jnp.where(jnp.isneginf(largest), largest, largest + jnp.log(total))


Saved = tuple[Array, Array, Array, Array, Array | None]


def _forward(hidden: Array, table: Array, bias: Array, chunk: int, keep: int) -> tuple[Array, Saved]:
    if hidden.shape[0] * table.shape[0] <= keep:
        logits, _ = chunk_of_logits(hidden, table, bias, jnp.zeros((), jnp.int32), table.shape[0])
        normaliser = jax.nn.logsumexp(logits, axis=1)
        return normaliser, (hidden, table, bias, normaliser, logits)
    normaliser = log_normaliser(hidden, table, bias, chunk, keep)
    return normaliser, (hidden, table, bias, normaliser, None)


def _backward(chunk: int, keep: int, saved: Saved, cotangent: Array) -> tuple[Array, Array, Array]:
    hidden, table, bias, normaliser, all_logits = saved
    if all_logits is not None:
        shares = jnp.exp(all_logits - normaliser[:, None]) * cotangent[:, None]
        of_bias = shares.sum(axis=0).astype(bias.dtype)
        shares = shares.astype(hidden.dtype)
        of_hidden = jnp.matmul(shares, table.astype(hidden.dtype), preferred_element_type=jnp.float32)
        of_table = jnp.matmul(shares.T, hidden, preferred_element_type=jnp.float32)
        return of_hidden.astype(hidden.dtype), of_table.astype(table.dtype), of_bias
    size = min(chunk, table.shape[0])

    def add(carry: tuple[Array, Array, Array], begin: Array) -> tuple[tuple[Array, Array, Array], None]:
        for_hidden, for_table, for_bias = carry
        logits, start = chunk_of_logits(hidden, table, bias, begin, chunk)
        shares = jnp.exp(logits - normaliser[:, None]) * cotangent[:, None]
        of_bias = lax.dynamic_slice_in_dim(for_bias, start, size) + shares.sum(axis=0).astype(bias.dtype)
        shares = shares.astype(hidden.dtype)
        rows = lax.dynamic_slice_in_dim(table, start, size).astype(hidden.dtype)
        for_hidden = for_hidden + jnp.matmul(shares, rows, preferred_element_type=jnp.float32)
        of_table = jnp.matmul(shares.T, hidden, preferred_element_type=jnp.float32).astype(table.dtype)
        of_table = lax.dynamic_slice_in_dim(for_table, start, size) + of_table
        for_table = lax.dynamic_update_slice_in_dim(for_table, of_table, start, axis=0)
        return (for_hidden, for_table, lax.dynamic_update_slice_in_dim(for_bias, of_bias, start, axis=0)), None

    zeros = jnp.zeros(hidden.shape, jnp.float32), jnp.zeros_like(table), jnp.zeros_like(bias)
    (for_hidden, for_table, for_bias), _ = lax.scan(add, zeros, jnp.arange(0, table.shape[0], chunk))
    return for_hidden.astype(hidden.dtype), for_table, for_bias


log_normaliser.defvjp(_forward, _backward)


def chunk_of_logits(
    hidden: Float[Array, "N D"], table: Float[Array, "V D"], bias: Float[Array, " V"], begin: Int[Array, ""], chunk: int
) -> tuple[Float32[Array, "N C"], Int[Array, ""]]:
    """Return the logits of a chunk and the id of its first word.

    The last chunk ends with the vocabulary. It may start with words of the previous chunk, which get -inf.
    """
    words, size = table.shape[0], min(chunk, table.shape[0])
    start = jnp.minimum(begin, words - size)
    rows = lax.dynamic_slice_in_dim(table, start, size).astype(hidden.dtype)
    logits = jnp.einsum("nd,cd->nc", hidden, rows, preferred_element_type=jnp.float32)
    logits = logits + lax.dynamic_slice_in_dim(bias, start, size).astype(jnp.float32)[None, :]
    new: Bool[Array, " C"] = start + jnp.arange(size) >= begin
    return jnp.where(new[None, :], logits, jnp.full_like(logits, -jnp.inf)), start
