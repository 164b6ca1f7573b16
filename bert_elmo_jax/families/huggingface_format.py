"""The entry of Hugging Face's format in a family's `formats`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bert_elmo_jax.families.family import WeightFormat
from bert_elmo_jax.lazy_imports import lazy_function
from bert_elmo_jax.weights.huggingface_files import ELSEWHERE, WEIGHTS, read_model_type

CLASSIFIERS = ("classify", "choice", "tag")  # a file does not say which of them its classifier is


def huggingface_format(module: str, *model_types: str, classifiers: tuple[str, ...] = CLASSIFIERS) -> WeightFormat:
    """Return the format of a family whose `module` has `read_config`, `read_weights` and `write`.

    `model_types` are the values of `model_type` in `config.json` that the family reads; "" is a missing one.
    """
    read_config, read_weights, write = (
        lazy_function(module, name) for name in ("read_config", "read_weights", "write")
    )
    return make_format(read_config, read_weights, write, model_types, classifiers)


def make_format(
    read_config: Callable[..., Any],
    read_weights: Callable[..., Any],
    write: Callable[..., None],
    model_types: tuple[str, ...],
    classifiers: tuple[str, ...],
) -> WeightFormat:
    """Return the format of a family with these functions."""
    return WeightFormat(
        owner="Hugging Face",
        looks_like=", ".join(WEIGHTS),
        files=lambda folder: [name for name in WEIGHTS if (folder / name).is_file()],
        read_config=read_config,
        read_weights=read_weights,
        write=write,
        classifiers=classifiers,
        advice=_advice,
        model_types=model_types,
        model_type=read_model_type,
    )


def _advice(folder: Path) -> str:
    names = [name for name in ELSEWHERE if (folder / name).exists()]
    return f"{', '.join(names)} is not supported: convert it with transformers." if names else ""
