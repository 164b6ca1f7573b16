"""Answer spans."""

import flax.linen as nn
from jaxtyping import Array, Float, Float32

from bert_elmo_jax.families.bert.model import BertConfig
from bert_elmo_jax.nn import Dense


class Span(nn.Module):
    """Where an answer starts and where it ends: two scores a token, no dropout, as in the original.

    >>> import jax, jax.numpy as jnp
    >>> from bert_elmo_jax.heads import Span
    >>> from bert_elmo_jax.families.bert.config import BertConfig
    >>> (start, end), _ = Span(BertConfig.preset("tiny")).init_with_output(jax.random.key(0), jnp.ones((2, 7, 128)))
    >>> start.shape, end.shape
    ((2, 7), (2, 7))
    """

    config: BertConfig

    @nn.compact
    def __call__(self, last: Float[Array, "B T D"]) -> tuple[Float32[Array, "B T"], Float32[Array, "B T"]]:
        """The logits of the first and of the last token of the answer, padding not masked."""
        dense = Dense(2, self.config.initializer_range)
        nn.share_scope(self, dense)
        logits = dense(last)
        return logits[..., 0], logits[..., 1]
