"""ELMo: Peters et al. 2018, https://arxiv.org/abs/1802.05365; the original, https://github.com/allenai/bilm-tf.

Two independent language models over the same token vectors, one forward, one backward. Their state is an input and an
output; by default it is zero, so that equal inputs give equal vectors.
"""

import functools
from typing import Any, no_type_check

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.families.elmo.attention import AttentionDirection
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.nn import CharCNN, dropout, look_up, product, recurrence
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.weights.parameter_tree import flatten

DIRECTIONS = ("forward", "backward")


@no_type_check  # tree operations put other values than arrays of these shapes into it
@struct.dataclass
class State:
    """The state of both directions (0 forward, 1 backward) after the last word of each row."""

    cell: Float32[Array, "2 L B C"]
    hidden: Float32[Array, "2 L B P"]


@no_type_check
@struct.dataclass
class ElmoOutput:
    """The output of an ELMo; all arrays are zero after the end of a row.

    `layers` are in the order of the text: layer 0 is the token vector twice, layer n the outputs of the n-th LSTM
    layers, forward and backward concatenated; `last` is the last layer. Both are None if the directions read different
    words. `forward` and `backward` are the top layers in reading order, with dropout while training; they predict the
    next word of their direction. `token` are the vectors of the forward words.
    """

    layers: Float[Array, "N B T 2*P"] | None
    last: Float[Array, "B T 2*P"] | None
    forward: Float[Array, "B T P"]
    backward: Float[Array, "B T P"]
    token: Float[Array, "B T P"]
    state: State


def zero_state(config: ElmoConfig, batch_size: int) -> State:
    """Return the state before the first word."""
    shape = (2, config.num_layers, batch_size)
    return State(jnp.zeros((*shape, config.cell_size)), jnp.zeros((*shape, config.projection_size)))


def reverse(x: Array, lengths: Int[AnyArray, " B"]) -> Array:
    """Reverse the first `lengths` entries of each row, and keep the others."""
    place = jnp.arange(x.shape[1], dtype=jnp.int32)[None, :]
    n = jnp.asarray(lengths, jnp.int32)[:, None]
    place = jnp.where(place < n, n - 1 - place, place)
    return jnp.take_along_axis(x, place.reshape(place.shape + (1,) * (x.ndim - 2)), axis=1)


class Direction(nn.Module):
    """The LSTM layers of one direction."""

    config: ElmoConfig

    @nn.compact
    def __call__(
        self,
        table: Float[Array, "N U P"],
        words: Int[Array, "B T"],
        lengths: Int[Array, " B"],
        cell: Float32[Array, "L B C"],
        hidden: Float32[Array, "L B P"],
        key: PRNGKeyArray | None,
    ) -> tuple[list[Float[Array, "B T P"]], Float32[Array, "L B C"], Float32[Array, "L B P"]]:
        """Return the outputs of every layer in reading order, and the state after the last word."""
        c = self.config
        keys = [None] * (c.num_layers + 1) if key is None else list(jax.random.split(key, c.num_layers + 1))
        outputs: list[Array] = []
        cells, hiddens = [], []
        for n in range(c.num_layers):
            layer = self.param(f"layer_{n}", init_layer, c)
            weights = layer["state_kernel"], layer["bias"], layer.get("projection")
            # Each distinct word is multiplied once, unless dropout makes its occurrences different.
            distinct = n == 0 and key is None and table.shape[0] * table.shape[1] < words.size
            x = table if distinct else dropout(outputs[-1] if n else look_up(table, words.T), c.dropout, keys[n])
            y, *after = recurrence(
                product(x, layer["input_kernel"]), *weights, cell[n], hidden[n], lengths, c.cell_clip, c.proj_clip,
                words=words.T if distinct else None,
            )  # fmt: skip
            outputs.append(y + x if c.skip_connections and n else y)
            cells.append(after[0])
            hiddens.append(after[1])
        outputs[-1] = dropout(outputs[-1], c.dropout, keys[-1])
        return [y.swapaxes(0, 1) for y in outputs], jnp.stack(cells), jnp.stack(hiddens)


def init_layer(key: PRNGKeyArray, config: ElmoConfig) -> dict[str, Array]:
    """Return fresh parameters of an LSTM layer, as in TensorFlow's cell: Glorot's uniform matrices, biases 0."""
    c, (first, second) = config, jax.random.split(key)
    glorot = nn.initializers.glorot_uniform()
    # TensorFlow draws both kernels as one matrix, and the limit depends on its shape.
    kernel = glorot(first, (2 * c.projection_size, 4 * c.cell_size))
    layer = {
        "input_kernel": kernel[: c.projection_size],
        "state_kernel": kernel[c.projection_size :],
        "bias": jnp.zeros(4 * c.cell_size),
    }
    return layer | ({"projection": glorot(second, (c.cell_size, c.projection_size))} if c.projection else {})


class Elmo(nn.Module):
    """The encoder. With `deterministic=False` it needs `rngs={"dropout": key}`."""

    config: ElmoConfig

    @nn.compact
    def __call__(
        self,
        words: Int[AnyArray, "B T"],
        lengths: Int[AnyArray, " B"],
        *,
        characters: Int[AnyArray, "N U C"] | None = None,
        tokens: Float[AnyArray, "N U P"] | None = None,
        words_backward: Int[AnyArray, "B T"] | None = None,
        state: State | None = None,
        fresh: Bool[AnyArray, " B"] | None = None,
        deterministic: bool = True,
    ) -> ElmoOutput:
        """Read a batch in both directions.

        `characters` are the distinct words of each of N equal parts of the batch, and `words` are places in the table
        of the part. `tokens` is such a table of vectors. With neither, `words` are ids of the vocabulary. The batch
        contains the marks of begin and end. The backward direction reads `words` from the end of each row, or
        `words_backward` from the left. `fresh` rows start from a zero state.
        """
        c = self.config
        table = Token(c, name="token")(characters, tokens).astype(c.dtype)
        words, lengths = jnp.asarray(words), jnp.asarray(lengths, jnp.int32)
        same = words_backward is None
        backward = reverse(words, lengths) if words_backward is None else jnp.asarray(words_backward)
        state = zero_state(c, words.shape[0]) if state is None else state
        if fresh is not None:
            keep = ~jnp.asarray(fresh)[None, None, :, None]
            state = jax.tree.map(lambda x: jnp.where(keep, x, 0.0), state)
        keys = [None, None] if deterministic or not c.dropout else list(jax.random.split(self.make_rng("dropout")))

        real = (jnp.arange(words.shape[1], dtype=jnp.int32)[None, :] < lengths[:, None])[:, :, None]
        direction = Direction if c.reader == "lstm" else AttentionDirection
        runs = [
            direction(c, name=name)(table, ids, lengths, state.cell[d], state.hidden[d], keys[d])
            for d, (name, ids) in enumerate((("forward", words), ("backward", backward)))
        ]
        ahead, back = (run[0] for run in runs)
        after = State(jnp.stack([run[1] for run in runs]), jnp.stack([run[2] for run in runs]))
        token = jnp.where(real, look_up(table, words.T).swapaxes(0, 1), 0.0)
        layers = None
        if same:
            pairs = [(token, token), *((f, reverse(b, lengths)) for f, b in zip(ahead, back, strict=True))]
            layers = jnp.stack([jnp.where(real, jnp.concatenate(pair, axis=-1), 0.0) for pair in pairs])
        ahead_top, back_top = (jnp.where(real, outputs[-1], 0.0) for outputs in (ahead, back))
        return ElmoOutput(layers, None if layers is None else layers[-1], ahead_top, back_top, token, after)


class Token(nn.Module):
    """The table of token vectors of a batch's words."""

    config: ElmoConfig

    @nn.compact
    def __call__(
        self, characters: Int[AnyArray, "N U C"] | None, tokens: Float[AnyArray, "N U P"] | None
    ) -> Float[Array, "N U P"]:
        """Return the table, computed from characters, as given, or the model's own."""
        c = self.config
        if tokens is not None:
            return jnp.asarray(tokens)
        if c.input == "words":
            return self.param("embedding", nn.initializers.glorot_uniform(), (c.vocab_size, c.projection_size))[None]
        assert characters is not None
        cnn = CharCNN(
            c.char_embedding_size, c.filters, c.num_highways, c.projection_size if c.token_projection else None,
            c.char_activation, c.max_characters, jnp.dtype(c.dtype),
        )  # fmt: skip
        nn.share_scope(self, cnn)
        return cnn(characters)


def init_elmo_params(config: ElmoConfig, key: PRNGKeyArray, lm: bool = False) -> dict[str, Any]:
    """Return fresh parameters as in the original: `{"encoder": …}`, and on request the "lm" head of both directions."""
    if lm and config.vocab_size is None:
        raise ValueError("the parameters have a head lm, but vocab_size is None: give the number of its words")
    for_encoder, for_head = jax.random.split(key)
    characters = None if config.input == "words" else jnp.zeros((1, 1, 1), jnp.int32)
    words, lengths = jnp.zeros((1, 1), jnp.int32), jnp.ones(1, jnp.int32)
    init = jax.jit(Elmo(config).init)  # compiled, because then only the random numbers are computed
    params = {"encoder": init(for_encoder, words, lengths, characters=characters)["params"]}
    if lm:
        assert config.vocab_size is not None
        params["lm"] = {"bias": jnp.zeros(config.vocab_size)}
        if not config.tie_softmax:
            drawn = jax.random.normal(for_head, (config.vocab_size, config.width))
            params["lm"]["embedding"] = drawn / config.width**0.5
    return params


def elmo_shapes(config: ElmoConfig, lm: bool = False) -> dict[str, tuple[int, ...]]:
    """Return the shape of every parameter by its path; `lm` adds the language-model head."""
    return dict(_trace_shapes(config, lm))


# Tracing takes a quarter of a second, and writing a file asks three times.
@functools.lru_cache(maxsize=32)
def _trace_shapes(config: ElmoConfig, lm: bool) -> dict[str, tuple[int, ...]]:
    tree = jax.eval_shape(lambda: init_elmo_params(config, jax.random.key(0), lm))
    return {path: leaf.shape for path, leaf in flatten(tree).items()}
