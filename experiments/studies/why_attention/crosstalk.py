"""Why a deep bidirectional model needs masks: without them, a word sees itself through the other positions.

Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 3.1. Here a place never sees its own word directly:
the first layer has no residual from the words, and no place attends to itself. With one layer the prediction is honest.
With two layers, the other places have read the word and pass it back.
"""

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from .small_training import Texts, fit, last_tenth, mean_loss, normal, rows_of

Training = Literal["every word", "masked words"]
MASK, SHARE = 1, 0.15  # the id of [MASK]; the share of words that are masked in training
HEADS = 4


class Sight(NamedTuple):
    """One training: the loss of its own objective at the end, and two accuracies on held-out sentences."""

    layers: int
    training: Training
    losses: Float[np.ndarray, " S"]
    own: float  # accuracy of the training's objective, in the last tenth of the steps
    hidden: float  # accuracy on one word per sentence that is replaced by [MASK]
    swapped: float  # accuracy on the true word after it is replaced by another word of the language

    @property
    def loss(self) -> float:
        """The mean loss of the last tenth of the steps."""
        return last_tenth(self.losses)


def see_oneself(
    texts: Texts, layers: int, training: Training, *, width: int = 64, steps: int = 1_500, rate: float = 3e-3,
    rows: int = 32, seed: int = 0,
) -> Sight:  # fmt: skip
    """Train a bidirectional model, and score it on words that it cannot see.

    With "every word", the model reads the whole sentence and predicts each of its words. With "masked words", some
    words are replaced by `[MASK]`, and only these are predicted.
    """
    params = init_reader(jax.random.key(seed), texts.size, texts.train.shape[1], layers, width)

    def loss(params: Any, batch: Array, key: PRNGKeyArray) -> tuple[Array, Array]:
        real = (batch > 0).astype(jnp.float32)
        if training == "every word":
            return mean_loss(read_words(params, batch, layers), batch, real)
        masked = (jax.random.uniform(key, batch.shape) < SHARE) & (batch > 0)
        masked = masked.at[:, 0].set(masked[:, 0] | ~masked.any(axis=1))  # one place or more in every sentence
        shown = jnp.where(masked, MASK, batch)
        return mean_loss(read_words(params, shown, layers), batch, masked.astype(jnp.float32))

    fitted = fit(loss, params, rows_of(texts.train, rows), steps=steps, optimiser=optax.adam(rate), seed=seed + 1)
    places = choose_places(texts.test, seed)
    scores = [
        score_places(fitted.params, texts.test, places, shown, layers)
        for shown in (np.full(len(places), MASK), other_words(texts, places, seed))
    ]
    return Sight(layers, training, fitted.losses, last_tenth(fitted.others), *scores)


def init_reader(key: PRNGKeyArray, size: int, length: int, layers: int, width: int) -> dict[str, Any]:
    """Return tables of words and places, the layers, and the output matrix."""
    keys = jax.random.split(key, 3 + layers)

    def layer(key: PRNGKeyArray) -> dict[str, Array]:
        sizes = {"query": (width, width), "key": (width, width), "value": (width, width), "output": (width, width),
                 "up": (width, 2 * width), "down": (2 * width, width)}  # fmt: skip
        return {name: normal(k, *shape) for (name, shape), k in zip(sizes.items(), jax.random.split(key, len(sizes)))}

    return {
        "word": jax.random.normal(keys[0], (size, width)),
        "place": jax.random.normal(keys[1], (length, width)),
        "read": normal(keys[2], width, size),
        "layers": [layer(key) for key in keys[3:]],
    }


def read_words(params: Mapping[str, Any], words: Int[Array, "B T"], layers: int) -> Float[Array, "B T V"]:
    """Return the logits of the word at each place, from the words at all other places.

    In the first layer, queries and residuals come from the places alone.
    """
    t = words.shape[1]
    sees = (words > 0)[:, None, :] & ~jnp.eye(t, dtype=bool)[None]
    place = jnp.broadcast_to(params["place"][None, :t], (*words.shape, params["place"].shape[1]))
    x, read = place, place + params["word"][words]
    for p in params["layers"][:layers]:
        x = x + attend(p, x, read, sees)
        x = standardise(x + jax.nn.gelu(x @ p["up"]) @ p["down"])
        read = x
    return x @ params["read"]


def attend(
    p: Mapping[str, Array], x: Float[Array, "B T D"], read: Float[Array, "B T D"], sees: Array
) -> Float[Array, "B T D"]:
    """Return what each place of `x` reads from the places of `read` that it sees."""
    b, t, d = x.shape
    query, key, value = (
        (part @ p[name]).reshape(b, t, HEADS, -1) for part, name in ((x, "query"), (read, "key"), (read, "value"))
    )
    scores = jnp.einsum("btah,bsah->bats", query, key) / math.sqrt(d // HEADS)
    weights = jax.nn.softmax(jnp.where(sees[:, None], scores, -1e9))
    return jnp.einsum("bats,bsah->btah", weights, value).reshape(b, t, d) @ p["output"]


def standardise(x: Float[Array, "*B D"]) -> Float[Array, "*B D"]:
    """Return vectors with mean 0 and variance 1: a layer norm without parameters."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.square(centred).mean(axis=-1, keepdims=True) + 1e-6)


def choose_places(table: Int[np.ndarray, "N T"], seed: int) -> Int[np.ndarray, " N"]:
    """Return one place of each sentence, drawn evenly from its words without the full stop."""
    lengths = (table > 0).sum(axis=1)
    return np.random.default_rng(seed).integers(0, lengths - 1)


def other_words(texts: Texts, places: Int[np.ndarray, " N"], seed: int) -> Int[np.ndarray, " N"]:
    """Return a word for each place that differs from the word there."""
    true = texts.test[np.arange(len(places)), places]
    drawn = np.random.default_rng(seed + 1).integers(2, texts.size - 1, len(places))
    return drawn + (drawn >= true)


def score_places(
    params: Any, table: Int[np.ndarray, "N T"], places: Int[np.ndarray, " N"], shown: Int[np.ndarray, " N"], layers: int
) -> float:
    """Return how often the word at a place is predicted rightly, while another id is shown there."""
    rows = np.arange(len(places))
    changed = table.copy()
    changed[rows, places] = shown
    logits = jax.jit(read_words, static_argnums=2)(params, jnp.asarray(changed), layers)
    return float((np.asarray(logits)[rows, places].argmax(axis=1) == table[rows, places]).mean())


def most_frequent_share(texts: Texts, places: Int[np.ndarray, " N"]) -> float:
    """Return how often the word at a place is the most frequent word of the training sentences."""
    frequent = np.bincount(texts.train[texts.train > 0]).argmax()
    return float((texts.test[np.arange(len(places)), places] == frequent).mean())
