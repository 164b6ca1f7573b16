"""Our training step of an AWD-LSTM: the recipe's objective with both penalties, its optimiser and its carried state."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.init_params import init_params

from .._inputs import Batch, write_settings
from .step import make_passes

__all__ = ["make_passes", "write_inputs"]
FAMILY = get_family("awd_lstm")


def make_batch(words: int, rows: int, length: int) -> Batch:
    """Return one batch of streams of random words, each with the next word as its target."""
    stream = np.random.default_rng(0).integers(0, words, (rows, length + 1), np.int32)
    return {
        "words_forward": stream[:, :-1],
        "forward_targets": stream[:, 1:],
        "forward_weights": np.ones((rows, length), np.float32),
        "lengths": np.full(rows, length, np.int32),
        "fresh": np.zeros(rows, bool),
    }


def write_inputs(folder: Path, sizes: Mapping[str, Any], rows: int, length: int) -> None:
    """Write random weights with fastai's names, and a batch."""
    config = FAMILY.config(**sizes)
    write: Any = FAMILY.formats["fastai"].write
    write(folder, init_params(FAMILY, config, jax.random.key(0), ("lm",)), config)
    batch: dict[str, Any] = dict(make_batch(config.vocab_size, rows, length))
    np.savez(folder / "batch.npz", **batch)
    write_settings(folder, recipe="awd_lstm:original", sizes=dict(sizes))
