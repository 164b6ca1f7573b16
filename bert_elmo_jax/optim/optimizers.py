"""The papers' optimisers as optax transformations, with gradient clipping and decoupled weight decay."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from bert_elmo_jax.optim.global_norm import global_norm
from bert_elmo_jax.optim.masks import decayed
from bert_elmo_jax.optim.paths import PyTree
from bert_elmo_jax.optim.schedules import Schedule

Rate = float | Schedule


def bert_adam(
    learning_rate: Rate,
    *,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-6,
    decay: float = 0.01,
    clip: float = 1.0,
) -> optax.GradientTransformation:
    """Return BERT's Adam, without bias correction and with decay scaled by the learning rate.

    >>> optimizer, params = bert_adam(0.1, decay=0.0), {"kernel": jnp.ones(1)}
    >>> updates, _ = optimizer.update({"kernel": jnp.array([0.5])}, optimizer.init(params), params)
    >>> round(updates["kernel"].item(), 4)  # -0.1 · 0.1 · 0.5 / (√0.001 · 0.5): the first steps are long
    -0.3162
    """
    return optax.chain(
        clip_by_global_norm(clip),
        scale_by_uncorrected_adam(b1, b2, eps),
        optax.add_decayed_weights(decay, decayed),
        optax.scale_by_learning_rate(learning_rate),
    )


def adamw(
    learning_rate: Rate,
    *,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-6,
    decay: float = 0.01,
    clip: float = 1.0,
) -> optax.GradientTransformation:
    """Return optax's AdamW after clipping by global norm; biases and layer norms are not decayed.

    >>> optimizer, params = adamw(0.1, decay=0.0), {"kernel": jnp.ones(1)}
    >>> updates, _ = optimizer.update({"kernel": jnp.array([0.5])}, optimizer.init(params), params)
    >>> round(updates["kernel"].item(), 4)
    -0.1
    """
    return optax.chain(
        clip_by_global_norm(clip), optax.adamw(learning_rate, b1, b2, eps, weight_decay=decay, mask=decayed)
    )


def lamb(
    learning_rate: Rate, *, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-6, decay: float = 0.01
) -> optax.GradientTransformation:
    """Return LAMB (You et al. 2019, https://arxiv.org/abs/1904.00962), for batches of tens of thousands.

    Gradients are divided by their global norm. Each tensor's step of AdamW is then scaled to the norm of its weights,
    except for biases and layer norms.

    >>> optimizer, params = lamb(0.1, decay=0.0), {"kernel": jnp.array([3.0, 4.0]), "bias": jnp.zeros(1)}
    >>> updates, _ = optimizer.update({"kernel": jnp.ones(2), "bias": jnp.ones(1)}, optimizer.init(params), params)
    >>> round(float(jnp.linalg.norm(updates["kernel"])), 4)  # ten per cent of its norm, 5
    0.5
    """
    return optax.chain(
        normalise_by_global_norm(),
        optax.scale_by_adam(b1, b2, eps),
        optax.add_decayed_weights(decay, decayed),
        optax.masked(scale_by_trust_ratio(), decayed),
        optax.scale_by_learning_rate(learning_rate),
    )


def adagrad(learning_rate: Rate = 0.2, *, initial: float = 1.0, clip: float = 10.0) -> optax.GradientTransformation:
    """Return TensorFlow's Adagrad: `accumulator += g²`, `-rate · g / √accumulator`, without eps.

    The defaults are ELMo's. (ELMo also multiplies its loss, the mean of both directions, by 20, which belongs to the
    loss.) A zero gradient changes nothing, so row-sparse updates are possible (`bert_elmo_jax.optim.rows`).

    >>> optimizer, params = adagrad(0.2), {"table": jnp.ones(2)}
    >>> updates, _ = optimizer.update({"table": jnp.array([0.0, 3.0])}, optimizer.init(params), params)
    >>> round(updates["table"][1].item(), 4)  # -0.2 · 3 / √(1 + 9)
    -0.1897
    """
    return optax.chain(
        clip_by_global_norm(clip),
        optax.scale_by_rss(initial_accumulator_value=initial, eps=0.0),
        optax.scale_by_learning_rate(learning_rate),
    )


def row_sgd(learning_rate: Rate = 0.025, *, longest: float = 1.0) -> optax.GradientTransformation:
    """Return gradient descent that moves no row of a table further than `longest` in a step.

    word2vec follows the gradient of one pair of words after the other. A batch adds many gradients of a frequent word,
    all at the same place, and their sum may lead far beyond the optimum. A zero gradient changes nothing, so row-sparse
    updates are possible (`bert_elmo_jax.optim.rows`).

    >>> optimizer, params = row_sgd(0.1), {"table": jnp.zeros((2, 2))}
    >>> updates, _ = optimizer.update({"table": jnp.array([[3.0, 4.0], [30.0, 40.0]])}, optimizer.init(params), params)
    >>> [[round(number, 2) for number in row] for row in updates["table"].tolist()]
    [[-0.3, -0.4], [-0.6, -0.8]]
    """

    def shorten(updates: PyTree, params: PyTree = None) -> PyTree:
        def one(update: jax.Array) -> jax.Array:
            norm = jnp.sqrt(jnp.square(update).sum(axis=-1, keepdims=True)) if update.ndim > 1 else jnp.abs(update)
            return update * jnp.where(norm > longest, longest / norm, 1.0)

        return jax.tree.map(one, updates)

    return optax.chain(optax.scale_by_learning_rate(learning_rate), optax.stateless(shorten))


def clip_by_global_norm(longest: float) -> optax.GradientTransformation:
    """Scale all gradients by one factor if their global norm exceeds `longest`.

    optax's function of this name divides each number by the norm, which costs a pass over all gradients.

    >>> clipped, _ = clip_by_global_norm(1.0).update({"w": jnp.array([3.0, 4.0])}, optax.EmptyState())
    >>> [round(number, 4) for number in clipped["w"].tolist()]
    [0.6, 0.8]
    """

    def clip(updates: PyTree, params: PyTree = None) -> PyTree:
        norm = global_norm(updates)
        factor = jnp.where(norm < longest, jnp.ones_like(norm), longest / norm)
        return jax.tree.map(lambda u: u * factor.astype(u.dtype), updates)

    return optax.stateless(clip)


class Moments(NamedTuple):
    """Running means of the gradients and their squares."""

    mu: PyTree
    nu: PyTree


def scale_by_uncorrected_adam(b1: float, b2: float, eps: float) -> optax.GradientTransformation:
    """Scale by `m / (√v + eps)` without bias correction, which optax's `scale_by_adam` always applies."""

    def init(params: PyTree) -> Moments:
        return Moments(jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params))

    def update(updates: PyTree, state: Moments, params: PyTree = None) -> tuple[PyTree, Moments]:
        mu = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, state.mu, updates)
        nu = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * jnp.square(g), state.nu, updates)
        return jax.tree.map(lambda m, v: m / (jnp.sqrt(v) + eps), mu, nu), Moments(mu, nu)

    return optax.GradientTransformation(init, update)


def normalise_by_global_norm() -> optax.GradientTransformation:
    """Divide all gradients by their global norm, unless it is zero."""

    def normalise(updates: PyTree, params: PyTree = None) -> PyTree:
        norm = global_norm(updates)
        norm = jnp.where(norm == 0, jnp.ones_like(norm), norm)
        return jax.tree.map(lambda u: u / norm.astype(u.dtype), updates)

    return optax.stateless(normalise)


def scale_by_trust_ratio() -> optax.GradientTransformation:
    """Scale the update of each tensor to the norm of its weights, unless either norm is zero."""

    def scale_tensor(update: jax.Array, param: jax.Array) -> jax.Array:
        weight_norm, norm = jnp.linalg.norm(param.ravel()), jnp.linalg.norm(update.ravel())
        defined = (weight_norm > 0) & (norm > 0)
        return update * jnp.where(defined, weight_norm / jnp.where(defined, norm, 1.0), 1.0).astype(update.dtype)

    return optax.stateless(lambda updates, params: jax.tree.map(scale_tensor, updates, params))
