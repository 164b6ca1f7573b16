"""Weight decay, freezing and layer-wise learning rates, selected by parameter paths."""

import re
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax

from bert_elmo_jax.optim.paths import PyTree, matches, path_name

# BERT's rule, extended by the weights of ELMo's layer mixtures.
NO_DECAY = (r"(.*/)?bias", r"(.*/)?norm/.*", r"(.*/)?mix(_\d+)?/.*")


def decayed(params: PyTree) -> PyTree:
    """Return a mask that is True for matrices and embeddings, and False for biases, layer norms and layer mixtures.

    >>> from bert_elmo_jax.optim import decayed
    >>> decayed({"dense": {"kernel": 0, "bias": 0}, "norm": {"scale": 0}, "mix_0": {"gamma": 0}})
    {'dense': {'bias': False, 'kernel': True}, 'mix_0': {'gamma': False}, 'norm': {'scale': False}}
    """
    return jax.tree.map(lambda excluded: not excluded, matches(params, NO_DECAY))


def freeze(optimizer: optax.GradientTransformation, patterns: Sequence[str]) -> optax.GradientTransformationExtraArgs:
    """Freeze the parameters that a pattern matches: they keep every bit and have no optimiser state.

    Frozen gradients are not read, so a compiled step does not compute them, and a global norm inside `optimizer`
    excludes them. Apply this wrapper last.

    >>> import jax.numpy as jnp, optax
    >>> from bert_elmo_jax.optim import freeze
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

    >>> import jax.numpy as jnp
    >>> from bert_elmo_jax.optim.masks import nothing
    >>> (jnp.array([-0.0, 0.0]) + nothing(jnp.ones(2))).tolist()
    [-0.0, 0.0]
    """
    return jnp.full_like(like, -0.0)


def depths(params: PyTree) -> PyTree:
    """Return the depth of each parameter: 0 for embeddings, n + 1 for `layer_n`, and one more for all above.

    >>> from bert_elmo_jax.optim import depths
    >>> encoder = {"embeddings": {"word": 0}, "layer_0": {"up": 0}, "layer_1": {"up": 0}, "pooler": 0}
    >>> depths({"encoder": encoder, "mlm": 0})
    {'encoder': {'embeddings': {'word': 0}, 'layer_0': {'up': 1}, 'layer_1': {'up': 2}, 'pooler': 3}, 'mlm': 3}
    """
    # Only the encoder, because a task's network may have layers, too.
    layer = re.compile(r"encoder/(?:forward/|backward/)?layer_(\d+)(?:/.*)?")
    names = [path_name(path) for path, _ in jax.tree_util.tree_leaves_with_path(params)]
    numbers = [int(found[1]) for name in names if (found := layer.fullmatch(name))]
    if not numbers:
        raise ValueError(
            "layer-wise learning rates need parameters named encoder/…layer_<number>/…; the first paths are "
            + ", ".join(names[:3])
        )

    def depth(path: tuple[Any, ...], _: Any) -> int:
        name = path_name(path)
        if found := layer.fullmatch(name):
            return int(found[1]) + 1
        return 0 if re.fullmatch(r"encoder/(embeddings|token)/.*", name) else max(numbers) + 2

    return jax.tree_util.tree_map_with_path(depth, params)


def scale_by_depth(decay: float) -> optax.GradientTransformation:
    """Scale updates by depth: heads learn at the full rate, and each lower layer `decay` times as fast.

    Chain it after an optimiser: `optax.chain(adamw(…), scale_by_depth(0.9))`.

    >>> import jax.numpy as jnp, optax
    >>> from bert_elmo_jax.optim import scale_by_depth
    >>> params = {"encoder": {"layer_0": jnp.ones(1), "layer_1": jnp.ones(1)}, "classify": jnp.ones(1)}
    >>> updates, _ = scale_by_depth(0.5).update(params, optax.EmptyState())
    >>> updates["encoder"]["layer_0"].item(), updates["encoder"]["layer_1"].item(), updates["classify"].item()
    (0.25, 0.5, 1.0)
    """
    if not 0 < decay <= 1:
        raise ValueError(f"a layer-wise decay of {decay}: expected above 0 and at most 1, which means no decay")

    def scale(updates: PyTree, params: PyTree = None) -> PyTree:
        of = depths(updates)
        top = max(jax.tree.leaves(of))
        return jax.tree.map(lambda u, depth: u * decay ** (top - depth), updates, of)

    return optax.stateless(scale)
