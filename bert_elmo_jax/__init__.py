"""BERT and ELMo in JAX/Flax: pretrain, load released weights, transfer, compare.

>>> from bert_elmo_jax import load
>>> load("tests/goldens/bert_tiny").heads
('mlm', 'nsp')
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bert_elmo_jax.inference.load_model import load

__all__ = ["load"]


def __getattr__(name: str) -> Any:
    # Preparing data needs no JAX, and its workers start in a tenth of the time without it.
    if name in __all__:
        # JAX first: it reads the descriptions of all installed packages, which Python 3.11 does at a sixth of the speed
        # deep inside other imports.
        import jax  # noqa: F401

        from bert_elmo_jax.inference import load_model as api

        return getattr(api, name)
    raise AttributeError(f"module 'bert_elmo_jax' has no attribute {name!r}; it has {', '.join(__all__)}")
