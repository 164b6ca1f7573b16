"""Sparse, batched, exact inference in a hidden Markov chain whose states emit words.

A state emits one word, then moves on or ends. An observed word leaves few states possible, so the passes carry lists of
(sequence, state) pairs rather than dense vectors: their cost grows with the uncertainty, not with the automaton.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

MASKED = -1


@dataclass(frozen=True)
class Automaton:
    """A Markov chain in compressed rows: state s has the arcs `arc_offsets[s]` to `arc_offsets[s + 1]`.

    State s draws its word from emission row `rows[s]`; the words of a row are sorted, and R1 is the number of rows plus
    one. `start`, `arc_weights` and `end` are probabilities; set `end` to 1 to ignore whether a sequence ends.
    """

    start: Float[np.ndarray, "S"]
    arc_offsets: Int[np.ndarray, "S+1"]
    arc_targets: Int[np.ndarray, "A"]
    arc_weights: Float[np.ndarray, "A"]
    end: Float[np.ndarray, "S"]
    rows: Int[np.ndarray, "S"]
    emission_offsets: Int[np.ndarray, "R1"]
    emission_words: Int[np.ndarray, "E"]
    emission_weights: Float[np.ndarray, "E"]
    vocabulary: int

    @property
    def emission_keys(self) -> Int[np.ndarray, "E"]:
        """One sorted number per (row, word) pair, for look-ups."""
        row = np.repeat(np.arange(len(self.emission_offsets) - 1), np.diff(self.emission_offsets))
        return row * self.vocabulary + self.emission_words


@dataclass(frozen=True)
class Lattice:
    """The result of inference, as parallel arrays over the possible (sequence, position, state) triples.

    `forward[b, t]` is log P(word t | the words before it), 0 beyond the end and for masked words; `ending[b]` is
    log P(the sequence ends here | its words). Both are -inf from the first impossible word onwards.
    """

    sequences: Int[np.ndarray, "N"]
    positions: Int[np.ndarray, "N"]
    states: Int[np.ndarray, "N"]
    posteriors: Float[np.ndarray, "N"]
    forward: Float[np.ndarray, "B T"]
    ending: Float[np.ndarray, "B"]

    @property
    def log_likelihood(self) -> Float[np.ndarray, "B"]:
        """Log P(the observed words, end of sequence)."""
        return self.forward.sum(1) + self.ending


def offsets(counts: Int[np.ndarray, "S"]) -> Int[np.ndarray, "S+1"]:
    """Return where each of some consecutive groups of these sizes begins, and the end."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def reverse(automaton: Automaton, visits: Float[np.ndarray, "S"]) -> Automaton:
    """Return the automaton that reads the same sequences backward, given each state's expected number of visits.

    Every path keeps its probability, so the backward language model is inference in the reversed automaton.
    """
    sources = np.repeat(np.arange(len(automaton.start)), np.diff(automaton.arc_offsets))
    order = np.argsort(automaton.arc_targets, kind="stable")
    targets = automaton.arc_targets[order]
    return replace(
        automaton,
        start=visits * automaton.end,
        arc_offsets=offsets(np.bincount(targets, minlength=len(automaton.start))),
        arc_targets=sources[order],
        arc_weights=visits[sources[order]] * automaton.arc_weights[order] / visits[targets],
        end=automaton.start / visits,
    )


def sums(owners: Int[np.ndarray, "N"], values: Float[np.ndarray, "N"], count: int) -> Float[np.ndarray, "count"]:
    """Return the sum of each owner's values: a `bincount` that is float even for empty input."""
    return np.bincount(owners, values, minlength=count).astype(np.float64, copy=False)


@dataclass(frozen=True)
class _Step:
    """The possible states at one position, and the arcs that lead to them from the previous position."""

    sequences: Int[np.ndarray, "N"]
    states: Int[np.ndarray, "N"]
    alpha: Float[np.ndarray, "N"]
    arc_from: Int[np.ndarray, "M"]
    arc_to: Int[np.ndarray, "M"]
    arc_weights: Float[np.ndarray, "M"]


def infer(automaton: Automaton, sequences: Sequence[Sequence[int] | Int[np.ndarray, "_"]]) -> Lattice:
    """Run forward–backward over word ids, at least one in each sequence; `MASKED` matches any word."""
    lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int64)
    words = np.full((len(lengths), np.max(lengths)), MASKED, dtype=np.int64)
    for row, length in enumerate(lengths):
        words[row, :length] = sequences[row]
    steps, forward = _forward(automaton, words, lengths)
    ending, betas = _backward(automaton, steps, lengths)
    dead = np.isneginf(forward).any(1)
    with np.errstate(divide="ignore"):
        ends = np.where(dead, -np.inf, np.log(ending))
    weights = np.concatenate([step.alpha * beta for step, beta in zip(steps, betas, strict=True)])
    owners = np.concatenate([step.sequences for step in steps])
    return Lattice(
        sequences=owners,
        positions=np.repeat(np.arange(len(steps)), [len(step.states) for step in steps]),
        states=np.concatenate([step.states for step in steps]),
        posteriors=np.divide(weights, ending[owners], out=np.zeros_like(weights), where=ending[owners] > 0),
        forward=forward,
        ending=ends,
    )


def _forward(
    automaton: Automaton, words: Int[np.ndarray, "B T"], lengths: Int[np.ndarray, "B"]
) -> tuple[list[_Step], Float[np.ndarray, "B T"]]:
    keys = automaton.emission_keys
    forward = np.zeros(words.shape)
    steps: list[_Step] = []
    for position in range(words.shape[1]):
        column, alive = words[:, position], lengths > position
        step = _advance(automaton, keys, steps[-1], column, alive) if steps else _start(automaton, keys, column)
        total = sums(step.sequences, step.alpha, len(words))
        with np.errstate(divide="ignore"):
            forward[:, position] = np.where(alive, np.log(total), 0.0)
        scale = total[step.sequences]
        steps.append(replace(step, alpha=step.alpha / scale, arc_weights=step.arc_weights / scale[step.arc_to]))
    return steps, forward


def _emission(
    automaton: Automaton, keys: Int[np.ndarray, "E"], states: Int[np.ndarray, "N"], words: Int[np.ndarray, "N"]
) -> Float[np.ndarray, "N"]:
    """Return P(word | state) of each pair, 1 for masked words."""
    pairs = automaton.rows[states] * automaton.vocabulary + words
    index = np.minimum(np.searchsorted(keys, pairs), len(keys) - 1)
    return np.where(words == MASKED, 1.0, np.where(keys[index] == pairs, automaton.emission_weights[index], 0.0))


def _start(automaton: Automaton, keys: Int[np.ndarray, "E"], words: Int[np.ndarray, "B"]) -> _Step:
    """Return the first step; the many start states are looked up once per distinct first word."""
    candidates = np.flatnonzero(automaton.start)
    owners, states, alpha = [], [], []
    for word in np.unique(words):
        weight = automaton.start[candidates] * _emission(automaton, keys, candidates, np.full(len(candidates), word))
        possible = np.flatnonzero(weight)
        rows = np.flatnonzero(words == word)
        owners.append(np.repeat(rows, len(possible)))
        states.append(np.tile(candidates[possible], len(rows)))
        alpha.append(np.tile(weight[possible], len(rows)))
    none = np.zeros(0, dtype=np.int64)
    return _Step(np.concatenate(owners), np.concatenate(states), np.concatenate(alpha), none, none, np.zeros(0))


def _advance(
    automaton: Automaton, keys: Int[np.ndarray, "E"], last: _Step, words: Int[np.ndarray, "B"], alive: np.ndarray
) -> _Step:
    sources = np.flatnonzero(alive[last.sequences])
    first = automaton.arc_offsets[last.states[sources]]
    counts = automaton.arc_offsets[last.states[sources] + 1] - first
    arc_from = np.repeat(sources, counts)
    arc = np.arange(len(arc_from)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
    owners = last.sequences[arc_from]
    targets = automaton.arc_targets[arc]
    weights = automaton.arc_weights[arc] * _emission(automaton, keys, targets, words[owners])
    possible = np.flatnonzero(weights)
    arc_from, owners, targets, weights = arc_from[possible], owners[possible], targets[possible], weights[possible]
    pairs, arc_to = np.unique(owners * len(automaton.start) + targets, return_inverse=True)
    alpha = sums(arc_to, last.alpha[arc_from] * weights, len(pairs))
    sequences, states = np.divmod(pairs, len(automaton.start))
    return _Step(sequences, states, alpha, arc_from, arc_to, weights)


def _backward(
    automaton: Automaton, steps: list[_Step], lengths: Int[np.ndarray, "B"]
) -> tuple[Float[np.ndarray, "B"], list[Float[np.ndarray, "_"]]]:
    """Return each sequence's probability of ending after its last word, and the beta of every step."""
    ending = np.zeros(len(lengths))
    betas: list[Float[np.ndarray, "_"]] = []
    for position in reversed(range(len(steps))):
        step = steps[position]
        beta = np.where(lengths[step.sequences] == position + 1, automaton.end[step.states], 0.0)
        ending += sums(step.sequences, step.alpha * beta, len(lengths))
        if betas:
            after = steps[position + 1]
            flow = after.arc_weights * betas[-1][after.arc_to]
            beta = beta + sums(after.arc_from, flow, len(beta))
        betas.append(beta)
    return ending, betas[::-1]
