"""The embeddings of transformers on pieces: words, positions, and types if the family has them."""

from collections.abc import Callable, Mapping
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from bert_elmo_jax.nn import Dense, LayerNorm, embed, truncated_normal
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.parameter import parameter


class Embeddings(nn.Module):
    """Word, position and type embeddings, summed and normalised.

    `types` is the number of types, 0 for a family without. `size` is the width, by default `hidden_size`. Position 0 is
    row `first` of the table of positions, which has `first` rows more than `max_positions`; `learned=False` leaves the
    table out. A sum of another width than `width` is projected before its norm. With `difference`, word embeddings are
    the sum of two tables, the second of zeros at first.
    """

    config: Any  # needs vocab_size, hidden_size, max_positions, initializer_range, norm_eps, dtype
    types: int = 0
    size: int | None = None
    first: int = 0
    init_positions: Callable[..., Array] | None = None
    learned: bool = True  # positions have embeddings
    norm: bool = True
    norm_bias: bool = True
    cut: float = 2.0  # of the initialiser, in standard deviations
    width: int | None = None
    difference: bool = False

    @nn.compact
    def __call__(
        self, tokens: Int[AnyArray, "B T"], types: Int[AnyArray, "B T"] | None, positions: Int[AnyArray, "B T"]
    ) -> Float[Array, "B T E"]:
        """Return the sum; an id outside its table becomes NaN. A family without types does not read `types`."""
        c = self.config
        size, init = self.size or c.hidden_size, truncated_normal(c.initializer_range, self.cut)
        x = embed(parameter(self, "word", init, (c.vocab_size, size)), tokens)
        if self.difference:
            x = x + embed(parameter(self, "difference", nn.initializers.zeros, (c.vocab_size, size)), tokens)
        if self.learned:
            table = parameter(self, "position", self.init_positions or init, (c.max_positions + self.first, size))
            x = x + embed(table, positions + self.first if self.first else positions)
        if self.types:
            types = jnp.zeros(tokens.shape, jnp.int32) if types is None else types
            x = x + embed(parameter(self, "type", init, (self.types, size)), types)
        if self.width not in (None, size):
            x = Dense(self.width, c.initializer_range, c.dtype, use_bias=False, name="project")(x)
        return (LayerNorm(c.norm_eps, self.norm_bias, name="norm")(x) if self.norm else x).astype(c.dtype)


def word_table(tables: Mapping[str, Any]) -> Any:
    """Return the table of a model's word embeddings, which may be a sum of two.

    >>> word_table({"word": 1, "difference": 2, "norm": {}}), word_table({"word": 1})
    (3, 1)
    """
    return tables["word"] + tables["difference"] if "difference" in tables else tables["word"]


def interleaved_sinusoids(key: object, shape: tuple[int, int]) -> Array:
    """Return an initial table of positions, with sines in the even columns and cosines in the odd ones.

    >>> interleaved_sinusoids(None, (2, 4)).round(3).tolist()[0]
    [0.0, 1.0, 0.0, 1.0]
    """
    rows, columns = shape
    angles = np.arange(rows)[:, None] / 10_000 ** (np.arange(columns)[None, :] // 2 * 2 / columns)
    table = np.where(np.arange(columns)[None, :] % 2, np.cos(angles), np.sin(angles))
    return jnp.asarray(table, jnp.float32)


def count_pieces(tokens: Int[AnyArray, "B T"], pad_id: int) -> Int[Array, "B T"]:
    """Return each piece's position among the pieces of its row, from 0; padding has the position −1.

    >>> count_pieces(jnp.array([[1, 1, 0, 7, 2], [0, 7, 2, 1, 1]]), pad_id=1).tolist()
    [[-1, -1, 0, 1, 2], [0, 1, 2, -1, -1]]
    """
    real = jnp.asarray(tokens) != pad_id
    return jnp.where(real, jnp.cumsum(real, axis=1, dtype=jnp.int32) - 1, -1)
