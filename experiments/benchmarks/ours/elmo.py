"""Our ELMo: from character ids to the mean of the layers, and with all gradients.

The ids are of words that repeat as in running text. Finding the distinct words is part of the time.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.nn import scalar_mix
from bert_elmo_jax.runs.start_run import keep_freed_memory
from bert_elmo_jax.text import boundary_characters, character_table

from . import about

FAMILY = get_family(Path(__file__).stem)
MIX = jnp.zeros(3), jnp.ones(())
WIDTHS = (16, 24, 32, 50)  # to which the characters of a batch's words are cut


def make_ids(rows: int, words: int) -> np.ndarray:
    """Return character ids [rows, words, 50] of words of 2 to 9 letters; the n-th of 2,000 is as frequent as 1/n."""
    random = np.random.default_rng(0)
    vocabulary = ["".join(map(chr, random.integers(97, 123, random.integers(2, 10)))) for _ in range(2000)]
    frequency = 1 / np.arange(1, 2001)
    return character_table(vocabulary)[random.choice(2000, (rows, words), p=frequency / frequency.sum())]


def prepare(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the words' places among the distinct words, lengths, and the distinct words, padded to few shapes."""
    rows, words, size = ids.shape
    keys = np.ascontiguousarray(ids.astype(np.int16)).reshape(rows * words, size).view(f"V{2 * size}")[:, 0]
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    distinct = ids.reshape(rows * words, size)[first]
    longest = int((distinct != 261).sum(1).max())
    step = 8 if len(distinct) < 64 else 32
    table = np.full((1, -(-(len(distinct) + 2) // step) * step, min(w for w in WIDTHS if w >= longest)), 261, np.int32)
    table[0, :2] = boundary_characters()[:, : table.shape[2]]
    table[0, 2 : len(distinct) + 2] = distinct[:, : table.shape[2]]
    framed = np.ones((rows, words + 2), np.int32)
    framed[:, 0] = 0
    framed[:, 1:-1] = places.reshape(rows, words) + 2
    return framed, np.full(rows, words + 2, np.int32), table


def mean_of_layers(config: Any, params: Any, words: np.ndarray, lengths: np.ndarray, table: np.ndarray) -> jax.Array:
    """Return the mean of the layers at the words, as a task reads it."""
    output: Any = FAMILY.build(config).apply({"params": params}, words, lengths, characters=table)
    return scalar_mix(output.layers, *MIX)[:, 1:-1]


def compile_passes(config: Any, params: Any, ids: np.ndarray) -> dict[str, Callable[[], jax.Array]]:
    """Return both passes from ids to results."""
    forward = jax.jit(partial(mean_of_layers, config))
    gradient = jax.jit(jax.grad(lambda params, batch: mean_of_layers(config, params, *batch).sum()))
    return {
        "forward": lambda: jax.block_until_ready(forward(params, *prepare(ids))),
        "both": lambda: jax.block_until_ready(gradient(params, prepare(ids))),
    }


def write_inputs(folder: Path, config: Any, rows: int, words: int) -> None:
    """Write random weights as AllenNLP's files, and the ids of sentences."""
    write: Any = next(iter(FAMILY.formats.values())).write
    write(folder, init_params(FAMILY, config, jax.random.key(0)), config)
    np.save(folder / "ids.npy", make_ids(rows, words))


def make_passes(folder: Path, precision: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a forward pass that ends with the mean of the layers, and one with all gradients of its sum."""
    keep_freed_memory()  # as `finetune` does
    model = read_model(folder)
    params = jax.device_put(model.params["encoder"])  # as `load` does; otherwise each call would copy them
    passes = compile_passes(model.config, params, np.load(folder / "ids.npy"))
    check = [float(x) for x in np.asarray(passes["forward"]())[0, :, :4].ravel()]
    return {name: partial(_no_result, run) for name, run in passes.items()}, {**about(), "check": check}


def _no_result(run: Callable[[], object]) -> None:
    run()
