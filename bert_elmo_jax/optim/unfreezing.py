"""Training of parts of a model in some steps only: gradual unfreezing, and one layer after the other."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Int32

from bert_elmo_jax.optim.masks import nothing
from bert_elmo_jax.optim.paths import PyTree
from bert_elmo_jax.optim.schedules import Schedule


@dataclass(frozen=True)
class Spans:
    """The steps that train a parameter, as half-open spans (first, end); an end of None is the end of the run.

    >>> Spans(((0, 10), (30, None))).name  # steps 0 to 9, and all from 30 on
    '0-10,30-'
    >>> Spans().always, Spans(()).never
    (True, True)
    """

    steps: tuple[tuple[int, int | None], ...] = ((0, None),)

    @property
    def always(self) -> bool:
        """True for all steps."""
        return self.steps == ((0, None),)

    @property
    def never(self) -> bool:
        """True for no step."""
        return not self.steps

    @property
    def name(self) -> str:
        """The name of the optimiser's state in a checkpoint."""
        if len(self.steps) == 1 and self.steps[0][1] is None:
            return str(self.steps[0][0])
        return ",".join(f"{start}-{'' if end is None else end}" for start, end in self.steps)

    def include(self, step: Int32[Array, ""]) -> Bool[Array, ""]:
        """Return whether a step is in a span.

        >>> [bool(Spans(((1, 2), (3, None))).include(jnp.int32(step))) for step in range(5)]
        [False, True, False, True, True]
        """
        inside = [(step >= start) & (True if end is None else step < end) for start, end in self.steps]
        return jnp.any(jnp.stack(inside)) if inside else jnp.zeros((), bool)

    def begin(self, step: Int32[Array, ""]) -> Bool[Array, ""]:
        """Return whether a span begins with a step."""
        return jnp.any(jnp.stack([step == start for start, _ in self.steps])) if self.steps else jnp.zeros((), bool)


class Joined(NamedTuple):
    """The number of steps, and the state of each group's optimiser."""

    step: Int32[Array, ""]
    groups: dict[str, Any]


def train_during(
    spans: PyTree, rate: Schedule, optimizer: Callable[[Schedule], optax.GradientTransformation], clip: float
) -> optax.GradientTransformation:
    """Train each parameter in its `Spans` (a tree like the parameters), at the rate of the step.

    Outside of them, the parameter keeps every bit, and clipping by global norm excludes it. Parameters with the same
    spans share an optimiser, made by `optimizer`, whose state starts afresh in each span. Parameters that are never
    trained have no optimiser state, and their gradients are not read.

    >>> params = {"encoder": jnp.ones(1), "head": jnp.ones(1)}
    >>> spans = {"encoder": Spans(((1, None),)), "head": Spans(((0, 1), (2, None)))}
    >>> method = train_during(spans, lambda step: 0.5, optax.sgd, clip=10.0)
    >>> state, steps = method.init(params), []
    >>> for _ in range(3):
    ...     updates, state = method.update(params, state, params)
    ...     steps.append([updates[name].item() for name in params])
    >>> steps
    [[-0.0, -0.5], [-0.5, -0.0], [-0.5, -0.5]]
    """
    named = {leaf.name: leaf for leaf in jax.tree.leaves(spans) if not leaf.never}
    members = {name: jax.tree.map(lambda leaf_spans, name=name: leaf_spans.name == name, spans) for name in named}
    norm = optax.clip_by_global_norm(clip)

    def group(name: str, now: Schedule) -> optax.GradientTransformation:
        return optax.masked(optimizer(now), members[name])

    first = {name: group(name, rate) for name in named}

    def init(params: PyTree) -> Joined:
        return Joined(jnp.zeros((), jnp.int32), {name: method.init(params) for name, method in first.items()})

    def update(updates: PyTree, state: Joined, params: PyTree = None) -> tuple[PyTree, Joined]:
        awake = {name: group_spans.include(state.step) for name, group_spans in named.items()}

        def keep(u: Array, leaf_spans: Spans, other: Callable[[Array], Array]) -> Array:
            return other(u) if leaf_spans.never else jnp.where(awake[leaf_spans.name], u, other(u))

        clipped = jax.tree.map(lambda u, leaf_spans: keep(u, leaf_spans, jnp.zeros_like), updates, spans)
        out, _ = norm.update(clipped, norm.init(params))
        inner = {}
        for name, group_spans in named.items():
            # A group changes only its own leaves. Its rate is this step's, however long it has been trained.
            method, before = group(name, lambda _: rate(state.step)), state.groups[name]
            begun = before
            if len(group_spans.steps) > 1:
                begun = pick(group_spans.begin(state.step), method.init(params), before)
            out, after = method.update(out, begun, params)
            inner[name] = pick(awake[name], after, before)
        out = jax.tree.map(lambda u, leaf_spans: keep(u, leaf_spans, nothing), out, spans)
        return out, Joined(state.step + 1, inner)

    return optax.GradientTransformation(init, update)


def pick(condition: Bool[Array, ""], one: PyTree, other: PyTree) -> PyTree:
    """Return one of two trees."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), one, other)
