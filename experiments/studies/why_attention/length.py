"""Time and memory of one LSTM layer and of one attention layer of the same width, by the length of the text."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bert_elmo_jax.nn.attention import SelfAttention
from bert_elmo_jax.nn.lstm import lstm

Kind = Literal["lstm", "attention"]
KINDS: tuple[Kind, ...] = ("lstm", "attention")
LENGTHS = (16, 32, 64, 128, 256, 512, 1024)
WIDTH, HEADS, ROWS = 128, 4, 8


class Cost(NamedTuple):
    """The cost of one layer for one batch."""

    kind: Kind
    length: int
    gradients: bool
    seconds: float  # the fastest of several runs
    memory: int  # bytes of all intermediate results, as the compiler planned them
    operations: int  # multiplications and additions of the formulas, see `count_operations`


def measure_lengths(
    lengths: Sequence[int] = LENGTHS, *, width: int = WIDTH, rows: int = ROWS, least: float = 0.3, seed: int = 0
) -> list[Cost]:
    """Measure both layers at each length, without and with gradients; each for `least` seconds and five times or more.

    The memory is what the compiled program needs beyond its inputs and outputs, so it is the same in every run.
    """
    costs = []
    for kind in KINDS:
        for length in lengths:
            forward, params, x = build_layer(kind, length, width=width, rows=rows, seed=seed)

            def backward(params: Any, x: Array, forward: Callable[..., Array] = forward) -> Any:
                return jax.grad(lambda params, x: jnp.square(forward(params, x)).sum(), argnums=(0, 1))(params, x)

            for gradients, function in ((False, forward), (True, backward)):
                compiled = jax.jit(function).lower(params, x).compile()
                planned: Any = compiled.memory_analysis()
                operations = count_operations(kind, length, width, rows) * (3 if gradients else 1)
                seconds = fastest(partial(compiled, params, x), least)
                costs.append(Cost(kind, length, gradients, seconds, int(planned.temp_size_in_bytes), operations))
    return costs


def build_layer(
    kind: Kind, length: int, *, width: int = WIDTH, rows: int = ROWS, heads: int = HEADS, seed: int = 0
) -> tuple[Callable[[Any, Array], Array], Any, Float[Array, "B T D"]]:
    """Return a layer as a function of its parameters and input, random parameters, and an input.

    >>> forward, params, x = build_layer("lstm", 5, width=8, rows=2)
    >>> forward(params, x).shape
    (2, 5, 8)
    """
    key, for_params = jax.random.split(jax.random.key(seed))
    x = jax.random.normal(key, (rows, length, width))
    if kind == "attention":
        module = SelfAttention(heads)
        return lambda params, x: module.apply({"params": params}, x)[0], module.init(for_params, x)["params"], x
    kernels = jax.random.normal(for_params, (2, width, 4 * width)) / width**0.5
    zero, full = jnp.zeros((rows, width)), jnp.full((rows,), length)

    def forward(params: Any, x: Array) -> Array:
        return lstm(x, params["input"], params["state"], params["bias"], None, zero, zero, full)[0]

    return forward, {"input": kernels[0], "state": kernels[1], "bias": jnp.zeros(4 * width)}, x


def count_operations(kind: Kind, length: int, width: int, rows: int) -> int:
    """Return the operations of the matrix products: per word 16 d² for an LSTM, 8 d² + 4 T d for attention.

    >>> count_operations("lstm", 256, 128, 1) == count_operations("attention", 256, 128, 1)
    True
    """
    each = 16 * width**2 if kind == "lstm" else 8 * width**2 + 4 * length * width
    return rows * length * each


def fastest(run: Callable[[], Any], least: float) -> float:
    """Return the seconds of the fastest run among five or more, after one that is not counted."""
    jax.block_until_ready(run())
    times: list[float] = []
    while len(times) < 5 or sum(times) < least:
        began = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - began)
    return min(times)


def find_crossing(lengths: Sequence[int], falls: Sequence[float], rises: Sequence[float]) -> float | None:
    """Return the length at which the second cost becomes larger than the first, between two measured ones, or None.

    Costs are interpolated as powers of the length, as straight lines on logarithmic axes.

    >>> find_crossing([16, 64], [1.0, 1.0], [0.5, 2.0])
    32.0
    """
    gaps = np.log(np.asarray(rises) / np.asarray(falls))
    for n in range(1, len(lengths)):
        if gaps[n - 1] <= 0 < gaps[n]:
            share = -gaps[n - 1] / (gaps[n] - gaps[n - 1])
            return round(float(lengths[n - 1] * (lengths[n] / lengths[n - 1]) ** share), 1)
    return None
