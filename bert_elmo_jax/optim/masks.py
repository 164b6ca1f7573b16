"""Weight decay, freezing and layer-wise learning rates, selected by parameter paths."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax

from bert_elmo_jax.optim.paths import PyTree, matches, path_name

# BERT's rule, extended by the weights of ELMo's layer mixtures. The relative_bias of MPNet is a table of embeddings.
NO_DECAY = (r"(.*/)?((output|word|state|actions)_)?bias", r"(.*/)?norm/.*", r"(.*/)?mix(_\d+)?/.*")


def decayed(params: PyTree) -> PyTree:
    """Return a mask that is True for matrices and embeddings, and False for biases, layer norms and layer mixtures.

    >>> decayed({"dense": {"kernel": 0, "bias": 0}, "norm": {"scale": 0}, "mix_0": {"gamma": 0}})
    {'dense': {'bias': False, 'kernel': True}, 'mix_0': {'gamma': False}, 'norm': {'scale': False}}
    """
    return jax.tree.map(lambda excluded: not excluded, matches(params, NO_DECAY))


def freeze(optimizer: optax.GradientTransformation, patterns: Sequence[str]) -> optax.GradientTransformationExtraArgs:
    """Freeze the parameters that a pattern matches: they keep every bit and have no optimiser state.

    Frozen gradients are not read, so a compiled step does not compute them, and a global norm inside `optimizer`
    excludes them. Apply this wrapper last.

    >>> params = {"encoder": {"layer_0": jnp.ones(2), "layer_1": jnp.ones(2)}, "head": jnp.ones(2)}
    >>> optimizer = freeze(optax.sgd(0.5), ["encoder/layer_0"])
    >>> updates, _ = optimizer.update(params, optimizer.init(params), params)
    >>> {name: leaf.tolist() for name, leaf in optax.apply_updates(params, updates)["encoder"].items()}
    {'layer_0': [1.0, 1.0], 'layer_1': [0.5, 0.5]}
    """

    def trained(tree: PyTree) -> PyTree:
        return jax.tree.map(lambda frozen: not frozen, matches(tree, patterns, each_must=True))

    masked = optax.masked(optimizer, trained)

    def update(updates: PyTree, state: Any, params: PyTree = None, **extra: Any) -> tuple[PyTree, Any]:
        updates, state = masked.update(updates, state, params, **extra)
        return jax.tree.map(lambda train, u: u if train else nothing(u), trained(updates), updates), state

    return optax.GradientTransformationExtraArgs(masked.init, update)


def nothing(like: jax.Array) -> jax.Array:
    """Return an update of -0.0, which changes no bit: x + -0.0 is x for every x, while -0.0 + 0.0 is 0.0.

    (A processor that flushes denormal numbers may still change those.)
    """
    return jnp.full_like(like, -0.0)


def depths(params: PyTree, depth_of: Callable[[str], int | None]) -> PyTree:
    """Return the layer of each parameter: by `depth_of` below `encoder`, one above the last for everything else.

    `depth_of` maps a path below `encoder` to its layer, 0 for embeddings, or to None for parts above the last layer.
    Layers are counted without gaps. A decoder inside the encoder has layers only if the encoder has a pooler, which
    reads them; other tasks read the encoder's last layer.

    >>> encoder = {"embeddings": 0, "layer_0": 0, "layer_1": 0, "pooler": 0}
    >>> depths({"encoder": encoder, "mlm": 0}, {"embeddings": 0, "layer_0": 1, "layer_1": 2}.get)
    {'encoder': {'embeddings': 0, 'layer_0': 1, 'layer_1': 2, 'pooler': 3}, 'mlm': 3}
    """
    paths = [path_name(path) for path, _ in jax.tree_util.tree_leaves_with_path(params)]
    unread = () if any(path.startswith("encoder/pooler/") for path in paths) else ("encoder/decoder/",)

    def layer(path: tuple[Any, ...], _: Any) -> int:
        name = path_name(path)
        inside = name.startswith("encoder/") and not name.startswith(unread)
        depth = depth_of(name.removeprefix("encoder/")) if inside else None
        return -1 if depth is None else depth

    layers = jax.tree_util.tree_map_with_path(layer, params)
    numbers = sorted(set(jax.tree.leaves(layers)) - {-1})
    closed = {depth: numbers[0] + n for n, depth in enumerate(numbers)}
    top = max(closed.values(), default=-1) + 1
    if not top:
        raise ValueError(
            "layer-wise learning rates need an encoder's parameters below `encoder`; there are none: the first paths "
            f"are {', '.join(paths[:3])}"
        )
    return jax.tree.map(lambda depth: closed.get(depth, top), layers)


def scale_by_depth(decay: float, depth_of: Callable[[str], int | None]) -> optax.GradientTransformation:
    """Scale updates by layer: heads by 1, and each layer by `decay` times the factor of the layer above.

    Chain it after an optimiser: `optax.chain(adamw(…), scale_by_depth(0.9, family.depth_of))`.

    >>> params = {"encoder": {"layer_0": jnp.ones(1), "layer_1": jnp.ones(1)}, "classify": jnp.ones(1)}
    >>> scale = scale_by_depth(0.5, {"layer_0": 1, "layer_1": 2}.get)
    >>> updates, _ = scale.update(params, optax.EmptyState())
    >>> updates["encoder"]["layer_0"].item(), updates["encoder"]["layer_1"].item(), updates["classify"].item()
    (0.25, 0.5, 1.0)
    """

    def scale(updates: PyTree, params: PyTree = None) -> PyTree:
        of = depths(updates, depth_of)
        top = max(jax.tree.leaves(of))
        return jax.tree.map(lambda u, depth: u * decay ** (top - depth), updates, of)

    return optax.stateless(scale)
