"""A training loop for models of a few thousand parameters, and sentences of the toy world as arrays."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bert_elmo_jax.losses import accuracy, cross_entropy
from bert_elmo_jax.toyworld import ToyWorld

Loss = Callable[[Any, Any, PRNGKeyArray], tuple[Array, Any]]


class Fitted(NamedTuple):
    """The parameters after training, and for each step the loss and the further figures of the loss function."""

    params: Any
    losses: Float[np.ndarray, " S"]
    others: Any


def fit(
    loss: Loss,
    params: Any,
    draw: Callable[[PRNGKeyArray], Any],
    *,
    steps: int,
    optimiser: optax.GradientTransformation,
    seed: int = 0,
) -> Fitted:
    """Train on the batches that `draw(key)` returns; `loss(params, batch, key)` returns a loss and further figures.

    All steps run in one compiled loop, so there is neither a checkpoint nor a report on the way.

    >>> square = lambda params, batch, key: (jnp.square(params - batch), params)
    >>> fitted = fit(square, jnp.zeros(()), lambda key: 3.0, steps=50, optimiser=optax.sgd(0.1))
    >>> round(float(fitted.params), 2), len(fitted.losses)
    (3.0, 50)
    """

    def step(state: Any, key: PRNGKeyArray) -> tuple[Any, Any]:
        params, moments = state
        for_batch, for_loss = jax.random.split(key)
        (value, figures), gradient = jax.value_and_grad(loss, has_aux=True)(params, draw(for_batch), for_loss)
        updates, moments = optimiser.update(gradient, moments, params)
        return (optax.apply_updates(params, updates), moments), (value, figures)

    keys = jax.random.split(jax.random.key(seed), steps)
    state, (losses, figures) = jax.jit(lambda state: jax.lax.scan(step, state, keys))((params, optimiser.init(params)))
    return Fitted(*jax.device_get((state[0], losses, figures)))


def first_above(values: Float[np.ndarray, " S"], level: float, span: int = 20) -> int | None:
    """Return the first step after which the mean of the last `span` values exceeds a level, or None.

    >>> first_above(np.array([0.0, 0.2, 0.9, 1.0, 1.0]), 0.9, span=2)
    4
    """
    if len(values) < span:
        return None
    means = np.convolve(values, np.ones(span) / span, "valid")
    above = np.flatnonzero(means > level)
    return int(above[0]) + span if len(above) else None


def last_tenth(values: Float[np.ndarray, " S"]) -> float:
    """Return the mean of the last tenth of some values.

    >>> last_tenth(np.arange(20.0))
    18.5
    """
    return float(values[-max(1, len(values) // 10) :].mean())


class Texts(NamedTuple):
    """Sentences as rows of word ids; 0 is padding and 1 is `[MASK]`, the words of the world follow."""

    train: Int[np.ndarray, "N T"]
    test: Int[np.ndarray, "M T"]
    words: tuple[str, ...]

    @property
    def size(self) -> int:
        """The number of ids."""
        return len(self.words) + 2


def toy_texts(world: ToyWorld, train: int = 20_000, test: int = 1_000) -> Texts:
    """Return sentences of the toy world, those to train on and others from documents of their own.

    >>> texts = toy_texts(ToyWorld("en", topics=2, words=2), train=20, test=5)
    >>> texts.train.shape[0], texts.test.shape[0], texts.words[texts.test[0, 0] - 2]
    (20, 5, 'One')
    """
    words = world.network.words
    ids = {word: n + 2 for n, word in enumerate(words)}
    sentences: list[list[int]] = []
    document = 0
    while len(sentences) < train + test:
        rows = [[ids[word] for word in sentence.words] for sentence in world.document(document).sentences]
        needed = train - len(sentences) if len(sentences) < train else train + test - len(sentences)
        sentences += rows[:needed]
        document += 1
    table = np.zeros((len(sentences), max(map(len, sentences))), np.int32)
    for row, sentence in zip(table, sentences):
        row[: len(sentence)] = sentence
    return Texts(table[:train], table[train:], words)


def rows_of(table: Int[np.ndarray, "N T"], rows: int) -> Callable[[PRNGKeyArray], Array]:
    """Return a function of a key that draws some rows of a table, each with equal probability."""
    rows_of_table = jnp.asarray(table)
    return lambda key: rows_of_table[jax.random.randint(key, (rows,), 0, len(rows_of_table))]


def mean_loss(
    logits: Float[Array, "*B V"], targets: Int[Array, "*B"], weights: Float[Array, "*B"] | None = None
) -> tuple[Array, Array]:
    """Return the mean cross-entropy and the accuracy, of all targets or of those with a weight of 1.

    >>> [round(float(value), 3) for value in mean_loss(jnp.zeros((2, 4)), jnp.array([0, 3]))]
    [1.386, 0.5]
    """
    weights = jnp.ones(targets.shape) if weights is None else weights
    total, right = cross_entropy(logits, targets, weights), accuracy(logits, targets, weights)
    return total[0] / total[1], right[0] / right[1]


def normal(key: PRNGKeyArray, *shape: int, scale: float = 1.0) -> Array:
    """Return a matrix whose products with unit vectors have unit variance, times a scale.

    >>> bool(abs(normal(jax.random.key(0), 400, 300).std() - 0.05) < 0.001)
    True
    """
    return jax.random.normal(key, shape) * (scale / shape[0] ** 0.5)
