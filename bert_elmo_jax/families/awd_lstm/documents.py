"""Long documents part by part: the state and the pool go on, and the memory is that of one part."""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int, PRNGKeyArray

from bert_elmo_jax.families.awd_lstm.config import AwdLstmConfig
from bert_elmo_jax.families.awd_lstm.model import AwdLstm, State, zero_state
from bert_elmo_jax.heads.pool_classifier import Pool, add_to_pool, classify_pooled, read_pool, start_pool
from bert_elmo_jax.nn.any_array import AnyArray


def classify_documents(
    config: AwdLstmConfig,
    params: Mapping[str, Any],
    words: Int[np.ndarray, "B T"],
    lengths: Int[np.ndarray, " B"],
    part: int,
) -> Float32[np.ndarray, "B C"]:
    """Return the classifier's logits of documents, `part` words at a time."""
    state, pool = zero_state(config, len(words)), start_pool(len(words), config.embedding_size)
    part = min(part, words.shape[1])
    for at in range(0, words.shape[1], part):
        piece = np.pad(words[:, at : at + part], ((0, 0), (0, max(0, at + part - words.shape[1]))))
        left = np.clip(lengths - at, 0, part).astype(np.int32)
        state, pool = read_part(config, params, piece, left, state, pool)
    return np.asarray(jax.jit(classify_pooled)(params["classifier"], read_pool(pool)))


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
) -> Float32[Array, "B _"]:
    """Return the pooled vectors of documents of N parts of T words, for training.

    The gradient goes back through the pool to every part, but as in fastai not through the state between parts. The
    backward pass computes each part again, so that only one part's steps are in memory. With a key, there is dropout.
    """
    words, lengths = jnp.asarray(words), jnp.asarray(lengths, jnp.int32)
    rows, parts, steps = words.shape
    start = zero_state(config, rows), start_pool(rows, config.embedding_size)

    @jax.checkpoint
    def step(carried: tuple[State, Pool], at: tuple[Array, Array]) -> tuple[tuple[State, Pool], None]:
        (state, pool), (number, piece) = carried, at
        left = jnp.clip(lengths - number * steps, 0, steps)
        output: Any = AwdLstm(config).apply(
            {"params": encoder}, piece, left, state=jax.lax.stop_gradient(state), deterministic=key is None,
            rngs={} if key is None else {"dropout": jax.random.fold_in(key, number)},
        )  # fmt: skip
        return (output.state, add_to_pool(pool, output.last, left)), None

    (_, pool), _ = jax.lax.scan(step, start, (jnp.arange(parts, dtype=jnp.int32), words.swapaxes(0, 1)))
    return read_pool(pool)
