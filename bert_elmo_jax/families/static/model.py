"""Static vectors as a module: a table of words, and of fastText's n-grams."""

from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.families.family import Output
from bert_elmo_jax.families.static.config import StaticConfig
from bert_elmo_jax.nn.any_array import AnyArray


class Static(nn.Module):
    """The encoder: rows of the table, whose mean is a word's vector."""

    config: StaticConfig

    @nn.compact
    def __call__(self, rows: Int[AnyArray, "B T G"], *, deterministic: bool = True) -> Output:
        """Return the mean of the rows of each word; rows outside of the table do not count, and no row gives zeros."""
        del deterministic
        table = self.param("embeddings", init_table, self.config)["word"]
        return Output(last=mean_rows(table, rows).astype(self.config.dtype))


def mean_rows(table: Float[Array, "V D"], rows: Int[AnyArray, "B T G"]) -> Float[Array, "B T D"]:
    """Return the mean of the rows of each word; rows outside of the table do not count, and no row gives zeros."""
    rows = jnp.asarray(rows)
    real = (rows >= 0) & (rows < table.shape[0])
    vectors = jnp.take(table, jnp.where(real, rows, 0), axis=0) * real[..., None].astype(table.dtype)
    return vectors.sum(axis=-2) / jnp.maximum(real.sum(axis=-1), 1).astype(table.dtype)[..., None]


def init_table(key: PRNGKeyArray, config: StaticConfig) -> dict[str, Array]:
    """Return fresh vectors, uniform from -0.5 to 0.5, divided by their width; `find_untrained` recognises them."""
    limit = 0.5 / config.hidden_size
    shape = (config.table_size, config.hidden_size)
    vectors = jax.random.uniform(key, shape, minval=-limit, maxval=limit)
    return {"word": jax.lax.reduce_precision(vectors, exponent_bits=8, mantissa_bits=7)}


def find_untrained(vectors: Float32[np.ndarray, "N D"]) -> Bool[np.ndarray, " N"]:
    """Return True for vectors that are still zero or as `init_table` drew them.

    The lower 16 bits of their numbers are zero, and the numbers are in the range of the draw, so that vectors of a file
    in bfloat16 are not among them.

    >>> find_untrained(np.array([[0.125, -0.25], [0.125, 0.1], [0.5, -0.75]], np.float32)).tolist()
    [True, False, False]
    """
    lower_bits = np.ascontiguousarray(vectors).view(np.uint32) & 0xFFFF
    limit = 0.5 / vectors.shape[1] * (1 + 2**-8)  # the draw was rounded to 8 bits
    return np.all((lower_bits == 0) & (np.abs(vectors) <= limit), axis=1)


def init_static_params(config: StaticConfig, key: PRNGKeyArray, heads: Sequence[str] = ()) -> dict[str, Any]:
    """Return fresh parameters: `{"encoder": …}`, and on request the vectors of words as neighbours, "context".

    Neighbours of word2vec and fastText begin at zero. GloVe's are drawn, and both tables have biases.
    """
    words, neighbours = jax.random.split(key)
    params: dict[str, Any] = {"encoder": {"embeddings": init_table(words, config)}}
    if "context" in heads:
        shape = (config.vocab_size, config.hidden_size)
        params["context"] = {"embedding": jnp.zeros(shape)}
        if config.method == "glove":
            biases = {name: jnp.zeros(config.vocab_size) for name in ("bias", "word_bias")}
            params["context"] = {"embedding": init_table(neighbours, config)["word"], **biases}
    return params
