"""AWD-LSTM: Merity et al. 2018, https://arxiv.org/abs/1708.02182; its use, https://arxiv.org/abs/1801.06146.

A language model of LSTM layers in one direction. Its state is an input and an output.
"""

from collections.abc import Mapping
from typing import Any, no_type_check

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.families.awd_lstm.config import AwdLstmConfig
from bert_elmo_jax.nn import dropout, product, recurrence
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.layers import embed


@no_type_check  # tree operations put other values than arrays of these shapes into it
@struct.dataclass
class State:
    """The state of each layer after the last word of each row; the last layer may have another width."""

    cell: tuple[Float32[Array, "B _"], ...]
    hidden: tuple[Float32[Array, "B _"], ...]


@no_type_check
@struct.dataclass
class AwdLstmOutput:
    """The output of an AWD-LSTM; all arrays are zero after the end of a row.

    `layers` are the embeddings and the output of each layer: their widths differ. While training, they are taken
    before dropout. `dropped` is the last layer after dropout, which predicts the next word.
    """

    layers: tuple[Float[Array, "B T _"], ...]
    dropped: Float[Array, "B T E"]
    state: State

    @property
    def last(self) -> Float[Array, "B T E"]:
        """The last layer."""
        return self.layers[-1]


def zero_state(config: AwdLstmConfig, batch_size: int) -> State:
    """Return the state before the first word."""
    zeros = tuple(jnp.zeros((batch_size, size)) for size in config.layer_sizes)
    return State(zeros, zeros)


class AwdLstm(nn.Module):
    """The encoder. With `deterministic=False` it needs `rngs={"dropout": key}`."""

    config: AwdLstmConfig

    @nn.compact
    def __call__(
        self,
        words: Int[AnyArray, "B T"],
        lengths: Int[AnyArray, " B"] | None = None,
        *,
        state: State | None = None,
        fresh: Bool[AnyArray, " B"] | None = None,
        deterministic: bool = True,
    ) -> AwdLstmOutput:
        """Read ids in the given order. `fresh` rows start from a zero state, the others continue from `state`."""
        c = self.config
        words = jnp.asarray(words)
        rows, steps = words.shape
        lengths = jnp.full(rows, steps, jnp.int32) if lengths is None else jnp.asarray(lengths, jnp.int32)
        state = zero_state(c, rows) if state is None else state
        if fresh is not None:
            start = jnp.asarray(fresh)[:, None]
            state = jax.tree.map(lambda part: jnp.where(start, 0.0, part), state)
        keys: list[Any] = [None] * (2 * c.num_layers + 2)
        if not deterministic:
            keys = list(jax.random.split(self.make_rng("dropout"), len(keys)))

        # Time comes first from here on, as in the loop.
        table = self.param("embeddings", init_embeddings, c)["word"]
        x = embed(table, words.T).astype(c.dtype)
        layers, cells, hiddens = [x], [], []
        x = drop_words(x, words.T, c.vocab_size, c.embedding_dropout, keys[0])
        x = drop_everywhere(x, c.input_dropout, keys[1])
        for n in range(c.num_layers):
            p = self.param(f"layer_{n}", init_layer, x.shape[-1], c.layer_sizes[n])
            state_kernel = dropout(jnp.asarray(p["state_kernel"]), c.weight_dropout, keys[2 + 2 * n])
            y, cell, hidden = recurrence(
                product(x, p["input_kernel"]), state_kernel, p["bias"], None, state.cell[n], state.hidden[n], lengths
            )
            layers.append(y)
            cells.append(cell)
            hiddens.append(hidden)
            last = n == c.num_layers - 1
            x = drop_everywhere(y, c.output_dropout if last else c.hidden_dropout, keys[3 + 2 * n])
        real = (jnp.arange(steps, dtype=jnp.int32)[None, :] < lengths[:, None])[:, :, None]
        layers[0] = jnp.where(real.swapaxes(0, 1), layers[0], jnp.zeros_like(layers[0]))
        outputs = tuple(layer.swapaxes(0, 1) for layer in layers)
        return AwdLstmOutput(outputs, x.swapaxes(0, 1), State(tuple(cells), tuple(hiddens)))


def drop_words(
    x: Float[Array, "T B D"], words: Int[Array, "T B"], vocab_size: int, rate: float, key: PRNGKeyArray | None
) -> Float[Array, "T B D"]:
    """Drop whole words: all vectors of an entry of the vocabulary are zeroed, or none."""
    if key is None or rate == 0:
        return x
    factors = jnp.where(jax.random.bernoulli(key, 1 - rate, (vocab_size,)), 1 / (1 - rate), 0.0).astype(x.dtype)
    return x * jnp.take(factors, words, mode="clip")[..., None]


def drop_everywhere(x: Float[Array, "T B D"], rate: float, key: PRNGKeyArray | None) -> Float[Array, "T B D"]:
    """Apply dropout with one mask for all steps of a row: `nn.variational_dropout` with time first."""
    if key is None or rate == 0:
        return x
    return x * dropout(jnp.ones(x.shape[1:], x.dtype), rate, key)[None]


def init_embeddings(key: PRNGKeyArray, config: AwdLstmConfig) -> dict[str, Array]:
    """Return fresh embeddings, uniform from -0.1 to 0.1."""
    shape = (config.vocab_size, config.embedding_size)
    return {"word": jax.random.uniform(key, shape, minval=-0.1, maxval=0.1)}


def init_layer(key: PRNGKeyArray, inputs: int, size: int) -> dict[str, Array]:
    """Return fresh parameters of an LSTM layer as torch draws them: uniform up to 1 / √cells, no forget bias."""
    limit = size**-0.5
    keys = jax.random.split(key, 4)

    def draw(number: int, *shape: int) -> Array:
        return jax.random.uniform(keys[number], shape, minval=-limit, maxval=limit)

    bias = draw(2, 4 * size) + draw(3, 4 * size)  # torch has two
    return {
        "input_kernel": draw(0, inputs, 4 * size),
        "state_kernel": draw(1, size, 4 * size),
        "bias": bias.at[2 * size : 3 * size].add(-1.0),  # the forget gate of `recurrence` has a bias of 1 of its own
    }


def score_words(
    config: AwdLstmConfig, params: Mapping[str, Any], hidden: Float[Array, "*N E"]
) -> Float32[Array, "*N V"]:
    """Return the logits of the next word."""
    table, bias = softmax_params(config, params)
    return product(hidden, table.T).astype(jnp.float32) + jnp.broadcast_to(bias, (*hidden.shape[:-1], len(bias)))


def softmax_params(config: AwdLstmConfig, params: Mapping[str, Any]) -> tuple[Float[Array, "V E"], Float[Array, " V"]]:
    """Return the table and the bias of the softmax over words; zeros if the model has no bias."""
    table = params["encoder"]["embeddings"]["word"] if config.tie_softmax else params["lm"]["embedding"]
    bias = params["lm"]["bias"] if config.output_bias else jnp.zeros(config.vocab_size)
    return jnp.asarray(table), jnp.asarray(bias)


def init_awd_lstm_params(
    config: AwdLstmConfig, key: PRNGKeyArray, lm: bool = False, classifier: bool = False
) -> dict[str, Any]:
    """Return fresh parameters: `{"encoder": …}`, and on request the heads "lm" and "classifier"."""
    for_encoder, for_lm, for_classifier = jax.random.split(key, 3)
    init = jax.jit(AwdLstm(config).init)  # compiled, because then only the random numbers are computed
    params: dict[str, Any] = {"encoder": dict(init(for_encoder, jnp.zeros((1, 1), jnp.int32))["params"])}
    if lm and config.has_lm_params:
        bias = {"bias": jnp.zeros(config.vocab_size)} if config.output_bias else {}
        embedding = {} if config.tie_softmax else {"embedding": init_embeddings(for_lm, config)["word"]}
        params["lm"] = bias | embedding
    if classifier:
        from bert_elmo_jax.heads.pool_classifier import init_pool_classifier

        if not config.classifier:
            raise ValueError("a head classifier needs the field classifier, its widths, such as (50, 2); it is empty")
        params["classifier"] = init_pool_classifier(for_classifier, config.pooled_size, config.classifier)
    return params
