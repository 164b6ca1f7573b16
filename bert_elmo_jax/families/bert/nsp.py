"""The next-sentence head."""

import flax.linen as nn
from jaxtyping import Array, Float, Float32

from bert_elmo_jax.families.bert.model import BertConfig
from bert_elmo_jax.nn import Dense


class NextSentence(nn.Module):
    """Predict whether the second segment follows the first (class 0) or is a random one (class 1), as in the original."""

    config: BertConfig

    @nn.compact
    def __call__(self, pooled: Float[Array, "*B D"]) -> Float32[Array, "*B 2"]:
        """Return the two logits of each pooled vector."""
        dense = Dense(2, self.config.initializer_range)
        nn.share_scope(self, dense)
        return dense(pooled)
