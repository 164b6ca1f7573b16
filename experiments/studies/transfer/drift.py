"""Drift and gradient norms of the layers of an encoder in the first steps of fine-tuning.

Made to compare ways of transfer: does an encoder drift less if the head is trained first?
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from bert_elmo_jax import optim, train
from bert_elmo_jax.report.figures import Figure, Lines
from bert_elmo_jax.train.step import Step

from ..why_attention.studies import Findings

DepthOf = Callable[[str], int | None]
OWN_STEPS, FIRST = 10, 5  # steps of the own training of a layer, for its drift and its gradient
DRAWN = ("all", "head_first")  # ways with gradients in the figure


class Trace(NamedTuple):
    """Drifts and gradient norms of each layer after each step, means over seeds, and the scores at the end.

    A drift is the norm of the difference to the start, as a share of the norm at the start.
    """

    layers: tuple[str, ...]
    drift: Float[np.ndarray, "S L"]
    whole: Float[np.ndarray, " S"]  # drift of the encoder as a whole
    gradients: Float[np.ndarray, "S L"]  # before clipping
    scores: tuple[float, ...] = ()

    def begins(self) -> list[int | None]:
        """Return the first step that moves each layer, or None."""
        moved = self.drift > 0
        return [int(np.argmax(steps)) if steps.any() else None for steps in moved.T]


class Norms(NamedTuple):
    """The norms of the last gradients, by layer."""

    layers: Float[Array, " L"]


def name_layers(params: Mapping[str, Any], depth_of: DepthOf) -> dict[str, list[int]]:
    """Return the leaves of each layer of `params["encoder"]`, as numbers in the order of `jax.tree.leaves`.

    >>> params = {"encoder": {"embeddings": {"word": 1}, "layer_0": {"kernel": 1}, "norm": {"scale": 1}}, "tag": 1}
    >>> name_layers(params, {"embeddings/word": 0, "layer_0/kernel": 1}.get)
    {'embeddings': [0], 'layer 1': [1], 'above': [2]}
    """
    depths = optim.depths(dict(params), depth_of)
    top = max(jax.tree.leaves(depths))
    paths: dict[int, list[int]] = {}
    for n, depth in enumerate(jax.tree.leaves(depths["encoder"])):
        paths.setdefault(depth, []).append(n)
    names = {0: "embeddings", top: "above"}
    return {names.get(depth, f"layer {depth}"): paths[depth] for depth in sorted(paths)}


def layer_norms(encoder: Any, layers: Mapping[str, Sequence[int]]) -> Float[Array, " L"]:
    """Return the norm of each layer's parameters.

    >>> layer_norms({"a": jnp.array([3.0, 4.0]), "b": jnp.ones(1)}, {"embeddings": [0], "layer 1": [1]}).tolist()
    [5.0, 1.0]
    """
    leaves = jax.tree.leaves(encoder)
    return jnp.stack([optax.tree.norm([leaves[n] for n in numbers]) for numbers in layers.values()])


def keep_norms(layers: Mapping[str, Sequence[int]]) -> optax.GradientTransformation:
    """Return a transformation that changes nothing, whose state has the norms of the encoder's gradients."""

    def update(updates: Any, state: Norms, params: Any = None) -> tuple[Any, Norms]:
        return updates, Norms(layer_norms(updates["encoder"], layers))

    return optax.GradientTransformation(lambda params: Norms(jnp.zeros(len(layers))), update)


def build_step(
    loss: Any, method: Any, coefficients: Mapping[str, float], layers: Mapping[str, Sequence[int]]
) -> tuple[Step, optax.GradientTransformation]:
    """Return a compiled step and its optimizer, which keeps the norms of gradients for `follow`."""
    recording = optax.chain(keep_norms(layers), method)
    return jax.jit(train.make_step(loss, recording, coefficients)), recording


def follow(
    step: Step, state: train.State, batches: Iterable[Any], layers: Mapping[str, Sequence[int]]
) -> tuple[Trace, train.State]:
    """Train with a step of `build_step`, and return what happened in each step, and the state at the end."""
    start = jax.device_get(state.params["encoder"])

    @jax.jit
    def drifts(now: Any) -> Float[Array, " N"]:
        moved = jax.tree.map(jnp.subtract, now, start)
        total = optax.tree.norm(moved) / optax.tree.norm(start)
        return jnp.append(layer_norms(moved, layers) / layer_norms(start, layers), total)

    drift_by_step, norms = [], []
    for batch in batches:
        state, _ = step(state, batch)
        drift_by_step.append(drifts(state.params["encoder"]))
        norms.append(state.optimizer[0].layers)
    drift = np.asarray(drift_by_step, np.float64)
    return Trace(tuple(layers), drift[:, :-1], drift[:, -1], np.asarray(norms, np.float64)), state


def mean_trace(traces: Sequence[Trace]) -> Trace:
    """Return the means of traces of several seeds, and all scores."""
    drift = np.mean([trace.drift for trace in traces], axis=0)
    total = np.mean([trace.whole for trace in traces], axis=0)
    gradients = np.mean([trace.gradients for trace in traces], axis=0)
    return Trace(traces[0].layers, drift, total, gradients, tuple(s for trace in traces for s in trace.scores))


def compare_ways(traces: Mapping[str, Mapping[str, Trace]], score: str) -> Findings:
    """Return tables and one line of figures for each model; `traces` has one for each model and way."""
    tables: dict[str, Sequence[Sequence[str]]] = {}
    figures: dict[str, Figure] = {}
    for model, ways in traces.items():
        layers = next(iter(ways.values())).layers
        tables[f"{model}: drift at the end"] = [
            ["way", score, "encoder", *layers],
            *([way, *show_end(trace)] for way, trace in ways.items()),
        ]
        tables[f"{model}: drift of each layer after {OWN_STEPS} steps of its own training"] = [
            ["way", *layers],
            *([way, *own_drifts(trace)] for way, trace in ways.items()),
        ]
        tables[f"{model}: gradient norm of each layer in its first {FIRST} steps"] = [
            ["way", *layers],
            *([way, *first_gradients(trace)] for way, trace in ways.items()),
        ]
        drift = {way: thin_out(trace.whole) for way, trace in ways.items()}
        figures[f"{model}_drift"] = Lines(f"{model}: drift of the encoder", "step", "share of its norm", drift)
        norms = {
            f"{way}, {layer}": thin_out(ways[way].gradients[:, n])
            for way in [name for name in DRAWN if name in ways] or ways
            for n, layer in enumerate(layers)
        }
        figures[f"{model}_gradients"] = Lines(f"{model}: gradient norm of each layer", "step", "norm", norms)
    return Findings(tables, figures)


def show_end(trace: Trace) -> list[str]:
    """Return the mean score with its deviation, the drift of the encoder and of its layers, as cells of a table."""
    score = "–"
    if trace.scores:
        spread = f" ± {np.std(trace.scores, ddof=1):.3f}" if len(trace.scores) > 1 else ""
        score = f"{np.mean(trace.scores):.3f}{spread}"
    return [score, f"{trace.whole[-1]:.3f}", *(f"{value:.3f}" for value in trace.drift[-1])]


def own_drifts(trace: Trace) -> list[str]:
    """Return the drift of each layer `OWN_STEPS` steps after it begins to train; – if it does not train so long."""
    ends = [None if begin is None else begin + OWN_STEPS - 1 for begin in trace.begins()]
    reached = [end is not None and end < len(trace.drift) for end in ends]
    return [
        f"{trace.drift[end, n]:.4f}" if is_reached else "–" for n, (end, is_reached) in enumerate(zip(ends, reached))
    ]


def first_gradients(trace: Trace) -> list[str]:
    """Return the mean gradient norm of each layer in its first `FIRST` steps of training; – if it has none."""
    return [
        "–" if begin is None else f"{trace.gradients[begin : begin + FIRST, n].mean():.3g}"
        for n, begin in enumerate(trace.begins())
    ]


def thin_out(values: Float[np.ndarray, " S"]) -> list[tuple[int, float]]:
    """Return every fourth step, from 1, with its value.

    >>> thin_out(np.arange(6.0))
    [(1, 0.0), (5, 4.0)]
    """
    return [(n + 1, float(value)) for n, value in enumerate(values) if n % 4 == 0]
