"""Warm-up on and off, with the layer norm after the residual (post) and before the sublayer (pre): loss curves.

The original Transformer is post-norm and needs a warm-up. Xiong et al. 2020, https://arxiv.org/abs/2002.04745, show
why, and that pre-norm does not. The model is a small language model on sentences of the toy world.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bert_elmo_jax.nn.layers import Dense, LayerNorm
from bert_elmo_jax.nn.transformer import Layer, LayerParts

from .small_training import Texts, fit, last_tenth, mean_loss, rows_of

Norm = Literal["post", "pre"]


class WarmUp(NamedTuple):
    """One training, with its losses, and the norms of the gradients of the first and the last layer at the start."""

    norm: Norm
    warmup: int
    rate: float
    losses: Float[np.ndarray, " S"]
    first: float
    last: float

    @property
    def final(self) -> float:
        """The mean loss of the last tenth of the steps."""
        return last_tenth(self.losses)


class SmallDecoder(nn.Module):
    """A causal language model of library layers; `config` as for `Layer`, with `norm`, `size` and `length`."""

    config: Any

    @nn.compact
    def __call__(self, words: Int[Array, "B T"]) -> Float[Array, "B T V"]:
        """Return the logits of the word after each place."""
        c = self.config
        draw = nn.initializers.normal(1.0)
        table = self.param("word", draw, (c.size, c.hidden_size))
        places = self.param("place", draw, (c.length, c.hidden_size))
        x = table[words] + jnp.broadcast_to(places[None, : words.shape[1]], (*words.shape, c.hidden_size))
        if c.norm == "post":
            x = LayerNorm(c.norm_eps, name="norm")(x)
        for n in range(c.num_layers):
            x, _ = Layer(c, LayerParts(norm_first=c.norm == "pre"), name=f"layer_{n}")(x)
        if c.norm == "pre":
            x = LayerNorm(c.norm_eps, name="norm")(x)
        return Dense(c.size, c.initializer_range, name="read")(x)


def warm_up(
    texts: Texts, norm: Norm, warmup: int, *, rate: float = 3e-3, layers: int = 8, width: int = 64, steps: int = 400,
    rows: int = 16, seed: int = 0,
) -> WarmUp:  # fmt: skip
    """Train a language model; the rate rises evenly for `warmup` steps, then stays. Adam, no clipping, no dropout."""
    config = SimpleNamespace(
        size=texts.size, length=texts.train.shape[1], num_layers=layers, hidden_size=width, num_heads=4,
        feed_forward_size=4 * width, activation="gelu", norm_eps=1e-6, dropout=0.0, attention_dropout=0.0,
        initializer_range=width**-0.5, causal=True, attention="reference", dtype=jnp.float32, norm=norm,
    )  # fmt: skip
    model = SmallDecoder(config)
    draw = rows_of(texts.train, rows)

    def loss(params: Any, batch: Array, key: PRNGKeyArray | None = None) -> tuple[Array, Array]:
        targets = batch[:, 1:]
        logits: Any = model.apply({"params": params}, batch[:, :-1])
        return mean_loss(logits, targets, (targets > 0).astype(jnp.float32))

    params = jax.jit(model.init)(jax.random.key(seed), jnp.zeros((1, config.length - 1), jnp.int32))["params"]
    gradient = jax.jit(jax.grad(lambda params, batch: loss(params, batch)[0]))(params, draw(jax.random.key(seed + 2)))
    norms = [float(optax.tree.norm(gradient[f"layer_{n}"]["feed_forward"])) for n in (0, layers - 1)]
    schedule = optax.linear_schedule(rate / warmup, rate, warmup - 1) if warmup else rate
    fitted = fit(loss, params, draw, steps=steps, optimiser=optax.adam(schedule, b2=0.98, eps=1e-9), seed=seed + 1)
    return WarmUp(norm, warmup, rate, fitted.losses, *norms)


def compare_warm_ups(texts: Texts, warmups: Sequence[int] = (0, 100), **how: Any) -> list[WarmUp]:
    """Train both norms with each warm-up; `how` are further arguments of `warm_up`."""
    return [warm_up(texts, norm, warmup, **how) for norm in ("post", "pre") for warmup in warmups]
