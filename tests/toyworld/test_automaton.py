"""Forward–backward against enumeration of all paths of small automata."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.toyworld.automaton import MASKED, Automaton, infer, offsets, reverse, sums

VOCABULARY = 3


def chain(start, arcs, end, emissions, rows=None, vocabulary=None):
    """Build an automaton from plain lists; `rows` gives each state's emission row, by default its own."""
    ordered = sorted(arcs)
    sources = np.array([source for source, _, _ in ordered], dtype=np.int64)
    sorted_rows = [sorted(row.items()) for row in emissions]
    words = np.array([word for row in sorted_rows for word, _ in row], dtype=np.int64)
    return Automaton(
        start=np.array(start, dtype=np.float64),
        arc_offsets=offsets(np.bincount(sources, minlength=len(start))),
        arc_targets=np.array([target for _, target, _ in ordered], dtype=np.int64),
        arc_weights=np.array([weight for _, _, weight in ordered], dtype=np.float64),
        end=np.array(end, dtype=np.float64),
        rows=np.arange(len(start)) if rows is None else np.array(rows, dtype=np.int64),
        emission_offsets=offsets(np.array([len(row) for row in sorted_rows])),
        emission_words=words,
        emission_weights=np.array([weight for row in sorted_rows for _, weight in row], dtype=np.float64),
        vocabulary=int(np.max(words)) + 1 if vocabulary is None else vocabulary,
    )


@st.composite
def automata(draw):
    """Draw a chain of up to three states over three words, with some arcs and emissions absent, as plain lists."""
    size = draw(st.integers(1, 3))
    weights = st.lists(st.integers(0, 4), min_size=size, max_size=size).filter(any)

    def share(numbers):
        return [number / sum(numbers) for number in numbers]

    start = share(draw(weights))
    arcs, end = [], []
    for source in range(size):
        going = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
        stop = draw(st.integers(1, 4))
        end.append(stop / (stop + sum(going)))
        arcs += [(source, target, w / (stop + sum(going))) for target, w in enumerate(going) if w]
    emissions = []
    for _ in range(size):
        row = share(draw(st.lists(st.integers(0, 3), min_size=VOCABULARY, max_size=VOCABULARY).filter(any)))
        emissions.append({word: p for word, p in enumerate(row) if p})
    return start, arcs, end, emissions


def paths(parts, words):
    """Yield (path, probability) for every hidden path, with masked words summed out."""
    start, arcs, end, emissions = parts
    move = {(source, target): weight for source, target, weight in arcs}
    for path in itertools.product(range(len(start)), repeat=len(words)):
        p = start[path[0]] * end[path[-1]]
        for pair in itertools.pairwise(path):
            p *= move.get(pair, 0.0)
        for state, word in zip(path, words):
            p *= 1.0 if word == MASKED else emissions[state].get(word, 0.0)
        yield path, p


sequences = st.lists(st.lists(st.integers(MASKED, VOCABULARY - 1), min_size=1, max_size=4), min_size=1, max_size=4)


@given(automata(), sequences)
def test_likelihoods_and_posteriors_equal_enumeration(parts, batch):
    lattice = infer(chain(*parts, vocabulary=VOCABULARY), batch)
    for row, words in enumerate(batch):
        all_paths = list(paths(parts, words))
        total = sum(p for _, p in all_paths)
        np.testing.assert_allclose(np.exp(lattice.log_likelihood[row]), total, atol=1e-12)
        for position in range(len(words)):
            for state in range(len(parts[0])):
                entries = (lattice.sequences == row) & (lattice.positions == position) & (lattice.states == state)
                expected = sum(p for path, p in all_paths if path[position] == state) / total if total else 0.0
                np.testing.assert_allclose(lattice.posteriors[entries].sum(), expected, atol=1e-9)


@given(automata(), st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=4))
def test_each_word_given_its_left_context(parts, words):
    """The probability of a prefix is the total probability of all sequences that begin with it."""
    lattice = infer(chain(*parts, vocabulary=VOCABULARY), [words])
    start, arcs, _, emissions = parts
    without_end = (start, arcs, [1.0] * len(start), emissions)
    for length in range(1, len(words) + 1):
        expected = sum(p for _, p in paths(without_end, words[:length]))
        np.testing.assert_allclose(np.exp(lattice.forward[0, :length].sum()), expected, atol=1e-12)


@given(automata(), st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=4))
def test_reversed_automaton_gives_the_same_likelihoods_backward(parts, words):
    start, arcs, _, _ = parts
    flow = np.eye(len(start))
    for source, target, weight in arcs:
        flow[target, source] -= weight
    visits = np.linalg.solve(flow, np.array(start))
    # States that are never visited have no reverse.
    if (visits < 1e-9).any():
        return
    forward = chain(*parts, vocabulary=VOCABULARY)
    backward = reverse(forward, visits)
    np.testing.assert_allclose(
        np.exp(infer(backward, [words[::-1]]).log_likelihood),
        np.exp(infer(forward, [words]).log_likelihood),
        atol=1e-12,
    )
    # The reversed automaton is a proper chain: outgoing probabilities sum to one.
    leaving = np.bincount(
        np.repeat(np.arange(len(start)), np.diff(backward.arc_offsets)), backward.arc_weights, minlength=len(start)
    )
    np.testing.assert_allclose(leaving + backward.end, 1.0, atol=1e-9)


COIN = chain(start=[1.0], arcs=[(0, 0, 0.5)], end=[0.5], emissions=[{0: 0.25, 1: 0.75}])
LINE = chain(start=[1.0, 0.0], arcs=[(0, 1, 1.0)], end=[0.0, 1.0], emissions=[{0: 1.0}, {1: 1.0}])


def test_batches_equal_single_sequences():
    coin = chain([0.5, 0.5], [(0, 1, 0.5), (1, 0, 0.25)], [0.5, 0.75], [{0: 0.5, 1: 0.5}, {1: 1.0}], vocabulary=2)
    batch = [[1], [0, 1, 0], [1, MASKED], [0, 0]]
    together = infer(coin, batch)
    for row, words in enumerate(batch):
        np.testing.assert_array_equal(together.log_likelihood[row], infer(coin, [words]).log_likelihood[0])


def test_small_automata_by_hand():
    # Minus infinity begins at the first impossible word.
    lattice = infer(LINE, [[0, 0], [0, 1], [0]])
    assert np.isneginf(lattice.forward[0]).tolist() == [False, True]
    assert lattice.log_likelihood.tolist() == [-np.inf, 0.0, -np.inf]
    assert (lattice.posteriors[lattice.sequences != 1] == 0).all()
    assert np.exp(infer(COIN, [[0, MASKED, 1]]).forward).round(3).tolist() == [[0.25, 0.5, 0.375]]
    assert (COIN.rows.tolist(), LINE.arc_offsets.tolist()) == ([0], [0, 1, 1])
    assert reverse(LINE, np.ones(2)).start.tolist() == [0, 1]
    assert sums(np.array([2, 0, 2]), np.array([0.5, 1.0, 0.25]), 3).tolist() == [1, 0, 0.75]
