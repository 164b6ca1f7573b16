"""The exact score of an ideal reader on all sentences of the toy world, by enumeration of what it can see.

A reader's guess depends on the words that it sees only through P(state, label | these words). Different beginnings of a
sentence often leave the same probabilities (every word that all topics share leaves them as they were), so beginnings
with equal probabilities are merged, as the subset construction merges the states of an automaton. The score is the sum
over all views of the largest P(label, view). It has no sampling error; `best_reader` estimates it on a sample.
"""

from collections.abc import Callable, Iterator
from itertools import count, islice

import numpy as np
from jaxtyping import Bool, Float, Int

from bert_elmo_jax.toyworld.automaton import Automaton, sums
from bert_elmo_jax.toyworld.oracle import automaton
from bert_elmo_jax.toyworld.readers import LabelTask, View, find_label_ids, open_words
from bert_elmo_jax.toyworld.world import ToyWorld

# Numbers of (label, state) pairs and their probabilities, sorted by number: label · number of states + state.
Message = tuple[Int[np.ndarray, "_"], Float[np.ndarray, "_"]]
# The labels of words, given by their states and the numbers of their emissions.
FindLabels = Callable[[Int[np.ndarray, "N"], Int[np.ndarray, "N"]], Int[np.ndarray, "N"]]
MOST_MESSAGES = 200_000


class Messages:
    """Messages with their weights; equal ones are merged. Each message sums to 1."""

    def __init__(self) -> None:
        self._weights: dict[tuple[bytes, bytes], float] = {}
        self._messages: dict[tuple[bytes, bytes], Message] = {}

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[tuple[float, Message]]:
        return ((self._weights[key], message) for key, message in self._messages.items())

    def add(self, weight: float, message: Message) -> None:
        """Add a message with any sum; the sum becomes a part of the weight."""
        numbers, values = message
        total = float(values.sum())
        if weight * total < 1e-300:
            return
        values = values / total
        key = numbers.tobytes(), np.round(values, 12).tobytes()
        self._weights[key] = self._weights.get(key, 0.0) + weight * total
        self._messages.setdefault(key, (numbers, values))
        if len(self) > MOST_MESSAGES:
            raise ValueError(
                f"more than {MOST_MESSAGES:,} different views: take a smaller world or view, or best_reader on a sample"
            )


def exact_ceiling(world: ToyWorld, task: LabelTask, view: View) -> float:
    """Return the best possible accuracy of a reader with a view, on all words that can have several labels.

    >>> world = ToyWorld("en", topics=2, words=2)
    >>> [round(exact_ceiling(world, "senses", view), 3) for view in (View(0, 0), View(1, 1), View(None, None))]
    [0.512, 0.574, 0.951]
    """

    def label(states: Int[np.ndarray, "N"], emissions: Int[np.ndarray, "N"]) -> Int[np.ndarray, "N"]:
        return find_label_ids(world, task, states, emissions)

    scored = open_words(world, task)
    if not scored.any():
        raise ValueError(f"no word of this world has several labels of the task {task}: take more topics or words")
    visits = world.network.visits / world.sentences
    return sum_views(automaton(world, "sentence"), visits, label, scored, view, hidden=task == "words")


def sum_views(
    chain: Automaton,
    visits: Float[np.ndarray, "S"],
    label: FindLabels,
    scored: Bool[np.ndarray, "V"],
    view: View,
    *,
    hidden: bool = False,
) -> float:
    """Return the share of the scored words whose label is guessed rightly by the ideal reader with a view.

    `visits` are the expected visits of each state by a sequence. A `hidden` word is not seen, only its neighbours.
    """
    if view.left is None:
        beginnings = list(_read_on(chain, chain.start, 1.0))
    else:
        beginnings = list(islice(_read_on(chain, chain.start, 1.0), view.left))
        beginnings += islice(_read_on(chain, visits, 1.0), view.left, view.left + 1)
    views, expected = _label_words(chain, beginnings, label, scored, hidden)
    return _sum_best(chain, views, view.right) / expected


def _read_on(chain: Automaton, start: Float[np.ndarray, "S"], weight: float) -> Iterator[Messages]:
    """Yield the probabilities of the state of the next word, after 0, 1, 2, … words."""
    states = np.flatnonzero(start)
    expected = Messages()
    expected.add(weight, (states, start[states]))
    while len(expected):
        yield expected
        seen = _see_words(chain, expected)
        expected = Messages()
        for weight, message in seen:
            expected.add(weight, _move(chain, message))


def _see_words(chain: Automaton, expected: Messages) -> Messages:
    seen = Messages()
    for weight, message in expected:
        numbers, emissions, values = _emit(chain, message)
        words = chain.emission_words[emissions]
        order = np.argsort(words, kind="stable")
        borders = np.flatnonzero(np.diff(words[order])) + 1
        for part in np.split(order, borders):
            seen.add(weight, (numbers[part], values[part]))
    return seen


def _emit(
    chain: Automaton, message: Message
) -> tuple[Int[np.ndarray, "M"], Int[np.ndarray, "M"], Float[np.ndarray, "M"]]:
    """Return all words of a message: the number of the pair, the emission, and the probability."""
    numbers, values = message
    rows = chain.rows[numbers % len(chain.start)]
    first = chain.emission_offsets[rows]
    sizes = chain.emission_offsets[rows + 1] - first
    emissions = np.arange(sizes.sum()) + np.repeat(first - (np.cumsum(sizes) - sizes), sizes)
    return np.repeat(numbers, sizes), emissions, np.repeat(values, sizes) * chain.emission_weights[emissions]


def _move(chain: Automaton, message: Message) -> Message:
    """Return the probabilities of the next state; their sum is the probability that the sentence continues."""
    numbers, values = message
    labels, states = np.divmod(numbers, len(chain.start))
    first = chain.arc_offsets[states]
    sizes = chain.arc_offsets[states + 1] - first
    arcs = np.arange(sizes.sum()) + np.repeat(first - (np.cumsum(sizes) - sizes), sizes)
    targets = np.repeat(labels, sizes) * len(chain.start) + chain.arc_targets[arcs]
    return _merge(targets, np.repeat(values, sizes) * chain.arc_weights[arcs])


def _merge(numbers: Int[np.ndarray, "M"], values: Float[np.ndarray, "M"]) -> Message:
    merged, inverse = np.unique(numbers, return_inverse=True)
    totals = sums(inverse, values, len(merged))
    return merged[totals > 0], totals[totals > 0]


def _label_words(
    chain: Automaton, beginnings: list[Messages], label: FindLabels, scored: Bool[np.ndarray, "V"], hidden: bool
) -> tuple[Messages, float]:
    """Return the messages after the labelled word, with its label, and the expected number of such words."""
    views, total = Messages(), 0.0
    for expected in beginnings:
        for weight, message in expected:
            numbers, emissions, values = _emit(chain, message)
            words = chain.emission_words[emissions]
            chosen = np.flatnonzero(scored[words])
            total += weight * float(values[chosen].sum())
            pairs = label(numbers, emissions) * len(chain.start) + numbers  # until here, a number is a state
            order = chosen[np.argsort(words[chosen], kind="stable")]
            borders = np.flatnonzero(np.diff(words[order])) + 1
            for part in [order] if hidden else np.split(order, borders):
                if len(part):
                    views.add(weight, _merge(pairs[part], values[part]))
    return views, total


def _sum_best(chain: Automaton, views: Messages, right: int | None) -> float:
    """Return the sum of the largest probabilities of a label, after `right` more words or the end of the sentence."""

    def best(message: Message, weights: Float[np.ndarray, "S"]) -> float:
        labels, states = np.divmod(message[0], len(chain.start))
        return float(np.bincount(labels, message[1] * weights[states]).max())

    total = 0.0
    for seen in count():
        if seen == right:
            return total + sum(weight * best(message, np.ones_like(chain.end)) for weight, message in views)
        total += sum(weight * best(message, chain.end) for weight, message in views)
        expected = Messages()
        for weight, message in views:
            expected.add(weight, _move(chain, message))
        if not len(expected):
            return total
        views = _see_words(chain, expected)
    raise AssertionError("count() has no end")
