"""Task heads as Linen modules: dropout and one dense layer on what an encoder returns."""

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32

from bert_elmo_jax.nn import Dense, dropout


class Dropped(nn.Module):
    """Dropout at `rate`, then a dense layer of `size` outputs in float32."""

    size: int
    rate: float = 0.1
    initializer_range: float | None = 0.02
    use_bias: bool = True

    @nn.compact
    def __call__(
        self, x: Float[Array, "*B D"] | None, *, deterministic: bool = True
    ) -> Float32[Array, "*B {self.size}"]:
        """Return the outputs for each vector."""
        if x is None:
            raise ValueError("the encoder gave no pooled vectors: give its parameters a pooler, of `init_pooler(key)`")
        layer = Dense(self.size, self.initializer_range, use_bias=self.use_bias)
        nn.share_scope(self, layer)
        return layer(dropout(x.astype(jnp.float32), self.rate, None if deterministic else self.make_rng("dropout")))


class Classify(Dropped):
    """Sequence classification on the pooled vector; one label makes it a regression.

    >>> import jax
    >>> Classify(3).init_with_output(jax.random.key(0), jnp.ones((2, 128)))[0].shape
    (2, 3)
    """


class Tag(Dropped):
    """Token classification: one logit per label for each token.

    >>> import jax
    >>> Tag(9).init_with_output(jax.random.key(0), jnp.ones((2, 7, 128)))[0].shape
    (2, 7, 9)
    """


class Choice(nn.Module):
    """Multiple choice: one score for the pooled vector of each choice.

    >>> import jax
    >>> Choice(0.1).init_with_output(jax.random.key(0), jnp.ones((2, 4, 128)))[0].shape
    (2, 4)
    """

    rate: float = 0.1
    initializer_range: float | None = 0.02

    @nn.compact
    def __call__(self, pooled: Float[Array, "*B C D"], *, deterministic: bool = True) -> Float32[Array, "*B C"]:
        """Return the score of each choice."""
        head = Dropped(1, self.rate, self.initializer_range)
        nn.share_scope(self, head)
        return head(pooled, deterministic=deterministic)[..., 0]


class Span(nn.Module):
    """Answer spans: the scores of each token as start and as end, without dropout as in the original.

    >>> import jax
    >>> Span().init_with_output(jax.random.key(0), jnp.ones((2, 7, 128)))[0][0].shape
    (2, 7)
    """

    initializer_range: float | None = 0.02

    @nn.compact
    def __call__(self, last: Float[Array, "B T D"]) -> tuple[Float32[Array, "B T"], Float32[Array, "B T"]]:
        """Return the start scores and the end scores."""
        layer = Dense(2, self.initializer_range)
        nn.share_scope(self, layer)
        scores = layer(last)
        return scores[..., 0], scores[..., 1]
