"""A parameter of a module."""

from collections.abc import Callable

import flax.linen as nn
from jaxtyping import Array

from bert_elmo_jax.nn.any_array import AnyArray


def parameter(module: nn.Module, name: str, init: Callable[..., Array], shape: tuple[int, ...]) -> AnyArray:
    """Return a parameter as `module.param` does, but trace `init` only if the parameter is new.

    To compare the shapes, `module.param` traces it in every call, which takes a third of the time of tracing a model.

    >>> import jax.numpy as jnp
    >>> class Scale(nn.Module):
    ...     @nn.compact
    ...     def __call__(self, x):
    ...         return x * parameter(self, "scale", nn.initializers.ones, (x.shape[-1],))
    >>> Scale().apply({"params": {"scale": jnp.array([2.0, 3.0])}}, jnp.ones(2)).tolist()
    [2.0, 3.0]
    """
    if not module.has_variable("params", name):
        return module.param(name, init, shape)
    value: AnyArray = module.get_variable("params", name)
    if value.shape != shape:
        place = "/".join([*module.path, name])
        raise ValueError(f"the parameter {place} has shape {value.shape}; this model expects {shape}")
    return value
