"""The compiled loop of a beam search, with the rules of transformers 5.

Each step takes the best candidates of all beams of a row, at least two per beam, so that enough unfinished ones remain
for all beams. With n beams, a candidate that ends its text is kept if it is among the n best. In the last step every
candidate ends.
"""

import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, no_type_check

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float32, Int

from bert_elmo_jax.generation.decoder import Decoder
from bert_elmo_jax.generation.loop import Numbers, adjust, begin, mark, renormalise
from bert_elmo_jax.nn.any_array import AnyArray

EarlyStopping = Literal["never"] | bool
LengthRule = Literal["power", "gnmt"]
FAR = -1e9  # the sum of a beam that is not there
NONE = -jnp.inf  # the score of a text that is not there: any text is better


class BeamRules(NamedTuple):
    """The rules that are compiled into a search."""

    beams: int
    candidates: int  # for each row and step
    early_stopping: EarlyStopping = False
    length_rule: LengthRule = "power"
    repeats: bool = False  # pieces that were used have a penalty
    ngram: int = 0  # no sequence of so many pieces comes twice; 0: any may


@no_type_check  # tree operations put other values than arrays of these shapes into it
class Search(NamedTuple):
    """The beams of a batch between two steps: the unfinished ones, and the best texts that have ended."""

    memory: Any
    token: Int[Array, "B K"]
    position: Int[Array, " B"]
    at: Int[Array, ""]
    visible: Bool[Array, "R S"]
    used: Bool[Array, "R V"] | None
    past: Int[Array, "R P"] | None
    steps: Int[Array, ""]  # pieces written
    running: Int[Array, "B K N"]
    sums: Float32[Array, "B K"]  # of log-probabilities, best first
    ended: Int[Array, "B K N"]
    scores: Float32[Array, "B K"]  # best first
    lengths: Int[Array, "B K"]
    full: Bool[Array, "B K"]  # a text is there
    hopeful: Bool[Array, " B"]  # a text that ends later may be better


def weigh_length(length: Any, penalty: Any, rule: LengthRule) -> Any:
    """Return the divisor of the sum of a text's log-probabilities, for one length or an array of lengths.

    It is length^penalty, or GNMT's ((5 + length) / 6)^penalty: Wu et al. 2016, section 7.

    >>> weigh_length(7, 1.0, "power"), weigh_length(7, 1.0, "gnmt")
    (7.0, 2.0)
    """
    size = length.astype(jnp.float32) if isinstance(length, jax.Array) else float(length)
    return (size if rule == "power" else (5 + size) / 6) ** penalty


def begin_search(
    decoder: Decoder,
    params: Any,
    prompt: Int[AnyArray, "B T"],
    mask: Int[AnyArray, "B T"],
    *,
    new_slots: int,
    beams: int,
    vocab_size: int | None = None,
    keep_past: bool = False,
) -> Search:
    """Return the state before the first piece: every row has one beam, and the others are far behind."""
    options: dict[str, Any] = {"new_slots": new_slots, "vocab_size": vocab_size, "keep_past": keep_past}
    state = begin(decoder, params, prompt, mask, **options)
    rows = len(state.token)
    repeat = lambda part: jnp.repeat(part, beams, axis=0)  # noqa: E731
    far = jnp.full((rows, beams), FAR, jnp.float32)
    blank = jnp.full((rows, beams, new_slots), decoder.pad, state.token.dtype)
    return Search(
        memory=jax.tree.map(repeat, state.memory), token=repeat(state.token[:, None]).reshape(rows, beams),
        position=state.position, at=state.at, visible=repeat(state.visible),
        used=None if state.used is None else repeat(state.used),
        past=None if state.past is None else repeat(state.past), steps=state.steps, running=blank,
        sums=far.at[:, 0].set(0.0), ended=blank, scores=jnp.full_like(far, NONE),
        lengths=jnp.zeros((rows, beams), jnp.int32),
        full=jnp.zeros((rows, beams), bool), hopeful=jnp.ones(rows, bool),
    )  # fmt: skip


def is_open(state: Search, early_stopping: EarlyStopping) -> Bool[Array, " B"]:
    """Return True for the rows whose search has not ended."""
    return state.hopeful & ~state.full.all(axis=1) if early_stopping is True else state.hopeful


def search(
    decoder: Decoder,
    rules: BeamRules,
    params: Any,
    state: Search,
    numbers: Numbers,
    length_penalty: float | Float32[AnyArray, ""],
    limit: int | Int[AnyArray, ""],
    until: int | Int[AnyArray, ""],
) -> Search:
    """Search until all rows have ended or have `until` pieces; no text has more than `limit`."""
    beams, early = rules.beams, rules.early_stopping
    numbers = Numbers(*map(jnp.asarray, numbers))

    def step(state: Search) -> Search:
        rows = len(state.token)
        flat = state.token.reshape(rows * beams, 1)
        places = jnp.repeat(state.position, beams)[:, None]
        logits, memory = decoder.step(params, state.memory, flat, places, state.at, state.visible)
        logs = jax.nn.log_softmax(logits[:, 0])
        running = state.running.reshape(rows * beams, -1)
        logs = adjust(decoder, rules, logs, state.used, state.past, running, state.steps, numbers)
        logs = renormalise(logs) if decoder.renormalises else logs
        vocab_size, length = logs.shape[1], state.steps + 1
        totals = state.sums.reshape(-1, 1) + logs
        best, place = lax.top_k(totals.reshape(rows, beams * vocab_size), rules.candidates)
        parent, piece = place // vocab_size, (place % vocab_size).astype(state.token.dtype)
        candidates = lax.dynamic_update_slice(
            jnp.take_along_axis(state.running, parent[:, :, None], axis=1), piece[:, :, None], (0, 0, state.steps)
        )
        ends = numbers.ends[piece] | (length == limit)

        finishes = ends & (jnp.arange(rules.candidates) < beams)[None, :] & is_open(state, early)[:, None]
        value = jnp.where(finishes, best / weigh_length(length, length_penalty, rules.length_rule), NONE)
        scores, chosen = lax.top_k(jnp.concatenate([state.scores, value], axis=1), beams)

        def choose(old: Array, new: Array) -> Array:
            both = jnp.concatenate([old, new], axis=1)
            return jnp.take_along_axis(both, chosen.reshape(rows, beams, *(1,) * (both.ndim - 2)), axis=1)

        full = choose(state.full, finishes)
        sums, going = lax.top_k(jnp.where(ends, FAR, best), beams)
        from_beam, token = (jnp.take_along_axis(part, going, axis=1) for part in (parent, piece))
        from_row = (jnp.arange(rows)[:, None] * beams + from_beam).reshape(-1)
        # A positive penalty favours long texts, so the largest length is the best that a beam can hope for.
        reach = jnp.where(jnp.asarray(length_penalty) > 0, limit, length) if early == "never" else length
        possible = sums[:, 0] / weigh_length(reach, length_penalty, rules.length_rule)
        return Search(
            memory=reorder(memory, from_row),
            token=token,
            position=state.position + 1,
            at=state.at + 1,
            visible=state.visible,
            past=state.past,
            used=None if state.used is None else mark(state.used[from_row], token.reshape(-1)),
            steps=length,
            running=jnp.take_along_axis(candidates, going[:, :, None], axis=1),
            sums=sums,
            ended=choose(state.ended, candidates),
            scores=scores,
            lengths=choose(state.lengths, jnp.broadcast_to(length, ends.shape)),
            full=full,
            hopeful=state.hopeful & (~full.all(axis=1) | (possible > scores[:, -1])),
        )

    return lax.while_loop(lambda state: (state.steps < until) & is_open(state, early).any(), step, state)


def reorder(memory: Any, rows: Int[Array, " R"]) -> Any:
    """Return the memory of the unfinished beams; `source` is the same for all beams of a row."""
    if isinstance(memory, dict):
        return {name: part if name == "source" else _take(part, rows) for name, part in memory.items()}
    return _take(memory, rows)


def _take(memory: Any, rows: Int[Array, " R"]) -> Any:
    return jax.tree.map(lambda part: part.at[rows].get(mode="promise_in_bounds"), memory)


@functools.lru_cache(maxsize=32)
def compile_search(decoder: Decoder, rules: BeamRules) -> tuple[Callable[..., Search], Callable[..., Search]]:
    """Return `begin_search` and `search` for a decoder, compiled once for each shape."""
    start = jax.jit(
        lambda *inputs, **sizes: begin_search(decoder, *inputs, beams=rules.beams, **sizes),
        static_argnames=("new_slots", "vocab_size", "keep_past"),
    )
    go = jax.jit(lambda *inputs: search(decoder, rules, *inputs), donate_argnums=1)
    return start, go
