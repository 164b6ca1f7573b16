"""The true perplexity of a language model's held-out text of the toy world, compared with the model's.

All held-out rows of the run are read. The ideal reader knows the document so far. A row begins with any sentence, a
document is followed by another in any of the languages, and the end of a sentence is certain. The probability of a
text is the same in both directions, and so is the true perplexity.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from ml_collections import ConfigDict

from bert_elmo_jax.inference.toy_worlds import load_worlds
from bert_elmo_jax.text.words import UNK_WORD
from bert_elmo_jax.toyworld import MASK, ToyWorld
from bert_elmo_jax.toyworld.automaton import infer
from bert_elmo_jax.toyworld.oracle import automaton, encode

from .held_out import Batch, build_means, read_held_out

DIRECTIONS = ("forward", "backward")


def best_stream(
    words: Sequence[str], ends: Bool[np.ndarray, "T"], worlds: Mapping[str, ToyWorld]
) -> tuple[Float[np.ndarray, "T"], list[str]]:
    """Return the ideal reader's log-probability of each target in a row, and the language of each.

    `words` are the forward targets, `ends` marks those that are `</S>`. The end of a document shows at the beginning
    of the next one, so its probability belongs to that word. `<UNK>` is not scored and has no language.
    """
    logs, language = np.zeros(len(words)), [""] * len(words)
    after = np.append(0, np.flatnonzero(ends) + 1)
    starts = after[after < len(words)]
    opening = {name: list_openers(world) for name, world in worlds.items()}
    first = [n for n in starts.tolist() if n == 0 or any(words[n] in first_words for first_words in opening.values())]
    closing = 0.0  # log-probability of the end of the previous document
    for begin, end in zip(first, [*first[1:], len(words)]):
        places = begin + np.flatnonzero(~ends[begin:end])
        text = [words[n] if words[n] != UNK_WORD else MASK for n in places.tolist()]
        name = next(name for name, world in worlds.items() if {MASK, *world.network.words}.issuperset(text))
        chain = automaton(worlds[name], "document" if begin else "passage")
        chain = replace(chain, end=automaton(worlds[name], "document").end)
        lattice = infer(chain, [encode(worlds[name], " ".join(text))])
        logs[places] = lattice.forward[0]
        logs[begin] += closing - np.log(len(worlds))
        closing = float(lattice.ending[0])
        language[begin:end] = ["" if words[n] == UNK_WORD else name for n in range(begin, end)]
    return logs, language


@functools.cache
def list_openers(world: ToyWorld) -> set[str]:
    """Return the words that begin documents, but no other sentences."""
    chain = automaton(world, "document")
    rows = np.unique(chain.rows[np.flatnonzero(chain.start)])
    cuts = chain.emission_offsets
    return {world.network.words[n] for row in rows for n in chain.emission_words[cuts[row] : cuts[row + 1]]}


def list_stretches(batches: Sequence[Batch]) -> Iterator[tuple[int, int, int]]:
    """Yield the stretches that a model reads with one state: row, first batch, and the batch after the last."""
    for row in range(len(batches[0]["lengths"])):
        fresh = [n for n, batch in enumerate(batches) if batch["fresh"][row]]
        yield from ((row, first, end) for first, end in zip(fresh, [*fresh[1:], len(batches)]))


def best_stream_rows(
    batches: Sequence[Batch], words: Sequence[str], end: int, worlds: Mapping[str, ToyWorld]
) -> tuple[dict[str, tuple[float, int]], dict[str, list[Batch]]]:
    """Return by language the true log-probability with the number of targets, and batches weighted for these."""
    sums = dict.fromkeys(worlds, (0.0, 0))
    scored: dict[str, list[Batch]] = {
        name: [{**b, **{f"{d}_weights": np.zeros_like(b[f"{d}_weights"]) for d in DIRECTIONS}} for b in batches]
        for name in worlds
    }
    for row, first, last in list_stretches(batches):
        sizes = [int(batch["lengths"][row]) for batch in batches[first:last]]
        ids = np.concatenate([b["forward_targets"][row, :size] for b, size in zip(batches[first:last], sizes)])
        if not len(ids):
            continue
        logs, language = best_stream([words[n] for n in ids.tolist()], ids == end, worlds)
        for name, (total, count) in sums.items():
            mine = np.array([word_language == name for word_language in language])
            sums[name] = total + float(logs[mine].sum()), count + int(mine.sum())
            # Backwards, a row is read from its end; the input at each place is from the sentence of its target.
            for direction, part in (("forward", mine), ("backward", mine[::-1])):
                cuts = np.cumsum([0, *sizes])
                for batch, a, b in zip(scored[name][first:last], cuts, cuts[1:]):
                    batch[f"{direction}_weights"][row, : b - a] = part[a:b]
    return sums, scored


class StreamScore(NamedTuple):
    """A model's perplexity in each direction and their mean, the true perplexity, and the number of words."""

    name: str
    forward: float
    backward: float
    mean: float
    true: float
    of: int


class StreamScores(NamedTuple):
    """Scores of each language, and of all."""

    lines: list[StreamScore]
    batches: int
    source: str


def stream_scores(run: Path, config: ConfigDict, corpus: Path) -> StreamScores:
    """Return the held-out perplexity of a run, and the true one."""
    # All batches, even if the run evaluates fewer: only whole rows have the same text in both directions.
    model, objective, batches = read_held_out(run, config, corpus)
    worlds = load_worlds(config.to_dict())
    sums, parts = best_stream_rows(batches, model.tokenizer.words, model.tokenizer.eos_id, worlds)
    means = build_means(objective.held_out_loss, model.params, objective.carry(config.batch_size))
    if len(parts) > 1:
        sums["all"] = tuple(np.sum([*sums.values()], axis=0))
        parts["all"] = [
            {**one[0], **{f"{d}_weights": np.sum([b[f"{d}_weights"] for b in one], axis=0) for d in DIRECTIONS}}
            for one in zip(*parts.values())
        ]
    lines = []
    for name, part in parts.items():
        perplexities = means(part)
        forward, backward = (float(np.exp(perplexities[direction])) for direction in DIRECTIONS)
        true, count = float(np.exp(-sums[name][0] / sums[name][1])), int(sums[name][1])
        lines.append(StreamScore(name, forward, backward, (forward + backward) / 2, true, count))
    return StreamScores(lines, len(batches), model.report.source)
