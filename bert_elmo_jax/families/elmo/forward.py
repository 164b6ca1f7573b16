"""The compiled part of `ElmoEncoder`: padded rows through the model."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Float32, Int

from bert_elmo_jax.families.elmo.batch import pad
from bert_elmo_jax.families.elmo.model import Elmo, ElmoConfig, State
from bert_elmo_jax.nn.any_array import AnyArray


def compute(
    config: ElmoConfig,
    params: Mapping[str, Any],
    rows: Sequence[Int[np.ndarray, "_"]],
    table: Float32[np.ndarray, "N P"] | None,
    state: State,
    batch_size: int,
    warmup: int = 0,
) -> tuple[Float32[np.ndarray, "L B T D"], State]:
    """Return all layers of rows, padded, and the state after each row.

    Rows are places in a table of token vectors, or ids of the vocabulary.
    """
    # The product of a single row adds its terms in another order, and large weights make the last bit visible. A second
    # row avoids this: it is nearly free in a small model, but half of the time in a large one.
    small = 4 * config.cell_size * config.projection_size <= 1 << 20
    words, lengths = pad(rows, batch_size, least=2 if small else 1)
    tokens = None
    if table is not None:
        used, places = np.unique(words, return_inverse=True)
        words = places.reshape(words.shape).astype(np.int32)
        # Two sizes of the table for each shape of batch: few to compile, and less to multiply.
        size = words.size // 2 if len(used) <= words.size // 2 else words.size
        tokens = np.zeros((1, size, table.shape[1]), np.float32)
        tokens[0, : len(used)] = table[used]
    extra = [(0, 0), (0, 0), (0, len(words) - len(rows)), (0, 0)]
    state = jax.tree.map(lambda part: np.pad(part, extra), state)
    for _ in range(warmup):
        _, state = read(config, params, words, lengths, tokens, state, layers=False)
    layers, state = jax.device_get(read(config, params, words, lengths, tokens, state, layers=True))
    return np.asarray(layers, np.float32), jax.tree.map(lambda part: part[:, :, : len(rows)], state)


# Compiled for each configuration and shape of batch, with layers, and for warm-up without.
@functools.partial(jax.jit, static_argnames=("config", "layers"))
def read(
    config: ElmoConfig,
    params: Mapping[str, Any],
    words: Int[AnyArray, "B T"],
    lengths: Int[AnyArray, " B"],
    tokens: Float[AnyArray, "N U P"] | None,
    state: State,
    *,
    layers: bool,
) -> tuple[Float[Array, "L B T D"] | None, State]:
    """Return the layers (None without `layers`) and the state."""
    output: Any = Elmo(config).apply({"params": params["encoder"]}, words, lengths, tokens=tokens, state=state)
    return output.layers if layers else None, output.state
