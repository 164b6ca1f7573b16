"""The compiled loop that writes greedily or draws: piece by piece, all rows of a batch together."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, no_type_check

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float32, Int, Key

from bert_elmo_jax.generation.decoder import Decoder
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.next_piece import Number, block, block_ngrams, draw, find_likeliest, penalise_repeats


class Rules(NamedTuple):
    """The rules that are compiled into a loop."""

    draws: bool = False
    top_k: int | None = None
    top_p: bool = False
    repeats: bool = False  # pieces that were used have a penalty
    ngram: int = 0  # no sequence of so many pieces comes twice; 0: any may


class Numbers(NamedTuple):
    """The numbers of the rules, which may change without compiling again."""

    ends: Bool[AnyArray, " V"]  # pieces that end a text
    never: Bool[AnyArray, " V"]  # pieces that are never written
    min_new: int | np.int32 | Int[AnyArray, ""] = 0
    temperature: Number = 1.0
    top_p: Number = 1.0
    penalty: Number = 1.0  # of pieces that were used
    last: int | np.int32 | Int[AnyArray, ""] = 2**31 - 1  # the number of the last piece, counted from 0


@no_type_check  # tree operations put other values than arrays of these shapes into it
class State(NamedTuple):
    """The texts of a batch between two steps; `token` is the last piece of each row, which is not in `memory` yet."""

    memory: Any
    token: Int[Array, " B"]
    position: Int[Array, " B"]
    at: Int[Array, ""]  # the slot of `token`
    visible: Bool[Array, "B S"]
    used: Bool[Array, "B V"] | None
    past: Int[Array, "B P"] | None  # the pieces before the first one that is written; negative: padding
    steps: Int[Array, ""]  # pieces written
    written: Int[Array, "B N"]
    logs: Float32[Array, "B N"]  # the log-probability of each piece under the model
    done: Bool[Array, " B"]


def begin(
    decoder: Decoder,
    params: Any,
    prompt: Int[AnyArray, "B T"],
    mask: Int[AnyArray, "B T"],
    *,
    new_slots: int,
    vocab_size: int | None = None,
    keep_past: bool = False,
) -> State:
    """Return the state before the first piece; with `vocab_size` it marks the pieces that were used.

    `keep_past` keeps the pieces before the first one that is written.

    Prompts to continue are padded on the left, sources to translate on the right.
    """
    prompt, mask = jnp.asarray(prompt), jnp.asarray(mask)
    rows, width = prompt.shape
    before = width - 1 if decoder.first is None else 0
    slots = before + new_slots
    memory = decoder.start(params, prompt, mask, slots)
    places = jnp.maximum(jnp.cumsum(mask, axis=1) - 1, 0)
    if decoder.first is None:
        token, position = prompt[:, -1], places[:, -1]
        visible = jnp.concatenate([mask[:, :before] > 0, jnp.ones((rows, new_slots), bool)], axis=1)
        if before:  # these logits are not used, so the compiler leaves them out
            _, memory = decoder.step(params, memory, prompt[:, :before], places[:, :before], 0, visible)
    else:
        token, position = jnp.full(rows, decoder.first, prompt.dtype), jnp.zeros(rows, prompt.dtype)
        visible = jnp.ones((rows, slots), bool)
    used = None
    if vocab_size is not None:
        row = jnp.arange(rows)[:, None]
        used = jnp.zeros((rows, vocab_size), bool)
        used = used.at[row, prompt].max(mask > 0) if decoder.first is None else used.at[row, token[:, None]].set(True)
    past = None
    if keep_past:  # each empty place has a number of its own, so that padding repeats nothing
        past = (
            token[:, None] if decoder.first is not None else jnp.where(mask > 0, prompt, -1 - jnp.arange(width)[None])
        )
    return State(
        memory, token, position, jnp.int32(before), visible, used, past, jnp.int32(0),
        written=jnp.full((rows, new_slots), decoder.pad, prompt.dtype), logs=jnp.zeros((rows, new_slots), jnp.float32),
        done=jnp.zeros(rows, bool),
    )  # fmt: skip


def advance(
    decoder: Decoder,
    rules: Rules,
    params: Any,
    state: State,
    numbers: Numbers,
    keys: Key[Array, " B"],
    until: int | Int[AnyArray, ""],
) -> State:
    """Write until each row has `until` pieces or has ended; a row's n-th draw depends on its key and n alone."""

    def step(state: State) -> State:
        logits, memory = decoder.step(
            params, state.memory, state.token[:, None], state.position[:, None], state.at, state.visible
        )
        scores = adjust(decoder, rules, logits[:, 0], state.used, state.past, state.written, state.steps, numbers)
        if rules.draws:
            fresh = jax.vmap(jax.random.fold_in, (0, None))(keys, state.steps)
            top_p = numbers.top_p if rules.top_p else None
            piece = draw(fresh, scores, numbers.temperature, rules.top_k, top_p)
        else:
            piece = find_likeliest(scores)
        piece = piece.astype(state.token.dtype)
        counted = renormalise(scores) if decoder.renormalises else logits[:, 0]
        log = jnp.take_along_axis(counted, piece[:, None], axis=1)[:, 0] - jax.nn.logsumexp(counted, axis=1)
        for forced, place in ((decoder.forced_first, 0), (decoder.forced_end, numbers.last)):
            log = log if forced is None else jnp.where(state.steps == place, 0.0, log)
        # A row that has ended is filled with padding.
        shown = jnp.where(state.done, decoder.pad, piece)
        return state._replace(
            memory=memory,
            token=shown,
            position=jnp.where(state.done, state.position, state.position + 1),
            at=state.at + 1,
            used=mark(state.used, piece),
            steps=state.steps + 1,
            written=lax.dynamic_update_slice(state.written, shown[:, None], (0, state.steps)),
            logs=lax.dynamic_update_slice(state.logs, jnp.where(state.done, 0.0, log)[:, None], (0, state.steps)),
            done=state.done | numbers.ends[piece],
        )

    numbers = Numbers(*map(jnp.asarray, numbers))
    return lax.while_loop(lambda state: (state.steps < until) & ~state.done.all(), step, state)


def adjust(
    decoder: Decoder,
    rules: Any,
    scores: Float32[Array, "B V"],
    used: Bool[Array, "B V"] | None,
    past: Int[Array, "B P"] | None,
    written: Int[Array, "B N"],
    steps: Int[Array, ""],
    numbers: Numbers,
) -> Float32[Array, "B V"]:
    """Return scores after the penalty for repeats, and without the pieces that may not come now.

    `rules` are `Rules`, or the `BeamRules` of a search.
    """
    if rules.repeats:
        assert used is not None
        scores = penalise_repeats(scores, used, numbers.penalty)
    if rules.ngram:
        assert past is not None
        pieces = jnp.concatenate([past, written.astype(past.dtype)], axis=1)
        scores = block_ngrams(scores, pieces, past.shape[1] + steps, rules.ngram)
    scores = block(scores, numbers.never | (numbers.ends & (steps < numbers.min_new)))
    for piece, place in ((decoder.forced_first, 0), (decoder.forced_end, numbers.last)):
        if piece is not None:
            only = block(jnp.zeros_like(scores), jnp.arange(scores.shape[1]) != piece)
            scores = jnp.where(steps == place, only, scores)
    return scores


def renormalise(scores: Float32[Array, "B V"]) -> Float32[Array, "B V"]:
    """Return the log-probabilities among the pieces that may come; the score of all other pieces stays -inf."""
    return jnp.where(jnp.isneginf(scores), scores, jax.nn.log_softmax(scores))


def mark(used: Bool[Array, "B V"] | None, piece: Int[Array, " B"]) -> Bool[Array, "B V"] | None:
    """Return the pieces that were used, with one more for each row; None stays None."""
    return None if used is None else used.at[jnp.arange(len(piece)), piece].set(True)


@functools.lru_cache(maxsize=32)
def compile_loop(decoder: Decoder, rules: Rules) -> tuple[Callable[..., State], Callable[..., State]]:
    """Return `begin` and `advance` for a decoder, compiled once for each shape."""
    start = jax.jit(
        lambda *inputs, **sizes: begin(decoder, *inputs, **sizes),
        static_argnames=("new_slots", "vocab_size", "keep_past"),
    )
    # The state is given away, so that its memory is updated in place.
    go = jax.jit(lambda *inputs: advance(decoder, rules, *inputs), donate_argnums=1)
    return start, go
