"""Why attention divides its scores by √d: the variance of a dot product, the saturated softmax, and training.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.2.1 and footnote 4.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from .small_training import first_above, fit, last_tenth, mean_loss, normal

WIDTHS = (4, 16, 64, 256, 1024)
PAIRS, WORDS, VALUE = 16, 64, 64  # pairs of a row, words of the language, width of a value
RIGHT = 0.95  # an accuracy that is called learned


class Saturation(NamedTuple):
    """Statistics of a softmax over the scores of random queries and keys; `scaled` scores are divided by √d."""

    width: int
    scaled: bool
    variance: float  # of a score
    largest: float  # the mean of the largest weight
    entropy: float  # in nats, on average
    gradient: float  # the mean norm of the gradient of a weight by the scores


def saturate(
    widths: Sequence[int] = WIDTHS, keys: int = PAIRS, samples: int = 2_000, seed: int = 0
) -> list[Saturation]:
    """Return for each width how far the softmax of unscaled and of scaled scores is saturated.

    Components of queries and keys are independent, with mean 0 and variance 1. The gradient of weight i by the scores
    is w_i (e_i - w): its norm is zero for a softmax that gives one key everything.

    >>> unscaled, scaled = saturate([256], samples=100)
    >>> unscaled.entropy < 0.5 < 2 < scaled.entropy
    True
    """
    draw, rows = np.random.default_rng(seed), []
    for width in widths:
        query = draw.standard_normal((samples, width))
        key = draw.standard_normal((samples, keys, width))
        scores = np.einsum("nd,nkd->nk", query, key)
        for scaled in (False, True):
            s = scores / math.sqrt(width) if scaled else scores
            weights = softmax(s)
            entropy = -(weights * np.log(np.maximum(weights, 1e-300))).sum(axis=1)
            rows.append(Saturation(
                width, scaled, float(s.var()), float(weights.max(axis=1).mean()), float(entropy.mean()),
                float(np.linalg.norm(softmax_gradient(weights), axis=2).mean()),
            ))  # fmt: skip
    return rows


def softmax(scores: Float[np.ndarray, "N K"]) -> Float[np.ndarray, "N K"]:
    """Return the softmax of each row.

    >>> softmax(np.array([[0.0, np.log(3.0)]])).round(2).tolist()
    [[0.25, 0.75]]
    """
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def softmax_gradient(weights: Float[np.ndarray, "N K"]) -> Float[np.ndarray, "N K K"]:
    """Return the derivative of each weight (second axis) by each score: w_i (δ_ij - w_j).

    >>> softmax_gradient(np.array([[0.5, 0.5]])).tolist()
    [[[0.25, -0.25], [-0.25, 0.25]]]
    >>> bool(softmax_gradient(np.array([[1.0, 0.0]])).any())
    False
    """
    return weights[:, :, None] * (np.eye(weights.shape[1])[None] - weights[:, None, :])


class Recall(NamedTuple):
    """One training on the recall task, with the accuracy of each step."""

    width: int
    scaled: bool
    losses: Float[np.ndarray, " S"]
    accuracies: Float[np.ndarray, " S"]
    stuck: float  # the share of the first batch's rows whose scores get less than 1 % of the possible gradient

    @property
    def learned(self) -> int | None:
        """The step at which `RIGHT` of the answers were right, or None."""
        return first_above(self.accuracies, RIGHT)

    @property
    def final(self) -> float:
        """The accuracy in the last tenth of the steps."""
        return last_tenth(self.accuracies)


def train_recall(width: int, scaled: bool, *, steps: int = 1_500, rate: float = 0.01, seed: int = 0) -> Recall:
    """Train one attention layer to find a word among pairs and to return the other word of its pair.

    A row has 16 pairs of words. The query is the first word of one pair, the answer its second word. The components of
    queries and keys begin with variance 1, as in `saturate`. Adam, 64 rows in a step.
    """
    params = init_recall(jax.random.key(seed), width)
    fitted = fit(
        lambda params, batch, key: recall_loss(params, batch, scaled),
        params, draw_pairs, steps=steps, optimiser=optax.adam(rate), seed=seed + 1,
    )  # fmt: skip
    weights = attend(params, draw_pairs(jax.random.key(seed + 2), 1_000), scaled)
    possible = np.linalg.norm(softmax_gradient(np.full((1, PAIRS), 1 / PAIRS)), axis=(1, 2))
    norms = np.linalg.norm(softmax_gradient(np.asarray(weights, np.float64)), axis=(1, 2))
    return Recall(width, scaled, fitted.losses, fitted.others, float((norms < 0.01 * possible).mean()))


def draw_pairs(key: PRNGKeyArray, rows: int = 64) -> dict[str, Array]:
    """Return rows of pairs with different first words, a query from each row, and its answer.

    >>> batch = draw_pairs(jax.random.key(0), 3)
    >>> {name: part.shape for name, part in batch.items()}
    {'firsts': (3, 16), 'seconds': (3, 16), 'queries': (3,), 'answers': (3,)}
    """
    order, words, places = jax.random.split(key, 3)
    firsts = jax.vmap(lambda k: jax.random.permutation(k, WORDS)[:PAIRS])(jax.random.split(order, rows))
    seconds = jax.random.randint(words, (rows, PAIRS), 0, WORDS)
    at, row = jax.random.randint(places, (rows,), 0, PAIRS), jnp.arange(rows)
    return {"firsts": firsts, "seconds": seconds, "queries": firsts[row, at], "answers": seconds[row, at]}


def init_recall(key: PRNGKeyArray, width: int) -> dict[str, Array]:
    """Return tables of queries, keys and values of each word, and a matrix from values to words."""
    keys = jax.random.split(key, 4)
    tables = {"query": width, "key": width, "value": VALUE}
    drawn = {name: jax.random.normal(k, (WORDS, size)) for (name, size), k in zip(tables.items(), keys)}
    return drawn | {"output": normal(keys[3], VALUE, WORDS)}


def attend(params: Any, batch: dict[str, Array], scaled: bool) -> Float[Array, "B K"]:
    """Return the weights of the pairs of each row."""
    scores = jnp.einsum("bd,bkd->bk", params["query"][batch["queries"]], params["key"][batch["firsts"]])
    return jax.nn.softmax(scores / math.sqrt(params["query"].shape[1]) if scaled else scores)


def recall_loss(params: Any, batch: dict[str, Array], scaled: bool) -> tuple[Array, Array]:
    """Return cross-entropy and accuracy of the answers."""
    read = jnp.einsum("bk,bkd->bd", attend(params, batch, scaled), params["value"][batch["seconds"]])
    return mean_loss(read @ params["output"], batch["answers"])
