"""Token tagging."""

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32

from bert_elmo_jax.families.bert.model import BertConfig
from bert_elmo_jax.nn import Dense, dropout


class Tag(nn.Module):
    """Dropout and a dense layer on each token.

    >>> import jax, jax.numpy as jnp
    >>> from bert_elmo_jax.heads import Tag
    >>> from bert_elmo_jax.families.bert.config import BertConfig
    >>> logits, _ = Tag(BertConfig.preset("tiny"), 9).init_with_output(jax.random.key(0), jnp.ones((2, 7, 128)))
    >>> logits.shape
    (2, 7, 9)
    """

    config: BertConfig
    num_labels: int

    @nn.compact
    def __call__(
        self, last: Float[Array, "B T D"], *, deterministic: bool = True
    ) -> Float32[Array, "B T {self.num_labels}"]:
        """One logit a label for each token."""
        dense = Dense(self.num_labels, self.config.initializer_range)
        nn.share_scope(self, dense)
        key = None if deterministic else self.make_rng("dropout")
        return dense(dropout(last.astype(jnp.float32), self.config.head_dropout, key))
