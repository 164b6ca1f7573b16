"""A family that writes, in one file: one attention layer with random weights, and its reference in numpy."""

from dataclasses import dataclass, replace
from functools import partial

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
from jax import lax

from bert_elmo_jax.families.family import Family
from bert_elmo_jax.families.piece_encoder import PieceEncoder
from bert_elmo_jax.families.pieces import Pieces
from bert_elmo_jax.generation.beam_search import compile_search
from bert_elmo_jax.generation.calls import find_writer
from bert_elmo_jax.generation.decoder import Decoder
from bert_elmo_jax.generation.loop import compile_loop


@dataclass(frozen=True)
class WriterConfig:
    """The sizes of a toy writer; with `first` it translates."""

    vocab_size: int = 19
    hidden_size: int = 8
    max_positions: int | None = 64
    num_layers: int = 1
    pad_id: int = 0
    dtype: str = "float32"
    ends: tuple[int, ...] = (3,)
    first: int | None = None
    forbidden: tuple[int, ...] = ()
    renormalises: bool = False


def make_params(config, seed=0, sharpness=3.0):
    """Return random weights; a larger `sharpness` makes the model surer."""
    random = np.random.default_rng(seed)
    v, d, p = config.vocab_size, config.hidden_size, config.max_positions or 100
    shapes = {"word": (v, d), "place": (p, d), "query": (d, d), "key": (d, d), "value": (d, d), "out": (d, v)}
    params = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return params | {"out": params["out"] * np.float32(sharpness / d**0.5)}


def make_decoder(config):
    def start(params, prompt, mask, slots):
        p, d = params["encoder"], config.hidden_size
        empty = jnp.zeros((len(prompt), slots, d), jnp.float32)
        memory = {"layer": {"key": empty, "value": empty}}
        if config.first is not None:
            weights = mask / jnp.maximum(mask.sum(axis=1, keepdims=True), 1)
            memory["source"] = jnp.einsum("bt,btd->bd", weights, p["word"][prompt])
        return memory

    def step(params, memory, tokens, positions, at, visible):
        p, slots = params["encoder"], visible.shape[1]
        x = p["word"][tokens] + p["place"][positions]
        if config.first is not None:
            x = x + memory["source"][:, None]
        layer = {
            name: lax.dynamic_update_slice(memory["layer"][name], x @ p[name], (0, at, 0)) for name in ("key", "value")
        }
        scores = jnp.einsum("btd,bsd->bts", x @ p["query"], layer["key"])
        places = at + jnp.arange(tokens.shape[1])
        sees = visible[:, None] & (jnp.arange(slots)[None, :] <= places[:, None])[None]
        maps = jax_softmax(jnp.where(sees, scores, -1e30))
        return jnp.tanh(x + jnp.einsum("bts,bsd->btd", maps, layer["value"])) @ p["out"], memory | {"layer": layer}

    return Decoder(
        start, step, config.ends, config.pad_id, config.max_positions, config.first, config.forbidden,
        renormalises=config.renormalises,
    )  # fmt: skip


def jax_softmax(scores):
    exps = jnp.exp(scores - scores.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def slow_logits(config, params, prompt, new):
    """Return the logits after a prompt and new pieces, computed without a memory in float64."""
    p = {name: value.astype(np.float64) for name, value in params.items()}
    ids = [*prompt, *new] if config.first is None else [config.first, *new]
    x = p["word"][ids] + p["place"][: len(ids)]
    if config.first is not None:
        x = x + p["word"][list(prompt)].mean(axis=0)
    scores = (x @ p["key"]) @ (x[-1] @ p["query"])
    maps = np.exp(scores - scores.max())
    return np.tanh(x[-1] + maps @ (x @ p["value"]) / maps.sum()) @ p["out"]


def slow_logs(config, params, prompt, new):
    """Return the log-probabilities of the next piece; -inf for forbidden ones."""
    logits = slow_logits(config, params, prompt, new)
    logs = logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
    logs[list(config.forbidden)] = -np.inf
    return logs - np.log(np.exp(logs).sum()) if config.renormalises else logs


def slow_beams(next_logs, beams, max_new, ends, alpha=1.0, rule="power", early=False):
    """Search with beams as lists; return [(score, pieces)], best first."""

    def score(total, length):
        return total / (length if rule == "power" else (5 + length) / 6) ** alpha

    running, done = [(0.0, [])], []
    for length in range(1, max_new + 1):
        branches = [(total + log, [*ids, piece]) for total, ids in running for piece, log in enumerate(next_logs(ids))]
        branches = sorted(branches, key=lambda one: -one[0])[: max(2, 1 + len(ends)) * beams]
        ended = [ids[-1] in ends or length == max_new for _, ids in branches]
        done += [(score(total, length), ids) for (total, ids), end in zip(branches[:beams], ended) if end]
        done = sorted(done, key=lambda one: -one[0])[:beams]
        running = [one for one, end in zip(branches, ended) if not end][:beams]
        if len(done) == beams:
            reach = max_new if early == "never" and alpha > 0 else length
            if early is True or not running or score(running[0][0], reach) <= done[-1][0]:
                break
    return done


FAMILY = Family(
    name="toy_writer", called="a toy writer", config=WriterConfig, module=nn.Module, inputs=Pieces(), objectives={},
    decoder=make_decoder,
)  # fmt: skip


# The decoders by configuration, whose compiled loops writers with other ends and forbidden pieces share.
DECODERS: dict[WriterConfig, Decoder] = {}


def make_writer(tokenizer=None, seed=0, sharpness=3.0, **fields):
    """Return an encoder that writes; its family must be registered."""
    config = WriterConfig(**fields)
    params = make_params(config, seed, sharpness)
    encoder = PieceEncoder(FAMILY, config, {"encoder": params}, tokenizer, "a toy")
    writer = find_writer(encoder)
    decoder = DECODERS.setdefault(replace(config, ends=(), forbidden=()), writer.decoder)
    writer.loop, writer.search = partial(compile_loop, decoder), partial(compile_search, decoder)
    return encoder, config, params
