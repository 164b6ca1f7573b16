r"""Kernels for a GPU alone on the one at hand: values against XLA, and the bandwidth they reach.

  python -m experiments.benchmarks.gpu_kernels --output=launch.json
  python -m experiments.benchmarks.gpu_kernels --interpret --rows=64

The first lines are the ceilings of this card: a product of 8192³ in bfloat16, and a copy of one gigabyte. `--output` is
a file for the best way to launch each kernel, which `gpu_steps --launch` reads. The second command checks the values
without a GPU.
"""

import json
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from absl import flags

from bert_elmo_jax.files import write_json
from bert_elmo_jax.gpu_switches import using
from bert_elmo_jax.nn.activations import gelu
from bert_elmo_jax.nn.dropout import dropout
from bert_elmo_jax.nn.gpu import drop_add_norm, heads, row_losses
from bert_elmo_jax.nn.gpu import gelu as gelu_kernel
from bert_elmo_jax.nn.gpu.launch import LAUNCH, PROCESSORS
from bert_elmo_jax.nn.layers import layer_norm

from ..command_line.start import start

FLAGS = flags.FLAGS
CALLS = 20
RATE, EPS = 0.1, 1e-12
RULES = drop_add_norm.Rules(RATE, EPS)


def define() -> None:
    """Define the flags."""
    flags.DEFINE_integer("rows", 32768, "Vectors of a batch.", lower_bound=64)
    flags.DEFINE_integer("vocab_size", 30522, "Of the logits.", lower_bound=2)
    flags.DEFINE_bool("interpret", False, "Only check the values, without a GPU.")
    flags.DEFINE_string("output", None, "A file for the best way to launch each kernel.")


def say(**line: Any) -> None:
    """Print a line of JSON."""
    print(json.dumps(line), flush=True)


def time_call(function: Callable[..., Any], *arguments: Any) -> float:
    """Return the seconds of one call: the median of a few turns of many calls that are waited for together."""
    run = jax.jit(function)
    jax.block_until_ready(run(*arguments))
    times = []
    for _ in range(5):
        began = time.perf_counter()
        out: Any = None
        for _ in range(CALLS):
            out = run(*arguments)
        jax.block_until_ready(out)
        times.append((time.perf_counter() - began) / CALLS)
    return statistics.median(times)


def measure_ceilings() -> None:
    """Print the rate of a large product and of a copy."""
    a, b = jax.random.normal(jax.random.key(0), (2, 8192, 8192), jnp.bfloat16)
    taken = time_call(lambda a, b: a @ b, a, b)
    say(what="product 8192³", teraflops=round(2 * 8192**3 / taken / 1e12, 1), card=jax.devices()[0].device_kind)
    x = jax.random.normal(jax.random.key(0), (2**28,), jnp.float32)
    taken = time_call(lambda x: x + 1, x)
    say(what="1 GiB read and written", terabytes=round(2 * x.nbytes / taken / 1e12, 3))


def tune(name: str, ways: Sequence[tuple[int, int]], size: float, call: Callable[..., Any], *inputs: Any) -> None:
    """Time a kernel in every way to launch it, (programs per processor, warps), print them, and keep the best."""
    times = {}
    for programs, warps in ways:
        way = (programs * PROCESSORS, warps)
        LAUNCH[name] = way
        try:
            times[way] = time_call(lambda *arrays: call(*arrays), *inputs)
        except Exception as error:
            say(what=name, way=way, error=f"{type(error).__name__}: {error}"[:300])
    LAUNCH[name] = min(times, key=lambda way: times[way])
    rates = {f"{way[0] // PROCESSORS} × {way[1]}": round(size / taken / 1e12, 2) for way, taken in times.items()}
    best = 1e6 * times[LAUNCH[name]]
    say(what=f"{name}, programs per processor × warps", terabytes=rates, best=LAUNCH[name], microseconds=round(best, 1))


def compare(name: str, ours: Any, xla: Any, exact: Any) -> None:
    """Print the largest differences of ours and of XLA from float32, for every output."""

    def differences(results: Any) -> list[float]:
        pairs = zip(jax.tree.leaves(results), jax.tree.leaves(exact), strict=True)
        return [float(jnp.abs(a.astype(jnp.float32) - b).max()) for a, b in pairs]

    say(what=f"{name}: largest differences from float32", ours=differences(ours), xla=differences(xla))


def widen(tree: Any) -> Any:
    """Return a tree in float32."""
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), tree)


def both_ways(function: Any, gradients: Any) -> Any:
    """Return the function, compiled, with its gradients."""

    def run(*arrays: Any) -> Any:
        out, back = jax.vjp(function, *arrays)
        return out, back(gradients)

    return jax.jit(run)


def check_norm(rows: int, width: int, timed: bool) -> None:
    """Check and time bias, dropout, residual and norm."""
    keys = jax.random.split(jax.random.key(1), 8)
    x, y, g, h = (jax.random.normal(k, (rows, width), jnp.bfloat16) for k in keys[:4])
    inputs = (x, y, *(jax.random.normal(k, (width,)) for k in keys[4:7]))

    def by_xla(x: Any, y: Any, bias: Any, scale: Any, offset: Any) -> Any:
        out = layer_norm(x + dropout(y + bias.astype(y.dtype)[None], RATE, keys[7]), scale, offset, EPS)
        return out, out

    def by_kernel(x: Any, y: Any, bias: Any, scale: Any, offset: Any) -> Any:
        return drop_add_norm.drop_add_norm(x, y, bias, scale, offset, keys[7], RULES)

    name, exact = f"drop_add_norm {rows} × {width}", both_ways(by_xla, widen((g, h)))(*widen(inputs))
    compare(name, both_ways(by_kernel, (g, h))(*inputs), both_ways(by_xla, (g, h))(*inputs), exact)
    if timed:
        words, size = jax.random.bits(keys[7], (2, rows), jnp.uint32), 2 * rows * width

        def forward(x: Any, y: Any, bias: Any, scale: Any, offset: Any) -> Any:
            return drop_add_norm.run_forward(x, y, bias, scale, offset, words, RULES)

        def back(g: Any, h: Any, total: Any, mean: Any, inverse: Any, scale: Any) -> Any:
            return drop_add_norm.run_backward(g, h, total, mean, inverse, scale, words, RULES)

        total, _, mean, inverse = jax.jit(forward)(*inputs)
        tune("drop_add_norm", ((4, 4), (8, 4), (16, 4), (16, 2)), 4 * size, forward, *inputs)
        ways = ((3, 4), (4, 4), (6, 4), (8, 4), (8, 2))
        tune("drop_add_norm_back", ways, 5 * size, back, g, h, total, mean, inverse, inputs[3])


def check_gelu(rows: int, width: int, timed: bool) -> None:
    """Check and time bias and gelu."""
    keys = jax.random.split(jax.random.key(2), 3)
    y, g = (jax.random.normal(k, (rows, width), jnp.bfloat16) for k in keys[:2])
    bias = jax.random.normal(keys[2], (width,))

    def by_xla(y: Any, bias: Any) -> Any:
        return gelu(y + bias.astype(y.dtype)[None])

    exact = both_ways(by_xla, widen(g))(*widen((y, bias)))
    ours = both_ways(gelu_kernel.bias_gelu, g)(y, bias)
    compare(f"bias_gelu {rows} × {width}", ours, both_ways(by_xla, g)(y, bias), exact)
    if timed:
        size = 2 * rows * width
        forward, back = (partial(run, by_tanh=False) for run in (gelu_kernel.run_forward, gelu_kernel.run_backward))
        tune("bias_gelu", ((4, 4), (8, 4), (16, 4), (4, 8)), 2 * size, forward, y, bias)
        tune("bias_gelu_back", ((2, 4), (4, 4), (8, 4), (2, 8)), 3 * size, back, g, y, bias)


def check_heads(rows: int, width: int, timed: bool) -> None:
    """Time the kernel that joins the gradients of queries, keys and values."""
    parts = jax.random.normal(jax.random.key(3), (3, rows, width), jnp.bfloat16)

    def merge(query: Any, key: Any, value: Any) -> Any:
        return heads.merge(query, key, value, None)

    together, sums = jax.jit(merge)(*parts)
    exact = (widen(jnp.concatenate(list(parts), 1)), widen(parts).sum(1).ravel())
    compare(f"merge_heads {rows} × {width}", (together, sums.sum(0)), exact, exact)
    if timed:
        size = 2 * rows * width
        tune("merge_heads", ((4, 4), (8, 4), (8, 2)), 6 * size, merge, *parts)


def check_losses(rows: int, vocab_size: int, timed: bool) -> None:
    """Check and time cross entropy and accuracy."""
    logits = 3 * jax.random.normal(jax.random.key(4), (rows // 6, vocab_size))
    targets = jax.random.randint(jax.random.key(5), (rows // 6,), 0, vocab_size)
    weights = jnp.ones(rows // 6)

    def sums(*kernels: str) -> Any:
        with using(*kernels, interpret=FLAGS.interpret):
            return jax.jit(row_losses.cross_entropy_and_accuracy)(logits, targets, weights)

    ours, xla = sums("row_losses"), sums()
    compare(f"row_losses {rows // 6} × {vocab_size}", ours, xla, xla)
    if timed:
        tune_losses(logits, targets)


def tune_losses(logits: Any, targets: Any) -> None:
    """Time the losses of rows; each row has its program."""
    times = {}
    for warps in (4, 8, 16):
        LAUNCH["row_losses"] = (0, warps)
        times[warps] = time_call(lambda *arrays: row_losses.row_losses(*arrays), logits, targets)
        say(what="row_losses", warps=warps, terabytes=round(logits.nbytes / times[warps] / 1e12, 2))
    LAUNCH["row_losses"] = (0, min(times, key=lambda warps: times[warps]))


def main() -> None:
    """Check and measure; a failure of one part leaves the others."""
    timed = not FLAGS.interpret
    if timed and jax.default_backend() != "gpu":
        raise ValueError(f"there is no GPU, only {jax.default_backend()}: --interpret --rows=64 checks the values here")
    parts: list[Callable[[], None]] = [measure_ceilings] if timed else []
    parts += [
        lambda: check_norm(FLAGS.rows, 768, timed), lambda: check_gelu(FLAGS.rows, 3072, timed),
        lambda: check_heads(FLAGS.rows, 768, timed), lambda: check_losses(FLAGS.rows, FLAGS.vocab_size, timed),
    ]  # fmt: skip
    with using("drop_add_norm", "gelu", interpret=FLAGS.interpret):
        for part in parts:
            try:
                part()
            except Exception as error:  # of one kernel: the others are still measured
                say(error=f"{type(error).__name__}: {error}"[:2000])
            if FLAGS.output:
                write_json(FLAGS.output, LAUNCH)


if __name__ == "__main__":
    start("benchmarks.gpu_kernels", define, main)
