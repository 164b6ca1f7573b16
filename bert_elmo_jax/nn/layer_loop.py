"""The loop over the layers of a transformer: one by one, or compiled once for equal layers."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, PRNGKeyArray

from bert_elmo_jax.gpu_switches import uses
from bert_elmo_jax.nn.any_array import AnyArray

Step = Callable[[Any, Any], tuple[Any, Any]]


class LayerCall(NamedTuple):
    """An unbound module such as `Layer(config, parent=None)`, and the arguments after `maps` that it is called with."""

    module: nn.Module
    arguments: tuple[Any, ...] = ()


class Encoded(NamedTuple):
    """The results of `run_layers`; fields that were not requested are None."""

    last: Float[Array, "B T D"]
    layers: Float[Array, "N B T D"] | None
    attentions: Float32[Array, "L B A T T"] | None


def run_layers(
    parent: nn.Module,
    calls: Sequence[LayerCall],
    x: Float[Array, "B T D"],
    segments: AnyArray | None = None,
    lengths: AnyArray | None = None,
    keys: Array | None = None,
    *,
    numbers: Sequence[int] = (),
    maps: bool = False,
    scales: Float[Array, " L"] | None = None,
) -> Encoded:
    """Run layers on the embeddings `x`; call it in the compact method of `parent`.

    `calls` has one entry per layer, the same object for equal layers, which are traced once while initialising, and
    with `config.scan` compiled once. The parameters of layer i are `layer_i` of `parent`, unless `config.layer_owners`
    names the layer that it shares them with. `keys` has one key per layer, and `scales` the last argument of each.
    `numbers` are the layers to return; 0 is `x`.
    """
    config: Any = parent.config
    trains = keys is not None and not parent.is_initializing() and scales is None
    kernels = choose_kernels(config, calls, maps) if trains else None

    def make_step(call: LayerCall) -> Step:
        def step(x: Any, inputs: Any) -> tuple[Any, Any]:
            params, key, scale = inputs
            params = params if shared is None else shared
            if kernels is not None:
                vectors = kernels.apply_layer(config, call, params, x, segments, lengths, key)
                return vectors, (kernels.finish(config, call, vectors) if numbers else None, None)
            arguments = call.arguments if scale is None else (*call.arguments, scale)
            outputs: Any = call.module.apply({"params": params}, x, segments, lengths, key, maps, *arguments)
            return outputs[0], (outputs[0] if numbers else None, outputs[1])

        if parent.is_initializing():
            return jax.jit(step)
        return jax.checkpoint(step, prevent_cse=not config.scan) if config.remat else step

    # Layers are functions of their parameters, so loop, remat and scan run the same code with the same keys.
    steps = {id(call): make_step(call) for call in calls}
    draws = {id(call): _make_draw(call, x) for call in calls}
    owners = getattr(config, "layer_owners", range(len(calls)))
    params = [_layer_params(parent, f"layer_{i}", draws[id(call)]) for i, call in zip(owners, calls, strict=True)]
    # Parameters of all layers are no input of a loop, which would copy them for each.
    shared = params[0] if len(calls) > 1 and set(owners) == {0} else None
    inputs = [
        (None if shared is not None else p, None if keys is None else keys[i], None if scales is None else scales[i])
        for i, p in enumerate(params)
    ]
    run = _run_in_periods if config.scan else _run_one_by_one
    first = x if kernels is None else kernels.begin(x, keys)
    last, (hidden, attentions) = run([steps[id(call)] for call in calls], first, inputs)
    last = last if kernels is None else kernels.finish(config, calls[-1], last)
    if numbers:
        hidden = jnp.concatenate([x[None], hidden])[np.array(numbers)]
    return Encoded(last, hidden, attentions)


def choose_kernels(config: Any, calls: Sequence[LayerCall], maps: bool) -> Any:
    """Return the module of GPU kernels that computes these layers, or None."""
    if not (uses("drop_add_norm") or uses("pre_norm")):
        return None
    from bert_elmo_jax.nn.gpu import post_norm_layer, pre_norm_layer  # loading a model imports no kernels

    if uses("drop_add_norm") and post_norm_layer.suits(config, calls, maps):
        return post_norm_layer
    return pre_norm_layer if uses("pre_norm") and pre_norm_layer.suits(config, calls, maps) else None


def _make_draw(call: LayerCall, x: Array) -> Callable[[PRNGKeyArray], Any]:
    """Return the function that draws the parameters of a layer; where only shapes are computed, it is traced once."""

    def draw(key: PRNGKeyArray) -> Any:
        return call.module.init(key, x, None, None, None, False, *call.arguments)["params"]

    draw_once = jax.jit(draw)
    return lambda key: draw_once(key) if isinstance(key, jax.core.Tracer) else draw(key)


def _layer_params(parent: nn.Module, name: str, draw: Callable[[PRNGKeyArray], Any]) -> Any:
    """Return the parameters of a layer; `parent.param` alone would trace their initialisation in every call."""
    return parent.get_variable("params", name) if parent.has_variable("params", name) else parent.param(name, draw)


def _run_one_by_one(steps: Sequence[Step], x: Any, inputs: Sequence[Any]) -> tuple[Any, Any]:
    """Return the last outputs of layers, and the further results of all, stacked."""
    results: list[Any] = []
    for step, step_inputs in zip(steps, inputs, strict=True):
        x, result = step(x, step_inputs)
        results.append(result)
    return x, stack(results)


def _run_in_periods(steps: Sequence[Step], x: Any, inputs: Sequence[Any]) -> tuple[Any, Any]:
    """Return the same as `_run_one_by_one`, but compile only one period of equal steps.

    The steps may repeat from the first or from the second on. Layers before and after whole periods run one by one.
    """
    start = int(find_period(steps) == len(steps))
    size = find_period(steps[start:])
    count = (len(steps) - start) // size if size else 0
    if count < 2:
        return _run_one_by_one(steps, x, inputs)
    end = start + count * size

    def period(x: Any, period_inputs: Any) -> tuple[Any, Any]:
        return _run_one_by_one(steps[start : start + size], x, period_inputs)

    results: list[Any] = []
    if start:
        x, result = _run_one_by_one(steps[:start], x, inputs[:start])
        results.append(result)
    # The k-th layers of all periods, stacked.
    x, looped = jax.lax.scan(period, x, [stack(inputs[start + k : end : size]) for k in range(size)], count)
    results.append(jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), looped))
    if end < len(steps):
        x, result = _run_one_by_one(steps[end:], x, inputs[end:])
        results.append(result)
    return x, jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *results) if len(results) > 1 else results[0]


def find_period(steps: Sequence[Any]) -> int:
    """Return after how many entries a list repeats itself; its length if it does not.

    >>> find_period("llgllgll"), find_period("gg"), find_period("lg"), find_period("")
    (3, 1, 2, 0)
    """
    sizes = range(1, len(steps) + 1)
    return next((size for size in sizes if all(a == b for a, b in zip(steps, steps[size:]))), 0)


def stack(trees: Sequence[Any]) -> Any:
    """Return trees of the same structure as one tree with a new first axis.

    >>> stack([{"bias": jnp.zeros(3)}, {"bias": jnp.ones(3)}])["bias"].shape
    (2, 3)
    """
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)
