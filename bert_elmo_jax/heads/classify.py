"""Sequence classification and regression."""

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32

from bert_elmo_jax.families.bert.model import BertConfig
from bert_elmo_jax.nn import Dense, dropout


class Classify(nn.Module):
    """Dropout and a dense layer on the pooled vector; one label makes it a regression.

    >>> import jax, jax.numpy as jnp
    >>> from bert_elmo_jax.heads import Classify
    >>> from bert_elmo_jax.families.bert.config import BertConfig
    >>> logits, _ = Classify(BertConfig.preset("tiny"), 3).init_with_output(jax.random.key(0), jnp.ones((2, 128)))
    >>> logits.shape
    (2, 3)
    """

    config: BertConfig
    num_labels: int

    @nn.compact
    def __call__(
        self, pooled: Float[Array, "B D"], *, deterministic: bool = True
    ) -> Float32[Array, "B {self.num_labels}"]:
        """One logit a label, or the predicted number."""
        dense = Dense(self.num_labels, self.config.initializer_range)
        nn.share_scope(self, dense)
        key = None if deterministic else self.make_rng("dropout")
        return dense(dropout(pooled.astype(jnp.float32), self.config.head_dropout, key))
