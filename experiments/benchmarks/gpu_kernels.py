r"""The kernels of `bert_elmo_jax.nn.gpu` alone on the GPU at hand: values against XLA, and the bandwidth they reach.

  python -m experiments.benchmarks.gpu_kernels

The first lines are the ceilings of this card: a product of 8192³ in bfloat16, and a copy of one gigabyte.
"""

import itertools
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from absl import flags

from bert_elmo_jax.gpu_switches import using
from bert_elmo_jax.nn.activations import gelu
from bert_elmo_jax.nn.dropout import dropout
from bert_elmo_jax.nn.gpu import drop_add_norm, gelu as gelu_kernel
from bert_elmo_jax.nn.layers import layer_norm
from experiments.command_line.start import start

FLAGS = flags.FLAGS
CALLS = 20


def define() -> None:
    """Define the flags."""
    flags.DEFINE_integer("rows", 32768, "Vectors of a batch.", lower_bound=64)
    flags.DEFINE_bool("interpret", False, "Only check the values, without a GPU.")


def say(**line: Any) -> None:
    """Print a line of JSON."""
    print(json.dumps(line), flush=True)


def seconds(function: Callable[..., Any], *arguments: Any) -> float:
    """Return the median seconds of one call of many that are waited for together."""
    run = jax.jit(function)
    jax.block_until_ready(run(*arguments))
    times = []
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(CALLS):
            out = run(*arguments)
        jax.block_until_ready(out)
        times.append((time.perf_counter() - began) / CALLS)
    return statistics.median(times)


def measure_ceilings() -> None:
    """Print the rate of a large product and of a copy."""
    a, b = jax.random.normal(jax.random.key(0), (2, 8192, 8192), jnp.bfloat16)
    taken = seconds(lambda a, b: a @ b, a, b)
    say(what="product 8192³", teraflops=round(2 * 8192**3 / taken / 1e12, 1), card=jax.devices()[0].device_kind)
    x = jax.random.normal(jax.random.key(0), (2**29,), jnp.bfloat16)
    taken = seconds(lambda x: x + jnp.bfloat16(1), x)
    say(what="copy of 1 GiB", terabytes=round(2 * x.nbytes / taken / 1e12, 3))


def compare(name: str, ours: Any, xla: Any, exact: Any) -> None:
    """Print the largest differences of ours and of XLA from float32, for every output."""
    far = [
        [float(jnp.abs(a.astype(jnp.float32) - e.astype(jnp.float32)).max()) for e, a in zip(*pair)]
        for pair in ((jax.tree.leaves(exact), jax.tree.leaves(ours)), (jax.tree.leaves(exact), jax.tree.leaves(xla)))
    ]
    say(what=f"{name}: largest differences from float32", ours=far[0], xla=far[1])


def widen(tree: Any) -> Any:
    """Return a tree in float32."""
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), tree)


def check_and_time_norm(rows: int, width: int, timed: bool) -> None:
    """Print the values, the bandwidth of each way to launch it, and XLA's time."""
    keys = jax.random.split(jax.random.key(1), 8)
    x, y, g, h = (jax.random.normal(k, (rows, width), jnp.bfloat16) for k in keys[:4])
    bias, scale, offset = (jax.random.normal(k, (width,)) for k in keys[4:7])

    def by_xla(x: Any, y: Any, bias: Any, scale: Any, offset: Any) -> Any:
        out = layer_norm(x + dropout(y + bias.astype(y.dtype), 0.1, keys[7]), scale, offset, 1e-12)
        return out, out

    def by_kernel(*arrays: Any) -> Any:
        return drop_add_norm.drop_add_norm(*arrays, 0.1, keys[7], 1e-12)

    def both(function: Any, gradients: Any) -> Any:
        def run(*arrays: Any) -> Any:
            out, back = jax.vjp(function, *arrays)
            return out[0], back(gradients)
        return jax.jit(run)

    inputs, name = (x, y, bias, scale, offset), f"drop_add_norm {rows} × {width}"
    compare(name, both(by_kernel, (g, h))(*inputs), both(by_xla, (g, h))(*inputs),
            both(by_xla, widen((g, h)))(*widen(inputs)))  # fmt: skip
    if not timed:
        return
    say(what=f"{name}, both ways by XLA", microseconds=round(1e6 * seconds(both(by_xla, (g, h)), *inputs), 1))
    say(what=f"{name}, both ways", microseconds=round(1e6 * seconds(both(by_kernel, (g, h)), *inputs), 1))
    words = jax.random.bits(keys[7], (2, rows), jnp.uint32)
    total, _, mean, inverse = jax.jit(lambda *a: drop_add_norm.run_forward(*a, words, 0.1, 1e-12))(*inputs)
    size = 2 * rows * width
    for block, warps in itertools.product((8, 32), (2, 4, 8)) if width == 768 else ():
        way = (block, warps)
        forward = seconds(lambda *a: drop_add_norm.run_forward(*a, words, 0.1, 1e-12, way), *inputs)
        back = seconds(
            lambda *a: drop_add_norm.run_backward(*a, words, 0.1, way), g, h, total, mean, inverse, scale
        )
        say(what=name, rows=block, warps=warps, forward=round(1e6 * forward, 1), backward=round(1e6 * back, 1),
            forward_terabytes=round(4 * size / forward / 1e12, 2), backward_terabytes=round(5 * size / back / 1e12, 2))  # fmt: skip


def check_and_time_gelu(rows: int, width: int, timed: bool) -> None:
    """Print the values, the bandwidth of each way to launch it, and XLA's time."""
    keys = jax.random.split(jax.random.key(2), 3)
    y, g = (jax.random.normal(k, (rows, width), jnp.bfloat16) for k in keys[:2])
    bias = jax.random.normal(keys[2], (width,))

    def both(function: Any, g: Any) -> Any:
        def run(y: Any, bias: Any) -> Any:
            out, back = jax.vjp(function, y, bias)
            return out, back(g)
        return jax.jit(run)

    def by_xla(y: Any, bias: Any) -> Any:
        return gelu(y + bias.astype(y.dtype))

    name = f"bias_gelu {rows} × {width}"
    compare(name, both(gelu_kernel.bias_gelu, g)(y, bias), both(by_xla, g)(y, bias),
            both(by_xla, widen(g))(*widen((y, bias))))  # fmt: skip
    if not timed:
        return
    say(what=f"{name}, both ways by XLA", microseconds=round(1e6 * seconds(both(by_xla, g), y, bias), 1))
    say(what=f"{name}, both ways", microseconds=round(1e6 * seconds(both(gelu_kernel.bias_gelu, g), y, bias), 1))
    size = 2 * rows * width
    for block, wide, warps in ((16, 1024, 4), (32, 1024, 4), (32, 1024, 8), (16, 512, 4), (32, 512, 2)):
        way = (block, wide, warps)
        forward = seconds(lambda y, b: gelu_kernel.run_forward(y, b, way), y, bias)
        back = seconds(lambda g, y, b: gelu_kernel.run_backward(g, y, b, way), g, y, bias)
        say(what=name, rows=block, columns=wide, warps=warps, forward=round(1e6 * forward, 1),
            backward=round(1e6 * back, 1), forward_terabytes=round(2 * size / forward / 1e12, 2),
            backward_terabytes=round(3 * size / back / 1e12, 2))  # fmt: skip


def main() -> None:
    """Check and measure; a failure of one part leaves the others."""
    parts: list[Callable[[], None]] = [] if FLAGS.interpret else [measure_ceilings]
    timed = not FLAGS.interpret
    parts += [lambda: check_and_time_norm(FLAGS.rows, 768, timed), lambda: check_and_time_gelu(FLAGS.rows, 3072, timed)]
    parts += [lambda: check_and_time_norm(FLAGS.rows, 1024, timed)]
    with using("drop_add_norm", "gelu", interpret=FLAGS.interpret):
        for part in parts:
            try:
                part()
            except Exception as error:  # of one kernel: the others are still measured
                say(error=f"{type(error).__name__}: {error}"[:2000])


if __name__ == "__main__":
    start("benchmarks.gpu_kernels", define, main)
