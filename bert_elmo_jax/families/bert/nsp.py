"""The next-sentence head."""

import flax.linen as nn
from jaxtyping import Array, Float, Float32

from bert_elmo_jax.families.bert.model import BertConfig
from bert_elmo_jax.nn import Dense


class NextSentence(nn.Module):
    """Does the second segment follow the first? Class 0 says yes, class 1 that it is a random one, as in the original.

    >>> import jax, jax.numpy as jnp
    >>> from bert_elmo_jax.families.bert.nsp import NextSentence
    >>> from bert_elmo_jax.families.bert.config import BertConfig
    >>> head = NextSentence(BertConfig.preset("tiny"))
    >>> logits, _ = head.init_with_output(jax.random.key(0), jnp.ones((2, 3, 128)))
    >>> logits.shape
    (2, 3, 2)
    """

    config: BertConfig

    @nn.compact
    def __call__(self, pooled: Float[Array, "*B D"]) -> Float32[Array, "*B 2"]:
        """The two logits of each pooled vector."""
        dense = Dense(2, self.config.initializer_range)
        nn.share_scope(self, dense)
        return dense(pooled)
