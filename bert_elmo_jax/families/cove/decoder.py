"""The decoder of CoVe's pretraining: an LSTM with Luong's general attention and input feeding.

At each step it reads the vector z of the last word and the context c̃ of the previous step:

    h = LSTM([z; c̃], h)        α = softmax(H·W₁·h)        c̃ = tanh(W₂·[Hᵀα; h])        scores = W·c̃ + b

where H are the encoder's outputs. Luong et al. 2015, https://arxiv.org/abs/1508.04025. The
first step has the encoder's last state as h, and c̃ = 0.
"""

from collections.abc import Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.families.cove.config import CoveConfig
from bert_elmo_jax.families.cove.model import Cove, CoveOutput, look_up_vectors
from bert_elmo_jax.generation.decoder import Decoder
from bert_elmo_jax.nn import dropout, product
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.layers import embed
from bert_elmo_jax.nn.lstm import lstm_step
from bert_elmo_jax.nn.pooling import masked_softmax

Memory = dict[str, Any]  # arrays whose first axis is the row
SOURCE, STATE = ("outputs", "keys", "real"), ("cell", "hidden", "context")  # what stays, and what each step changes


def init_decoder(config: CoveConfig, key: PRNGKeyArray) -> dict[str, Any]:
    """Return fresh parameters of the decoder."""
    if config.vocab_size is None:
        raise ValueError("the parameters have a decoder, but vocab_size is None: give the number of its words")
    size = config.layer_size
    glorot, orthogonal = nn.initializers.glorot_uniform(), nn.initializers.orthogonal()
    keys = iter(jax.random.split(key, 4 + 2 * config.decoder_layers))
    params: dict[str, Any] = {
        "embedding": jax.random.normal(next(keys), (config.vocab_size, config.target_size)) * config.target_size**-0.5,
        "attention": glorot(next(keys), (size, size)),  # W₁, transposed: H·W₁ does not depend on the step
        "combine": glorot(next(keys), (2 * size, size)),
        "output": {"kernel": glorot(next(keys), (size, config.vocab_size)), "bias": jnp.zeros(config.vocab_size)},
    }
    for n in range(config.decoder_layers):
        inputs = size if n else config.target_size + size
        params[f"layer_{n}"] = {
            "input_kernel": glorot(next(keys), (inputs, 4 * size)),
            "state_kernel": orthogonal(next(keys), (size, 4 * size)),
            "bias": jnp.zeros(4 * size),
        }
    return params


def init_cove_params(config: CoveConfig, key: PRNGKeyArray, decoder: bool = False) -> dict[str, Any]:
    """Return fresh parameters: `{"encoder": …}`, and on request the "decoder".

    The encoder's matrices are drawn by `nn.init_bilstm`. The model's own word vectors, if it has some, are uniform with
    a variance of 1; the unknown word has zeros.
    """
    for_encoder, for_decoder, for_words = jax.random.split(key, 3)
    vectors, lengths = jnp.zeros((1, 1, config.vector_size)), jnp.ones(1, jnp.int32)
    params = {"encoder": dict(jax.jit(Cove(config).init)(for_encoder, vectors, lengths)["params"])}
    if config.vocab_size is not None:
        limit = 3**0.5
        table = jax.random.uniform(for_words, (config.vocab_size, config.vector_size), minval=-limit, maxval=limit)
        params["encoder"]["embeddings"] = {"word": table.at[config.unk_id].set(0.0)}
    if decoder:
        params["decoder"] = init_decoder(config, for_decoder)
    return params


def read_source(config: CoveConfig, params: Mapping[str, Any], output: CoveOutput, lengths: Int[Array, " B"]) -> Memory:
    """Return the memory before the first step: the encoder's outputs and last states, and c̃ = 0."""
    outputs = output.last
    first = config.num_layers - config.decoder_layers
    return {
        "outputs": outputs,
        "keys": product(outputs, params["attention"]),
        "real": jnp.arange(outputs.shape[1], dtype=jnp.int32)[None, :] < jnp.asarray(lengths, jnp.int32)[:, None],
        "cell": output.cells[first:].swapaxes(0, 1),
        "hidden": output.hidden[first:].swapaxes(0, 1),
        "context": jnp.zeros((outputs.shape[0], outputs.shape[2]), jnp.float32),
    }


def decode(
    config: CoveConfig,
    params: Mapping[str, Any],
    memory: Memory,
    inputs: Float[AnyArray, "B T E"],
    key: PRNGKeyArray | None = None,
) -> tuple[Float32[Array, "B T S"], Float32[Array, "B T N"], Memory]:
    """Return the context vectors c̃ and the attention α of each step, and the memory after the last.

    Without a key there is no dropout.
    """
    inputs = jnp.asarray(inputs).astype(config.dtype)
    first = params["layer_0"]["input_kernel"]
    keys: list[Any] = [None, None] if key is None else list(jax.random.split(key))
    inputs = dropout(inputs, config.dropout, keys[0])
    # The contribution of z to the gates, for all steps in one product; c̃ is added in the loop.
    gates = product(inputs.swapaxes(0, 1), first[: config.target_size])
    source, state = ({name: memory[name] for name in names} for names in (SOURCE, STATE))
    keep = None if key is None else jax.random.split(keys[1], len(gates))

    def step(state: Memory, at: Any) -> tuple[Memory, tuple[Array, Array]]:
        gates_t, key_t = at
        state, shares = attend_step(config, params, source, state, gates_t, key_t)
        return state, (state["context"], shares)

    state, (contexts, shares) = jax.lax.scan(step, state, (gates, keep))
    return contexts.swapaxes(0, 1), shares.swapaxes(0, 1), {**memory, **state}


def attend_step(
    config: CoveConfig,
    params: Mapping[str, Any],
    source: Memory,
    state: Memory,
    gates: Float[Array, "B G"],
    key: PRNGKeyArray | None,
) -> tuple[Memory, Float32[Array, "B N"]]:
    """Return the state after one step, and its attention; `gates` are the contribution of z to the first layer's."""
    keys: list[Any] = [None] * (config.decoder_layers + 1)
    keys = keys if key is None else list(jax.random.split(key, config.decoder_layers + 1))
    dtype = jnp.dtype(config.dtype)
    cells, hidden = [], []
    layer_input = state["context"].astype(dtype)
    for n in range(config.decoder_layers):
        p = params[f"layer_{n}"]
        kernel = p["input_kernel"] if n else p["input_kernel"][config.target_size :]
        fed = product(layer_input, kernel)
        cell, h = lstm_step(
            fed if n else fed + gates, p["state_kernel"], p["bias"], state["cell"][:, n], state["hidden"][:, n]
        )
        cells.append(cell)
        hidden.append(h)
        layer_input = dropout(h, config.dropout, keys[n]).astype(dtype)
    scores = jnp.einsum("bns,bs->bn", source["keys"], layer_input, preferred_element_type=jnp.float32)
    shares = masked_softmax(scores, source["real"])
    attended = jnp.einsum("bn,bns->bs", shares.astype(dtype), source["outputs"])
    context = jnp.tanh(
        product(jnp.concatenate([attended, layer_input], axis=-1), params["combine"]).astype(jnp.float32)
    )
    context = dropout(context, config.dropout, keys[-1])
    return {"cell": jnp.stack(cells, axis=1), "hidden": jnp.stack(hidden, axis=1), "context": context}, shares


def score_words(
    config: CoveConfig, params: Mapping[str, Any], contexts: Float32[Array, "B T S"]
) -> Float32[Array, "B T V"]:
    """Return the score of every word after each step."""
    scores = product(contexts.astype(config.dtype), params["output"]["kernel"]).astype(jnp.float32)
    return scores + jnp.broadcast_to(jnp.asarray(params["output"]["bias"], jnp.float32), scores.shape)


def cove_decoder(config: CoveConfig) -> Decoder:
    """Return the functions that write the translation of a source, one word after the other.

    A step needs no slots: all that it remembers is the state of the LSTM and the last context.
    """

    def start(params: Any, prompt: Int[AnyArray, "B T"], mask: Int[AnyArray, "B T"], slots: int) -> Memory:
        del slots
        ids, lengths = jnp.asarray(prompt), jnp.asarray(mask).astype(jnp.int32).sum(axis=1)
        vectors = look_up_vectors(config, params, ids)
        output: Any = Cove(config).apply({"params": params["encoder"]}, vectors, lengths)
        memory = read_source(config, params["decoder"], output, lengths)
        source = {name: memory.pop(name) for name in SOURCE}
        return {"source": source, **memory}

    def step(
        params: Any,
        memory: Memory,
        tokens: Int[AnyArray, "B T"],
        positions: Int[AnyArray, "B T"],
        at: Any,
        visible: Bool[AnyArray, "B S"],
    ) -> tuple[Float32[AnyArray, "B T V"], Memory]:
        del positions, at, visible
        inputs = embed(params["decoder"]["embedding"], tokens)
        before = {**memory["source"], **{name: memory[name] for name in STATE}}
        contexts, _, after = decode(config, params["decoder"], before, inputs)
        scores = score_words(config, params["decoder"], contexts)
        return scores, {"source": memory["source"], **{name: after[name] for name in STATE}}

    return Decoder(
        start=start,
        step=step,
        ends=(config.eos_id,),
        pad=config.eos_id,
        most=None,
        first=config.bos_id,
        forbidden=(config.bos_id,),
    )
