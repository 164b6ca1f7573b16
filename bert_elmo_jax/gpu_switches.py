"""Which GPU kernels and rewritings a program is traced with. Without a GPU, all are off."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import jax

from bert_elmo_jax.did_you_mean import did_you_mean

# name: what it replaces
SWITCHES = {
    "drop_add_norm": "bias, dropout, residual and layer norm of a layer in one kernel, forward and backward",
    "gelu": "bias and gelu in one kernel, with the bias's gradient in the kernel of the backward pass",
    "qkv": "one product for queries, keys and values, and one kernel that joins their gradients",
    "row_losses": "cross entropy and accuracy from one pass over the logits",
    "norms": "the global norm of the gradients from sums that are joined once",
    "full_rows": "no masks for batches whose rows are all full",
    "even_vocabulary": "products over the vocabulary with columns of zeros up to a multiple of 64, with row_losses",
    "pre_norm": "drop_add_norm and gelu in layers whose norms come first: GPT-2, ModernBERT, EuroBERT",
}
UNPROVED = {"even_vocabulary", "pre_norm"}  # off, because no card has shown yet that a step is faster
DEFAULT = frozenset(SWITCHES) - UNPROVED

_on: ContextVar[frozenset[str]] = ContextVar("on", default=DEFAULT)
_interpreted: ContextVar[bool] = ContextVar("interpreted", default=False)


def uses(name: str) -> bool:
    """Return whether code that is traced now uses this kernel or rewriting.

    The kernels are for one device: XLA cannot split them over a mesh, so several GPUs use XLA's path.

    >>> uses("gelu")
    False
    >>> with using("gelu", interpret=True):
    ...     uses("gelu"), uses("qkv")
    (True, False)
    """
    if name not in _on.get():
        return False
    return _interpreted.get() or (jax.default_backend() == "gpu" and jax.device_count() == 1)


def interpreted() -> bool:
    """Return whether kernels are computed by XLA, operation by operation, as a check on any device."""
    return _interpreted.get()


@contextmanager
def using(*names: str, interpret: bool = False) -> Iterator[None]:
    """Trace with exactly these kernels; with `interpret` on any device."""
    for name in names:
        if name not in SWITCHES:
            hint = did_you_mean(name, SWITCHES)
            raise ValueError(f"no GPU kernel {name!r}; expected one of {', '.join(SWITCHES)}{hint}")
    before = _on.set(frozenset(names)), _interpreted.set(interpret)
    try:
        yield
    finally:
        _on.reset(before[0])
        _interpreted.reset(before[1])
