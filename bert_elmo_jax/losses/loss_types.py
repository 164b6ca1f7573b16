"""The types of the losses that `train.make_step` takes."""

from collections.abc import Callable, Mapping
from typing import Any

from jaxtyping import PRNGKeyArray

Batch = Mapping[str, Any]
Terms = dict[str, tuple[Any, Any]]  # name -> (total, weight)
# (params, batch, key, carry) -> (terms, metrics, carry); without a key there is no dropout
Loss = Callable[[Any, Batch, PRNGKeyArray | None, Any], tuple[Terms, Terms, Any]]
