"""Gated linear units: Shazeer 2020, https://arxiv.org/abs/2002.05202."""

from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PRNGKeyArray

from bert_elmo_jax.nn.activations import activation
from bert_elmo_jax.nn.dropout import dropout
from bert_elmo_jax.nn.layers import Dense


def gated_unit(x: Float[Array, "*B F"], up: Float[Array, "*B F"], name: str) -> Float[Array, "*B F"]:
    """Return `activation(x) · up`: GeGLU for the name "gelu", SwiGLU for "silu".

    >>> gated_unit(jnp.array([-1.0, 2.0]), jnp.array([5.0, 3.0]), "relu").tolist()
    [0.0, 6.0]
    """
    return activation(name)(x) * up


class GatedFeedForward(nn.Module):
    """A feed-forward layer with a gated unit: down(activation(gate(x)) · up(x)), with dropout before `down`.

    >>> import jax
    >>> variables = GatedFeedForward(6, use_bias=False).init(jax.random.key(0), jnp.ones((1, 3, 4)))
    >>> jax.tree.map(jnp.shape, variables["params"])
    {'down': {'kernel': (6, 4)}, 'gate': {'kernel': (4, 6)}, 'up': {'kernel': (4, 6)}}
    """

    size: int
    activation: str = "gelu"
    dropout: float = 0.0
    stddev: float = 0.02
    dtype: DTypeLike = jnp.float32
    use_bias: bool = True
    output_stddev: float | None = None  # of the kernel of `down`; None: `stddev`
    cut: float = 2.0  # of the initialiser, in standard deviations

    @nn.compact
    def __call__(self, x: Float[Array, "*B D"], key: PRNGKeyArray | None = None) -> Float[Array, "*B D"]:
        """Return the outputs of each vector; without a key there is no dropout."""
        how: dict[str, Any] = {"dtype": self.dtype, "use_bias": self.use_bias, "cut": self.cut}
        stddev = self.stddev if self.output_stddev is None else self.output_stddev
        gate, up = (Dense(self.size, self.stddev, name=name, **how)(x) for name in ("gate", "up"))
        hidden = dropout(gated_unit(gate, up, self.activation), self.dropout, key)
        return Dense(x.shape[-1], stddev, name="down", **how)(hidden)
