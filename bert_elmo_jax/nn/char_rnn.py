"""A bidirectional network over the characters of a word: Lample et al. 2016, https://arxiv.org/abs/1603.01360."""

import math
from collections.abc import Callable
from typing import Any, Literal

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.char_cnn import NUM_IDS, PAD, uniform
from bert_elmo_jax.nn.gru import bigru_with_states, init_bigru
from bert_elmo_jax.nn.layers import embed
from bert_elmo_jax.nn.lstm import bilstm_with_states, init_bilstm

CELLS: dict[str, tuple[Callable[..., Any], Any]] = {
    "gru": (init_bigru, bigru_with_states),
    "lstm": (init_bilstm, bilstm_with_states),
}


class CharRNN(nn.Module):
    """The last states of both directions of the last layer, read over the characters of each word and its two marks.

    `size` are the cells of each direction. Padding is not read, so the width of the array does not change the result; a
    word of zeros has a vector of zeros.

    >>> import jax
    >>> words = jnp.array([[259, 98, 260, 261], [0, 0, 0, 0]])
    >>> rnn = CharRNN(embedding_size=4, size=3, cell="gru")
    >>> vectors, variables = rnn.init_with_output(jax.random.key(0), words)
    >>> vectors.shape, sorted(variables["params"]), vectors[1].any().item()
    ((2, 6), ['embedding', 'layer_0'], False)
    """

    embedding_size: int
    size: int
    cell: Literal["gru", "lstm"]
    num_layers: int = 1

    @nn.compact
    def __call__(self, characters: Int[AnyArray, "*N C"]) -> Float[Array, "*N F"]:
        """Return one vector per word."""
        init, run = CELLS[self.cell]
        characters = jnp.asarray(characters)
        embedding = self.param("embedding", uniform(1.0), (NUM_IDS, self.embedding_size))
        table = jnp.concatenate([jnp.zeros_like(embedding[:1]), embedding])
        words = characters.reshape(math.prod(characters.shape[:-1]), characters.shape[-1])
        lengths = ((words != 0) & (words != PAD)).sum(axis=1, dtype=jnp.int32)
        x = embed(table, words)
        last = jnp.zeros((words.shape[0], 2 * self.size))
        for n in range(self.num_layers):
            x, *_, last = run(x, self.param(f"layer_{n}", init, x.shape[-1], self.size), lengths)
        return last.reshape(*characters.shape[:-1], 2 * self.size)
