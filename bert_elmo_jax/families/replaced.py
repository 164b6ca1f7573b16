"""The parts of replaced-token pretraining: Clark et al. 2020, https://arxiv.org/abs/2003.10555.

A generator, a smaller encoder, fills masked places, and a discriminator tells replaced pieces from original ones. Both
are in one tree: `{"encoder": …, "replaced": …, "generator": {"encoder": …, "mlm": …}}`. A configuration has the
property `generator`, the configuration of the smaller encoder.
"""

from collections.abc import Callable, Mapping
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32, Int
from ml_collections import ConfigDict

from bert_elmo_jax.families.family import Objective
from bert_elmo_jax.lazy_imports import lazy_function
from bert_elmo_jax.nn import Dense, activation
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.transformer import at_positions


class Replaced(nn.Module):
    """The discriminator's head: a logit per piece, positive for a replaced one."""

    config: Any

    @nn.compact
    def __call__(
        self,
        hidden: Float[Array, "B T D"],
        words: Float[AnyArray, "V E"],
        positions: Int[AnyArray, "B K"] | None = None,
    ) -> Float32[Array, "B K"] | Float32[Array, "B T"]:
        """Return the logits at `positions [B, K]`, or everywhere; `words` is not read."""
        c = self.config
        x = hidden if positions is None else at_positions(hidden, positions)
        x = activation(c.activation)(Dense(c.hidden_size, c.initializer_range, c.dtype, name="dense")(x))
        return Dense(1, c.initializer_range, name="out")(x)[..., 0]


class Generator(nn.Module):
    """Makes the generator's parameters: `encoder`, without the discriminator's tables, and `mlm`, its head.

    They are kept like a head of the discriminator, so that a run stores both networks. The generator reads the
    discriminator's embeddings, but for the parts in `separate`. `take_generator` puts the two together.
    """

    config: Any  # the discriminator's
    module: Callable[..., nn.Module]
    head: Callable[[Any], nn.Module]
    separate: tuple[str, ...] = ()

    @nn.compact
    def __call__(self, hidden: Float[Array, "B T D"], words: Float[AnyArray, "V E"]) -> None:
        """Make the parameters; of `hidden` only the shape counts."""
        c, (b, t, _) = self.config.generator, hidden.shape

        def encoder(key: Any) -> Any:
            params = dict(self.module(c, add_pooler=False).init(key, jnp.zeros((b, t), jnp.int32))["params"])
            tables = params.pop("embeddings")
            separate = {name: part for name, part in tables.items() if name in self.separate}
            return params | ({"embeddings": separate} if separate else {})

        self.param("encoder", encoder)
        self.param("mlm", lambda key: self.head(c).init(key, jnp.zeros((b, t, c.hidden_size)), words)["params"])


def take_generator(config: Any, params: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return configuration and parameters of the generator that a discriminator was pretrained with.

    The parameters, `{"encoder": …, "mlm": …}`, are a whole encoder with the embeddings of the discriminator.
    """
    if "generator" not in params:
        raise ValueError(
            f"the weights have no generator, only {', '.join(params)}: give a run of the objective replaced"
        )
    parts = params["generator"]
    shared = {name: part for name, part in params["encoder"]["embeddings"].items() if name != "difference"}
    embeddings = {**shared, **parts["encoder"].get("embeddings", {})}
    return config.generator, {"encoder": {**parts["encoder"], "embeddings": embeddings}, "mlm": parts["mlm"]}


def replaced_objectives(family: str) -> dict[str, Callable[[ConfigDict, Any], Objective]]:
    """Return the objective `replaced` of a family."""

    def make(config: ConfigDict, model: Any) -> Objective:
        from bert_elmo_jax.families import get_family

        objective = lazy_function("bert_elmo_jax.families.replaced_objective", "replaced_objective")
        replaced: Objective = objective(get_family(family), config, model)
        return replaced

    return {"replaced": make}
