"""Batches of prompts: shapes, compiled loops, and the pieces that they write."""

import hashlib
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Bool, Float32, Int, Key

from bert_elmo_jax.data.rows.widths import WIDTHS, round_up
from bert_elmo_jax.generation.beam_search import BeamRules, compile_search, is_open
from bert_elmo_jax.generation.decoder import Decoder
from bert_elmo_jax.generation.loop import Numbers, Rules, compile_loop
from bert_elmo_jax.generation.options import Options, Prompt

CHUNK = 64  # pieces between two looks of the host, which an interrupt waits for


class Pieces(NamedTuple):
    """The pieces of a text, the log-probability of each (or the score of a beam), and whether it has ended."""

    ids: list[int]
    logs: list[float]
    score: float | None
    ended: bool


class Writer:
    """What writes with the parameters of a model."""

    def __init__(self, decoder: Decoder, params: Any, vocab_size: int):
        self.decoder, self.vocab_size = decoder, vocab_size
        self.params = params if decoder.prepare is None else decoder.prepare(params)

    def loop(self, rules: Rules) -> Any:
        """Return the compiled functions of `generation.loop`."""
        return compile_loop(self.decoder, rules)

    def search(self, rules: BeamRules) -> Any:
        """Return the compiled functions of `beam_search`."""
        return compile_search(self.decoder, rules)

    def remembered(self, rules: Rules | BeamRules) -> dict[str, Any]:
        """Return the arguments of `begin` that make a state keep the pieces that were used."""
        used = {"vocab_size": self.vocab_size} if rules.repeats else {}
        return {**used, "keep_past": True} if rules.ngram else used

    def numbers(self, options: Options) -> Numbers:
        """Return the numbers of the rules."""
        ends, never = np.zeros((2, self.vocab_size), bool)
        ends[list(options.ends)] = True
        never[list(self.decoder.forbidden)] = True
        top_p = 1.0 if options.top_p is None else options.top_p
        return Numbers(
            ends, never, np.int32(options.min_new), np.float32(options.temperature), np.float32(top_p),
            np.float32(options.repetition_penalty), np.array(options.max_new - 1, np.int32),
        )  # fmt: skip


class Chunk(NamedTuple):
    """The texts of a batch so far, one for each of its rows that is not padding."""

    written: Int[np.ndarray, "B N"]
    logs: Float32[np.ndarray, "B N"]
    done: Bool[np.ndarray, " B"]


def make_keys(prompts: Sequence[Prompt], options: Options, copies_before: Counter[bytes]) -> Key[Array, " N"]:
    """Return the keys of `n_best` texts for each prompt, and count the prompts in `copies_before`.

    They depend on the seed, the prompt's pieces, and how many equal prompts come before: so a prompt gets the same
    texts alone and among others, and equal prompts get different ones.
    """
    key, data = jax.random.key(options.seed), []
    for prompt, before in zip(prompts, count_copies(prompts, copies_before)):
        checksum = zlib.crc32(np.array(prompt.ids, "<i8").tobytes())
        data += [(checksum, before, copy) for copy in range(options.n_best)]
    fold = jax.vmap(lambda key, number: jax.random.fold_in(key, number), (None, 0))
    keys = fold(key, np.array([row[0] for row in data], np.uint32))
    for column in (1, 2):
        keys = jax.vmap(jax.random.fold_in)(keys, np.array([row[column] for row in data], np.uint32))
    return keys


def count_copies(prompts: Sequence[Prompt], before: Counter[bytes]) -> list[int]:
    """Return how many equal prompts come before each one, and count them in `before`, by a hash of their pieces."""
    counts = []
    for prompt in prompts:
        name = hashlib.blake2b(np.array(prompt.ids, "<i8").tobytes(), digest_size=8).digest()
        counts.append(before[name])
        before[name] += 1
    return counts


def choose_width(length: int) -> int:
    """Return the number of places for this many pieces, 0 for none.

    >>> choose_width(0), choose_width(17), choose_width(9000)
    (0, 32, 9216)
    """
    return next((width for width in (0, *WIDTHS) if width >= length), round_up(length, 1024))


def lay_out(
    decoder: Decoder, prompts: Sequence[Prompt], height: int
) -> tuple[Int[np.ndarray, "B T"], Int[np.ndarray, "B T"]]:
    """Return the pieces of a batch and their mask: prompts end in the last column, sources begin in the first."""
    longest = max(len(prompt.ids) for prompt in prompts)
    width = 1 + choose_width(longest - 1) if decoder.first is None else choose_width(longest)
    ids, mask = np.full((height, width), decoder.pad, np.int32), np.zeros((height, width), np.int32)
    ends = slice(-1, None) if decoder.first is None else slice(0, 1)
    mask[:, ends] = 1  # rows that only fill the batch have one piece
    for row, prompt in enumerate(prompts):
        size = len(prompt.ids)
        part = slice(width - size, width) if decoder.first is None else slice(0, size)
        ids[row, part], mask[row, part] = prompt.ids, 1
    return ids, mask


def plan(prompts: Sequence[Prompt], batch_size: int) -> Iterator[list[int]]:
    """Yield the places of the prompts of each batch; a batch has prompts of similar lengths."""
    order = sorted(range(len(prompts)), key=lambda place: (len(prompts[place].ids), place))
    for first in range(0, len(order), batch_size):
        yield order[first : first + batch_size]


def write_chunks(
    writer: Writer, prompts: Sequence[Prompt], keys: Key[Array, " B"], options: Options, height: int, chunk: int
) -> Iterator[Chunk]:
    """Yield the texts of a batch after every `chunk` pieces; a row that is set in `done` is not written any longer."""
    rules = Rules(
        options.draws, options.top_k, options.top_p is not None and options.top_p < 1, options.repetition_penalty != 1,
        options.no_repeat_ngram_size,
    )  # fmt: skip
    begin, advance = writer.loop(rules)
    ids, mask = lay_out(writer.decoder, prompts, height)
    state = begin(writer.params, ids, mask, new_slots=choose_width(options.max_new), **writer.remembered(rules))
    rows, count = len(prompts), 0
    done = np.arange(height) >= rows
    keys = keys[np.minimum(np.arange(height), rows - 1)]
    numbers = writer.numbers(options)
    while count < options.max_new and not done.all():
        state = advance(writer.params, state._replace(done=done), numbers, keys, min(count + chunk, options.max_new))
        written, logs, stopped, count = jax.device_get((state.written, state.logs, state.done, state.steps))
        texts = Chunk(written[:rows, :count], logs[:rows, :count], stopped[:rows].copy())
        yield texts
        done = np.concatenate([texts.done, np.ones(height - rows, bool)])


def cut(ids: Sequence[int], logs: Sequence[float], ends: Sequence[int]) -> Pieces:
    """Return the pieces up to the first that ends a text, with that piece."""
    size = next((place + 1 for place, piece in enumerate(ids) if piece in ends), None)
    ids, logs = [int(piece) for piece in ids[:size]], [float(log) for log in logs[:size]]
    return Pieces(ids, logs, None, size is not None)


def search_batch(writer: Writer, prompts: Sequence[Prompt], options: Options, height: int) -> list[list[Pieces]]:
    """Return the best texts of each prompt of a batch by a beam search."""
    candidates = max(2, 1 + len(options.ends)) * options.beams
    rules = BeamRules(
        options.beams, min(candidates, options.beams * writer.vocab_size), options.early_stopping, options.length_rule,
        options.repetition_penalty != 1, options.no_repeat_ngram_size,
    )  # fmt: skip
    begin, search = writer.search(rules)
    ids, mask = lay_out(writer.decoder, prompts, height)
    state = begin(writer.params, ids, mask, new_slots=choose_width(options.max_new), **writer.remembered(rules))
    state = state._replace(hopeful=np.arange(height) < len(prompts))
    numbers, penalty = writer.numbers(options), np.float32(options.length_penalty)
    count, going = 0, True
    while count < options.max_new and going:
        until = min(count + CHUNK, options.max_new)
        state = search(writer.params, state, numbers, penalty, options.max_new, until)
        count, going = int(state.steps), bool(is_open(state, options.early_stopping).any())
    texts, scores, lengths = jax.device_get((state.ended, state.scores, state.lengths))
    batch_texts = []
    for row in range(len(prompts)):
        best = []
        for beam in range(options.n_best):
            pieces = texts[row, beam, : lengths[row, beam]].tolist()
            best.append(Pieces(pieces, [], float(scores[row, beam]), pieces[-1] in options.ends))
        batch_texts.append(best)
    return batch_texts
