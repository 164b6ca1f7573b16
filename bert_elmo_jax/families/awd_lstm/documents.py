"""Read long documents part by part: state and pool are carried on, so memory is needed for one part only."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int, Int32, PRNGKeyArray

from bert_elmo_jax.families.awd_lstm.config import AwdLstmConfig
from bert_elmo_jax.families.awd_lstm.model import AwdLstm, State, zero_state
from bert_elmo_jax.families.awd_lstm.vocabulary import Vocabulary, begin_of
from bert_elmo_jax.heads.pool_classifier import Pool, add_to_pool, classify_pooled, read_pool, start_pool
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.dropout import dropout_options
from bert_elmo_jax.text import Tokenizer
from bert_elmo_jax.text.words import split_line


def classify_documents(
    config: AwdLstmConfig,
    params: Mapping[str, Any],
    words: Int[np.ndarray, "B T"],
    lengths: Int[np.ndarray, " B"],
    part: int,
    put: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
) -> Float32[np.ndarray, "B C"]:
    """Return the classifier's logits of documents, `part` words at a time; `put` places a part on the devices."""
    state, pool = zero_state(config, len(words)), start_pool(len(words), config.embedding_size)
    part = min(part, words.shape[1])
    for at in range(0, words.shape[1], part):
        piece = np.pad(words[:, at : at + part], ((0, 0), (0, max(0, at + part - words.shape[1]))))
        left = np.clip(lengths - at, 0, part).astype(np.int32)
        placed = put({"words": piece, "lengths": left})
        state, pool = read_part(config, params, placed["words"], placed["lengths"], state, pool)
    return np.asarray(jax.jit(classify_pooled)(params["classifier"], read_pool(pool, config.pooling)))


# Compiled for each configuration and shape of a part.
@functools.partial(jax.jit, static_argnames="config")
def read_part(
    config: AwdLstmConfig,
    params: Mapping[str, Any],
    words: Int[AnyArray, "B T"],
    lengths: Int[AnyArray, " B"],
    state: State,
    pool: Pool,
) -> tuple[State, Pool]:
    """Return state and pool after the next part of each document."""
    output: Any = AwdLstm(config).apply({"params": params["encoder"]}, words, lengths, state=state)
    return output.state, add_to_pool(pool, output.last, lengths)


def pool_documents(
    config: AwdLstmConfig,
    encoder: Mapping[str, Any],
    words: Int[AnyArray, "B N T"],
    lengths: Int[AnyArray, " B"],
    key: PRNGKeyArray | None = None,
    last: int = 0,
) -> Float32[Array, "B _"]:
    """Return the pooled vectors of documents of N parts of T words, for training.

    The gradient goes back through the pool to every part, or with `last` to the last so many parts of each document,
    but as in fastai not through the state between parts. The backward pass computes each part again, so that only one
    part's steps are in memory. With a key, there is dropout.
    """
    words, lengths = jnp.asarray(words), jnp.asarray(lengths, jnp.int32)
    rows, parts, steps = words.shape
    used = -(-lengths // steps)  # parts of each document
    if 0 < last < parts:  # all documents end in the last part
        first = parts - used
        places = jnp.arange(parts, dtype=jnp.int32)[None, :] - first[:, None]
        words = jnp.take_along_axis(words, jnp.maximum(places, 0)[:, :, None], axis=1)
    else:
        first = jnp.zeros_like(used)

    def step(carried: tuple[State, Pool], at: tuple[Array, Array]) -> tuple[tuple[State, Pool], None]:
        (state, pool), (number, piece) = carried, at
        left = jnp.where(number < first, 0, jnp.clip(lengths - (number - first) * steps, 0, steps))
        options = dropout_options(None if key is None else jax.random.fold_in(key, number))
        before = jax.lax.stop_gradient(state)
        output: Any = AwdLstm(config).apply({"params": encoder}, piece, left, state=before, **options)
        return (output.state, add_to_pool(pool, output.last, left)), None

    carried = zero_state(config, rows), start_pool(rows, config.embedding_size)
    numbers, pieces = jnp.arange(parts, dtype=jnp.int32), words.swapaxes(0, 1)
    before = parts - last if last else 0
    if before > 0:
        carried = jax.lax.stop_gradient(jax.lax.scan(step, carried, (numbers[:before], pieces[:before]))[0])
        numbers, pieces = numbers[before:], pieces[before:]
    (_, pool), _ = jax.lax.scan(jax.checkpoint(step), carried, (numbers, pieces))
    return read_pool(pool, config.pooling)


def read_document(config: AwdLstmConfig, vocabulary: Vocabulary, text: str) -> Int32[np.ndarray, "N"]:
    """Return the ids of a text in reading order after the mark of its begin; without words it is an unknown word."""
    backward = config.direction == "backward"
    if isinstance(vocabulary, Tokenizer):
        ids = vocabulary.encode(text, specials=False).ids
    else:
        ids = vocabulary.ids(split_line(text, vocabulary.rule or "punctuation"))
    ids = ids if len(ids) else np.array([vocabulary.unk_id], np.int32)
    begin = begin_of(vocabulary, backward)
    return np.concatenate([np.array([] if begin is None else [begin]), ids[::-1] if backward else ids]).astype(np.int32)
