"""BERT and ELMo in JAX/Flax: pretrain, load released weights, transfer, compare.

>>> from bert_elmo_jax import load
>>> load("tests/goldens/bert_tiny").heads
('mlm', 'nsp')

Public members; `help(bert_elmo_jax.text)` and so on describe the members of a package:

- `load`, `save`: any model, by its folder or hub name; `__version__`
- `text`, `data`, `toyworld`: tokenizers, files and batches, a generated language
- `families`, `nn`, `heads`, `networks`, `losses`, `optim`, `generation`: models and their parts
- `train`, `runs`, `sweeps`: the training loop, runs from config to report, tables of runs
- `inference`, `analysis`, `evals`, `weights`: predictions, probes, official scores, files of other projects
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bert_elmo_jax import (
        analysis,
        data,
        evals,
        families,
        generation,
        heads,
        inference,
        losses,
        networks,
        nn,
        optim,
        runs,
        sweeps,
        text,
        toyworld,
        train,
        weights,
    )
    from bert_elmo_jax.inference.load_model import load
    from bert_elmo_jax.inference.save_model import save

    __version__: str

__all__ = [
    "__version__", "analysis", "data", "evals", "families", "generation", "heads", "inference", "load", "losses",
    "networks", "nn", "optim", "runs", "save", "sweeps", "text", "toyworld", "train", "weights",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # or every name would exist for a type checker

    def __getattr__(name):
        # Preparing data needs no JAX, and its workers start in a tenth of the time without it.
        import importlib

        if name in ("load", "save"):
            # JAX first: it reads the descriptions of all installed packages, which Python 3.11 does at a sixth of the
            # speed deep inside other imports.
            import jax  # noqa: F401

            return getattr(importlib.import_module(f"bert_elmo_jax.inference.{name}_model"), name)
        if name == "__version__":
            import importlib.metadata

            return importlib.metadata.version("bert_elmo_jax")
        if name in __all__:
            return importlib.import_module(f"bert_elmo_jax.{name}")
        from bert_elmo_jax.did_you_mean import did_you_mean

        names = f"{', '.join(__all__)}{did_you_mean(name, __all__)}"
        raise AttributeError(f"module 'bert_elmo_jax' has no attribute {name!r}; it has {names}")
