"""A module bound to the parts of its parameters: `apply` names a part that is missing or has no place."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import flax.linen as nn


def check_parts(params: Any, parts: Sequence[str], called: str = "this module") -> None:
    """Raise ValueError if parameters have other parts than a module; Linen itself ignores parts without a place.

    >>> check_parts({"embeddings": {}, "pooler": {}}, ["embeddings"])
    Traceback (most recent call last):
    ...
    ValueError: the parameters have the part pooler, for which this module has no place: leave it out
    """
    if not isinstance(params, Mapping):
        raise TypeError(f"the parameters are {type(params).__name__}; expected a dict with {', '.join(parts)}")
    if "encoder" in params and "encoder" not in parts:
        raise ValueError(
            "the parameters of a whole model were given, and a module takes those of its part: give "
            'encoder.variables, or {"params": params["encoder"]}'
        )
    missing = [part for part in parts if part not in params]
    if missing:
        raise ValueError(
            f"the parameters lack {', '.join(missing)}, which {called} has: they are of another model, or were cut"
        )
    if foreign := [part for part in params if part not in parts]:
        plural = "s" if len(foreign) > 1 else ""
        raise ValueError(
            f"the parameters have the part{plural} {', '.join(foreign)}, for which {called} has no place: leave "
            f"{'them' if plural else 'it'} out"
        )


def bind_parts(module: nn.Module, parts: Sequence[str], *, takes_pooler: bool = False) -> Any:
    """Return a module whose `apply` takes parameters with exactly these parts, or with a pooler besides.

    >>> import jax
    >>> norm = bind_parts(nn.LayerNorm(), ["scale", "bias"])
    >>> params = norm.init(jax.random.key(0), jax.numpy.ones((1, 3)))["params"]
    >>> norm.apply({"params": params}, jax.numpy.ones((1, 3))).shape
    (1, 3)
    """
    fields = {f.name: getattr(module, f.name) for f in dataclasses.fields(module) if f.name not in ("parent", "name")}
    module_class: Any = type(module)
    return _checked_class(module_class)(**fields, parts=tuple(parts), takes_pooler=takes_pooler)


@functools.cache
def _checked_class(module_class: Any) -> Any:
    class Checked(module_class):
        parts: tuple[str, ...] = ()
        takes_pooler: bool = False

        @nn.nowrap
        def apply(self, variables: Mapping[str, Any], *inputs: Any, **options: Any) -> Any:
            """Apply the module to variables `{"params": …}` that have the parts of its encoder."""
            params = variables.get("params", {})
            if self.takes_pooler and "pooler" in params:
                pooled = self.clone(parts=(*self.parts, "pooler"), takes_pooler=False, add_pooler=True)
                return pooled.apply(variables, *inputs, **options)
            check_parts(params, self.parts, f"this {module_class.__name__}")
            return super().apply(variables, *inputs, **options)

    Checked.__name__ = Checked.__qualname__ = module_class.__name__
    return Checked
