"""Multiple choice."""

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32

from bert_elmo_jax.families.bert.model import BertConfig
from bert_elmo_jax.nn import Dense, dropout


class Choice(nn.Module):
    """Dropout and one score for each choice: every choice is a row of its own in the encoder's batch.

    >>> import jax, jax.numpy as jnp
    >>> from bert_elmo_jax.heads import Choice
    >>> from bert_elmo_jax.families.bert.config import BertConfig
    >>> pooled = jnp.ones((8, 128))  # two questions of four choices
    >>> scores, _ = Choice(BertConfig.preset("tiny")).init_with_output(jax.random.key(0), pooled.reshape(2, 4, 128))
    >>> scores.shape
    (2, 4)
    """

    config: BertConfig

    @nn.compact
    def __call__(self, pooled: Float[Array, "B C D"], *, deterministic: bool = True) -> Float32[Array, "B C"]:
        """The score of each choice; a softmax over them makes probabilities."""
        dense = Dense(1, self.config.initializer_range)
        nn.share_scope(self, dense)
        key = None if deterministic else self.make_rng("dropout")
        return dense(dropout(pooled.astype(jnp.float32), self.config.head_dropout, key))[..., 0]
