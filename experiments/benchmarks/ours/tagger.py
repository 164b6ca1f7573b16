"""Our BiLSTM-CRF tagger with cached encoder vectors: training and prediction over all batches.

The batches have random sentences of similar length, with layers [L, T, D] as from a cache; word vectors of 100, a
mixture of the layers at the input, two BiLSTMs of 200, a conditional random field over the tags. Prediction begins with
the longest sentences and has two batches on the way, as `predict`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bert_elmo_jax import optim, train
from bert_elmo_jax.data.tasks.word_rows import word_width
from bert_elmo_jax.inference.row_outputs import two_at_a_time
from bert_elmo_jax.losses import viterbi
from bert_elmo_jax.networks import TaggerConfig, best_tags, init_network, network_coefficients, tagger_loss
from bert_elmo_jax.networks.word_network import run_network
from bert_elmo_jax.runs.start_run import keep_freed_memory
from bert_elmo_jax.weights.parameter_tree import flatten, nest

from .._inputs import read_settings, write_settings
from . import about

VOCABULARY = 20_000

Batches = list[dict[str, np.ndarray]]
Passes = dict[str, Callable[[], object]]


def make_batches(config: TaggerConfig, count: int, size: int, longest: int) -> Batches:
    """Return batches of sentences of similar length, padded as in training."""
    draw = np.random.default_rng(0)
    lengths = np.sort(draw.integers(4, longest + 1, count * size)).astype(np.int32)
    sentences = []
    for part in lengths.reshape(count, size):
        shape = (len(part), word_width(int(part.max())))
        batch = {"words": draw.integers(1, VOCABULARY, shape, np.int32), "lengths": part}
        batch["tags"] = draw.integers(0, config.num_tags, shape, np.int32)
        if config.encoder_layers:
            full = (shape[0], config.encoder_layers, shape[1], config.encoder_width)
            batch["layers"] = draw.standard_normal(full, np.float32)
        sentences.append(batch)
    return sentences


def compile_passes(config: TaggerConfig, params: dict, batches: Batches) -> Passes:
    """Return the passes over all batches."""
    method = optim.adamw(1e-3, decay=0.0, clip=5.0)
    step = jax.jit(train.make_step(tagger_loss(config), method, network_coefficients(config)), donate_argnums=0)
    state = train.new_state(jax.tree.map(jax.numpy.array, params), method, jax.random.key(0))
    legal = np.ones((config.num_tags + 1,) * 2, bool)

    @jax.jit
    def path(params: dict, batch: dict) -> tuple[jax.Array, jax.Array]:
        scores, transitions, _ = run_network(config, params, batch)
        return viterbi(scores, transitions, batch["lengths"], legal)

    best = jax.jit(partial(best_tags, config, legal))

    def training() -> None:
        nonlocal state
        for batch in batches:
            state, metrics = step(state, batch)
        jax.block_until_ready((state.params, metrics))

    def prediction(tags_of: Callable) -> None:
        read = ({name: batch[name] for name in batch if name != "tags"} for batch in reversed(batches))
        for _ in two_at_a_time(partial(tags_of, params), read):
            pass

    return {"training": training, "prediction": partial(prediction, path), "probabilities": partial(prediction, best)}


def write_inputs(folder: Path, sizes: Mapping[str, Any], batches: int, batch_size: int, longest: int) -> None:
    """Write random weights and batches of random sentences."""
    config, draw = TaggerConfig(num_words=VOCABULARY, **sizes), np.random.default_rng(1)
    tables = (0.1 * draw.standard_normal((rows, config.word_size), np.float32) for rows in (1, config.num_words))
    params = init_network(config, jax.random.key(0), *tables)
    weights: dict[str, Any] = {name: np.asarray(part) for name, part in flatten(params).items()}
    np.savez(folder / "weights.npz", **weights)
    for n, batch in enumerate(make_batches(config, batches, batch_size, longest)):
        arrays: dict[str, Any] = dict(batch)
        np.savez(folder / f"batch_{n:04}.npz", **arrays)
    write_settings(folder, sizes=dict(sizes))


def make_passes(folder: Path, precision: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return training, prediction of the best path, and the same with the probability of each tag."""
    keep_freed_memory()  # as `finetune` does
    config = TaggerConfig(num_words=VOCABULARY, **read_settings(folder)["sizes"])
    batches = [read_arrays(file) for file in sorted(folder.glob("batch_*.npz"))]
    params = jax.tree.map(jax.numpy.asarray, nest(read_arrays(folder / "weights.npz")))
    terms, _, _ = jax.jit(lambda batch: tagger_loss(config)(params, batch, None, None))(batches[0])
    loss = sum(float(terms[name][0] / terms[name][1]) for name in ("crf",))
    return compile_passes(config, params, batches), {**about(), "check": [loss]}


def read_arrays(file: Path) -> dict[str, Any]:
    """Return the arrays of an .npz file."""
    with np.load(file) as stored:
        return dict(stored)
