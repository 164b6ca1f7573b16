"""The loop over the steps of one or several recurrent networks."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int

TOGETHER = 20  # steps that a GPU runs without returning to the loop

Step = Callable[[Array, Any], tuple[Any, Any]]


class Loop(NamedTuple):
    """A network's steps: `step(t, carry)` returns the carry and the outputs at t.

    `outputs` are arrays [T, ...] whose entry t is replaced by the outputs at t. With `reverse`, the last step is first.
    """

    step: Step
    carry: Any
    outputs: Any
    reverse: bool = False


def run_steps(loops: Sequence[Loop], lengths: Int[Array, " B"], *, trained: bool = False) -> list[tuple[Any, Any]]:
    """Return the last carry and the outputs of each network; they run side by side, in one loop.

    On a CPU, their products then use several cores, and the loop ends with the longest row: batches are padded to few
    widths, so an eighth of the steps can be padding alone. A step of padding must not change the carry, and one that
    does not run writes nothing to `outputs`.

    A `trained` loop is unrolled on a GPU: a step of ELMo takes 0.87 of its time, but ten more seconds to compile.
    """
    steps = jax.tree.leaves(loops[0].outputs)[0].shape[0]
    if not steps:
        return [(loop.carry, loop.outputs) for loop in loops]
    # An accelerator would wait in every step to learn whether there is another one.
    skips = jax.default_backend() == "cpu"
    end = jnp.minimum(jnp.max(lengths, initial=0), steps) if skips else steps
    together = TOGETHER if trained and jax.default_backend() == "gpu" else 1

    def run(n: Array, states: Any) -> Any:
        moved = []
        for loop, (carry, outputs) in zip(loops, states, strict=True):
            t = end - 1 - n if loop.reverse else n
            carry, new = loop.step(t, carry)
            moved.append((carry, _write(outputs, new, t)))
        return moved

    states = [(loop.carry, loop.outputs) for loop in loops]
    return lax.fori_loop(0, end, run, states, unroll=None if skips else together)


def _write(arrays: Any, new: Any, t: Array) -> Any:
    return jax.tree.map(lambda array, part: lax.dynamic_update_index_in_dim(array, part, t, 0), arrays, new)
