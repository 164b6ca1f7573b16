"""One attention head against many of the same total width, on a task that needs several answers from one row.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.2.2: with one head, averaging hides which word had
which role.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from .small_training import fit, last_tenth, mean_loss, normal

ROLES = ("who", "did", "what", "where", "when", "why", "how", "whose")
ANSWERS, WORDS, WIDTH = 4, 256, 64  # the query asks for the first roles; words of the language; width of the layer
HEADS = (1, 2, 4, 8, 16)


class Answered(NamedTuple):
    """One training with some number of heads; `weights` are the mean weights of each head for each role."""

    heads: int
    parameters: int
    losses: Float[np.ndarray, " S"]
    accuracies: Float[np.ndarray, " S"]
    weights: Float[np.ndarray, "A R"]

    @property
    def final(self) -> float:
        """The accuracy in the last tenth of the steps."""
        return last_tenth(self.accuracies)


def compare_heads(
    heads: Sequence[int] = HEADS, *, steps: int = 1_500, rate: float = 0.003, seed: int = 0
) -> list[Answered]:
    """Train one attention layer with each number of heads to tell four words by their roles.

    A row has eight words in random order, each with a role. Word and role are added, as a word and its position are
    in a Transformer. One query asks for the words of four roles, which are read from its output by one matrix.
    """
    return [answer(count, steps=steps, rate=rate, seed=seed) for count in heads]


def answer(heads: int, *, steps: int, rate: float = 0.003, seed: int = 0) -> Answered:
    """Train with some number of heads; Adam, 64 rows in a step."""
    if WIDTH % heads:
        raise ValueError(f"{heads} heads do not divide a width of {WIDTH}: give a divisor, such as 1, 2, 4, 8 or 16")
    params = init_roles(jax.random.key(seed))

    def loss(params: Any, batch: dict[str, Array], key: PRNGKeyArray) -> tuple[Array, Array]:
        return mean_loss(read_roles(params, batch, heads)[0], batch["answers"])

    fitted = fit(loss, params, draw_roles, steps=steps, optimiser=optax.adam(rate), seed=seed + 1)
    batch = draw_roles(jax.random.key(seed + 2), 500)
    weights = np.asarray(read_roles(fitted.params, batch, heads)[1])
    by_role = np.take_along_axis(weights, np.argsort(np.asarray(batch["roles"]), axis=1)[:, None], axis=2)
    count = sum(leaf.size for leaf in jax.tree.leaves(params))
    return Answered(heads, count, fitted.losses, fitted.others, by_role.mean(axis=0))


def draw_roles(key: PRNGKeyArray, rows: int = 64) -> dict[str, Array]:
    """Return rows of words with their roles, and the answers: the words of the first roles.

    >>> batch = draw_roles(jax.random.key(0), 3)
    >>> {name: part.shape for name, part in batch.items()}
    {'roles': (3, 8), 'words': (3, 8), 'answers': (3, 4)}
    """
    order, drawn = jax.random.split(key)
    roles = jax.vmap(lambda k: jax.random.permutation(k, len(ROLES)))(jax.random.split(order, rows))
    words = jax.random.randint(drawn, (rows, len(ROLES)), 0, WORDS)
    return {
        "roles": roles,
        "words": words,
        "answers": jnp.take_along_axis(words, jnp.argsort(roles, axis=1)[:, :ANSWERS], axis=1),
    }


def init_roles(key: PRNGKeyArray) -> dict[str, Array]:
    """Return the parameters, the same for every number of heads."""
    keys = jax.random.split(key, 8)
    tables = {"role": (len(ROLES), WIDTH), "word": (WORDS, WIDTH), "ask": (1, WIDTH)}
    matrices = {"query": WIDTH, "key": WIDTH, "value": WIDTH, "output": WIDTH, "read": ANSWERS * WORDS}
    drawn = {name: jax.random.normal(k, shape) for (name, shape), k in zip(tables.items(), keys)}
    return drawn | {name: normal(k, WIDTH, size) for (name, size), k in zip(matrices.items(), keys[len(tables) :])}


def read_roles(params: Any, batch: dict[str, Array], heads: int) -> tuple[Float[Array, "B 4 V"], Float[Array, "B A R"]]:
    """Return the logits of the four answers, and the weights of each head."""
    x = params["role"][batch["roles"]] + params["word"][batch["words"]]
    b, t, _ = x.shape
    query = (params["ask"] @ params["query"]).reshape(heads, -1)
    key, value = ((x @ params[name]).reshape(b, t, heads, -1) for name in ("key", "value"))
    weights = jax.nn.softmax(jnp.einsum("ah,btah->bat", query, key) / math.sqrt(WIDTH // heads))
    mixed = jnp.einsum("bat,btah->bah", weights, value).reshape(b, WIDTH)
    return (mixed @ params["output"] @ params["read"]).reshape(b, ANSWERS, WORDS), weights
