"""RoBERTa: Liu et al. 2019, https://arxiv.org/abs/1907.11692; XLM-R: https://arxiv.org/abs/1911.02116.

A BERT that differs in its embeddings: positions are numbered from `pad_id` + 1, and there is one type. The original is
https://github.com/facebookresearch/fairseq/tree/main/examples/roberta.
"""

from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from bert_elmo_jax.encoders.arguments import too_long
from bert_elmo_jax.families.family import Output
from bert_elmo_jax.families.piece_embeddings import Embeddings
from bert_elmo_jax.families.roberta.config import RobertaConfig
from bert_elmo_jax.nn import dropout
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.layers import layer_numbers
from bert_elmo_jax.nn.transformer import Layer, Pooler, run_layers


class Roberta(nn.Module):
    """The encoder. With `deterministic=False` it needs `rngs={"dropout": key}`."""

    config: RobertaConfig
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
        """Encode a batch; the arguments mean the same as in `Bert`.

        Without `positions`, the pieces of a row other than `pad_id` are counted from 0, so that a row may be padded on
        the left. A model of one type ignores `types`.
        """
        c = self.config
        wanted = layer_numbers(layers, c.num_layers)
        if positions is None:
            if tokens.shape[1] > c.max_positions:
                raise ValueError(too_long(tokens.shape[1], c.max_positions))
            positions = count_pieces(tokens, c.pad_id)
        keys = None if deterministic else jax.random.split(self.make_rng("dropout"), c.num_layers + 1)
        embed = Embeddings(c, c.type_vocab_size, first=c.pad_id + 1, name="embeddings")
        x = embed(tokens, types if c.type_vocab_size > 1 else None, positions)
        x = dropout(x, c.dropout, None if keys is None else keys[0])
        x, hidden, maps = run_layers(
            self, Layer(c, parent=None), x, segments, lengths, None if keys is None else keys[1:],
            wanted=wanted, maps=attentions,
        )  # fmt: skip
        pooled = Pooler(c, name="pooler")(x, nsp_positions) if self.add_pooler else None
        return Output(x, hidden, maps, pooled)


def count_pieces(tokens: Int[AnyArray, "B T"], pad_id: int) -> Int[Array, "B T"]:
    """Return each piece's position among the pieces of its row, from 0; padding has the position −1.

    >>> count_pieces(jnp.array([[1, 1, 0, 7, 2], [0, 7, 2, 1, 1]]), pad_id=1).tolist()
    [[-1, -1, 0, 1, 2], [0, 1, 2, -1, -1]]
    """
    real = jnp.asarray(tokens) != pad_id
    return jnp.where(real, jnp.cumsum(real, axis=1, dtype=jnp.int32) - 1, -1)
