"""DistilBERT: Sanh et al. 2019, https://arxiv.org/abs/1910.01108.

A BERT with half the layers and without types. The released models have no pooler either; their classifiers have two
layers, with a relu between them. The first is the pooler here.
"""

from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from bert_elmo_jax.families.distilbert.config import DistilBertConfig
from bert_elmo_jax.families.family import Output
from bert_elmo_jax.families.piece_embeddings import Embeddings
from bert_elmo_jax.nn import dropout
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.layers import layer_numbers
from bert_elmo_jax.nn.transformer import Layer, Pooler, run_layers


class DistilBert(nn.Module):
    """The encoder. With `deterministic=False` it needs `rngs={"dropout": key}`."""

    config: DistilBertConfig
    add_pooler: bool = True

    @nn.compact
    def __call__(
        self,
        tokens: Int[AnyArray, "B T"],
        types: Int[AnyArray, "B T"] | None = None,
        positions: Int[AnyArray, "B T"] | None = None,
        segments: Int[AnyArray, "B T"] | None = None,
        *,
        lengths: Int[AnyArray, " B"] | None = None,
        nsp_positions: Int[AnyArray, "B S"] | None = None,
        deterministic: bool = True,
        layers: str | Sequence[int] | None = None,
        attentions: bool = False,
    ) -> Output:
        """Encode a batch; the arguments mean the same as in `Bert`, but `types` are ignored."""
        c = self.config
        wanted = layer_numbers(layers, c.num_layers)
        keys = None if deterministic else jax.random.split(self.make_rng("dropout"), c.num_layers + 1)
        x = Embeddings(c, init_positions=sinusoids if c.sinusoidal else None, name="embeddings")(
            tokens, None, positions
        )
        x = dropout(x, c.dropout, None if keys is None else keys[0])
        x, hidden, maps = run_layers(
            self, Layer(c, parent=None), x, segments, lengths, None if keys is None else keys[1:],
            wanted=wanted, maps=attentions,
        )  # fmt: skip
        pooled = Pooler(c, "relu", name="pooler")(x, nsp_positions) if self.add_pooler else None
        return Output(x, hidden, maps, pooled)


def sinusoids(key: object, shape: tuple[int, int]) -> Array:
    """Return a table of positions, with sines in the even columns and cosines in the odd ones.

    >>> sinusoids(None, (2, 4)).round(3).tolist()[0]
    [0.0, 1.0, 0.0, 1.0]
    """
    rows, columns = shape
    angles = np.arange(rows)[:, None] / 10_000 ** (np.arange(columns)[None, :] // 2 * 2 / columns)
    table = np.where(np.arange(columns)[None, :] % 2, np.cos(angles), np.sin(angles))
    return jnp.asarray(table, jnp.float32)
