"""Tests of the conditional random field against an enumeration of all paths."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.tasks import TaggedSentence, find_tags
from bert_elmo_jax.data.tasks.labels import find_scheme, legal_transitions
from bert_elmo_jax.losses import crf

TAGS, LONGEST = (1, 3), 4

# All rows are padded to the longest, so that each function compiles once per number of tags.
log_partition, marginals, viterbi = (jax.jit(f) for f in (crf.log_partition, crf.marginals, crf.viterbi))
path_score, log_likelihood = jax.jit(crf.path_score), jax.jit(crf.log_likelihood)


def make(tags, rows=LONGEST + 1, seed=0, spread=2.0):
    draw = np.random.default_rng([seed, tags])
    scores = (draw.normal(size=(rows, LONGEST, tags)) * spread).astype(np.float32)
    transitions = (draw.normal(size=(tags + 1, tags + 1)) * spread).astype(np.float32)
    return scores, transitions


def paths(tags, length, legal=None):
    """Return all paths as tuples of tags."""
    for path in itertools.product(range(tags), repeat=length):
        steps = itertools.pairwise([tags, *path, tags]) if length else ()
        if legal is None or all(legal[a, b] for a, b in steps):
            yield path


def score(scores, transitions, path):
    """Compute the score of a path in float64, step by step."""
    tags = scores.shape[-1]
    if not path:
        return 0.0
    steps = sum(float(transitions[a, b]) for a, b in itertools.pairwise([tags, *path, tags]))
    return steps + sum(float(scores[t, tag]) for t, tag in enumerate(path))


def brute(scores, transitions, length, legal=None):
    """Return log Z, the marginals and the best score."""
    size, tags = scores.shape
    scored_paths = [(path, score(scores, transitions, path)) for path in paths(tags, length, legal)]
    values = np.array([value for _, value in scored_paths])
    z = values.max() + np.log(np.exp(values - values.max()).sum())
    shares = np.zeros((size, tags))
    for path, value in scored_paths:
        for t, tag in enumerate(path):
            shares[t, tag] += np.exp(value - z)
    return z, shares, values.max()


@pytest.mark.usefixtures("strict_dtypes")
@pytest.mark.parametrize("tags", TAGS)
def test_matches_brute_force(tags):
    """The rows of the batch have zero to four words."""
    scores, transitions = make(tags)
    lengths = np.arange(LONGEST + 1)
    expected = [brute(row, transitions, n) for row, n in zip(scores, lengths)]
    for row, n in zip(scores, lengths):
        row[n:] = np.nan  # padding must be ignored
    z = log_partition(scores, transitions, lengths)
    np.testing.assert_allclose(z, [e[0] for e in expected], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(marginals(scores, transitions, lengths), [e[1] for e in expected], rtol=1e-4, atol=1e-5)
    best, value = map(np.asarray, viterbi(scores, transitions, lengths))
    np.testing.assert_allclose(value, [e[2] for e in expected], rtol=1e-5, atol=1e-5)
    for row, path, n, one in zip(scores, best, lengths, expected):
        assert score(row, transitions, tuple(path[:n])) == pytest.approx(one[2], abs=1e-4)
        assert not path[n:].any()


@pytest.mark.parametrize("tags", TAGS)
def test_likelihoods_of_all_paths_sum_to_one(tags):
    row, transitions = make(tags, rows=1)
    every = [path for n in range(1, LONGEST + 1) for path in paths(tags, n)]
    lengths = np.array([len(path) for path in every])
    padded = np.array([(*path, *[-100] * (LONGEST - len(path))) for path in every], np.int32)
    rows = np.repeat(row, len(every), axis=0)
    shares = np.exp(log_likelihood(rows, transitions, lengths, padded))
    for n in range(1, LONGEST + 1):
        assert shares[lengths == n].sum() == pytest.approx(1.0, abs=1e-5)
    values = [score(row[0], transitions, path) for path in every]
    np.testing.assert_allclose(path_score(rows, transitions, lengths, padded), values, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("tags", TAGS)
def test_forbidden_transitions(tags):
    scores, transitions = make(tags, seed=1)
    lengths = np.arange(LONGEST + 1)
    draw = np.random.default_rng(tags)
    none = cases = 0
    for _ in range(12):
        legal = draw.random((tags + 1, tags + 1)) < 0.7
        best, value = map(np.asarray, viterbi(scores, transitions, lengths, legal))
        allowed = crf.forbid(transitions, legal)
        zs, shares = log_partition(scores, allowed, lengths), marginals(scores, allowed, lengths)
        for n in lengths:
            left = list(paths(tags, n, legal))
            if not left:
                assert value[n] == -np.inf
                none += 1
                continue
            z, expected, most = brute(scores[n], transitions, n, legal)
            assert tuple(best[n, :n]) in left
            assert value[n] == pytest.approx(most, abs=1e-4)
            assert float(zs[n]) == pytest.approx(z, rel=1e-5, abs=1e-5)
            np.testing.assert_allclose(shares[n], expected, atol=1e-5)
            cases += 1
    assert cases and (none or tags > 1)


def test_gradients():
    tags = 3
    scores, transitions = make(tags)
    lengths = np.arange(LONGEST + 1)
    target = np.random.default_rng(0).integers(0, tags, (len(scores), LONGEST)).astype(np.int32)
    # For each row, the counts of each score and transition on its own path minus their expected counts.
    most = 1 + tags**LONGEST
    words, steps = np.zeros((len(scores), most, LONGEST, tags)), np.zeros((len(scores), most, tags + 1, tags + 1))
    counts = []
    for row, (tag, n) in enumerate(zip(target, lengths)):
        every = [tuple(tag[:n].tolist()), *paths(tags, n)]
        counts.append(len(every))
        for k, path in enumerate(every if n else []):
            words[row, k, range(n), path] = 1
            np.add.at(steps[row, k], tuple(zip(*itertools.pairwise([tags, *path, tags]))), 1)
    real_paths = np.arange(most) < np.array(counts)[:, None]

    def written_out(lib, scores, transitions):
        values = lib.einsum("bptk,btk->bp", words, scores) + lib.einsum("bpij,ij->bp", steps, transitions)
        peak = lib.where(real_paths, values, -lib.inf)[:, 1:].max(axis=1, keepdims=True)
        shares = lib.where(real_paths[:, 1:], lib.exp(values[:, 1:] - peak), 0.0)
        return (lib.log(shares.sum(axis=1)) + peak[:, 0] - values[:, 0]).sum()

    def ours(scores, transitions):
        return crf.crf_loss(scores, transitions, lengths, target)[0]

    expected = float(written_out(np, scores, transitions))
    assert float(jax.jit(ours)(scores, transitions)) == pytest.approx(expected, rel=1e-5)
    gradients = jax.jit(jax.grad(ours, argnums=(0, 1)))(scores, transitions)
    expected = jax.jit(jax.grad(lambda *x: written_out(jnp, *x), argnums=(0, 1)))(scores, transitions)
    for mine, right in zip(gradients, expected):
        np.testing.assert_allclose(mine, right, atol=3e-5)
    draw = np.random.default_rng(5)
    for _ in range(5):  # finite differences in float64
        along = draw.normal(size=scores.shape), draw.normal(size=transitions.shape)
        ends = [written_out(np, scores + step * along[0], transitions + step * along[1]) for step in (1e-5, -1e-5)]
        slope = sum(float((np.asarray(g, np.float64) * d).sum()) for g, d in zip(gradients, along))
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4, abs=1e-4)


def test_gradients_are_finite():
    scores, transitions = make(3, rows=3, spread=300.0)
    scores[2] = np.nan
    lengths = np.array([4, 2, 0])
    legal = np.ones((4, 4), bool)
    legal[0, 1] = legal[3, 2] = False
    target = np.ones((3, 4), np.int32)
    gradient = jax.jit(jax.grad(lambda s, t: crf.crf_loss(s, t, lengths, target)[0], argnums=(0, 1)))
    for transition in (transitions, crf.forbid(transitions, legal)):
        gradients = gradient(scores, transition)
        assert all(np.isfinite(part).all() for part in gradients)
        assert not np.asarray(gradients[0])[2].any()


def test_rows_without_words_and_invalid_tags():
    scores, transitions = np.zeros((2, 0, 3), np.float32), np.ones((4, 4), np.float32)
    lengths = np.zeros(2, np.int32)
    assert log_partition(scores, transitions, lengths).tolist() == [0.0, 0.0]
    path, value = viterbi(scores, transitions, lengths)
    assert path.shape == (2, 0)
    assert value.tolist() == [0.0, 0.0]
    assert marginals(scores, transitions, lengths).shape == (2, 0, 3)
    total, weight = jax.jit(crf.crf_loss)(scores, transitions, lengths, np.zeros((2, 0), np.int32))
    assert (float(total), float(weight)) == (0.0, 0.0)
    scores, transitions = make(3, rows=1)
    for tag in (-1, 3):
        tags = np.array([[0, tag, 0, 0]], np.int32)
        assert np.isnan(log_likelihood(scores, transitions, np.array([2]), tags)[0])


# Schemes.


def sentence(*tags):
    return TaggedSentence(("강",) * len(tags), tags, "a.conll", tuple(range(1, len(tags) + 1)), 0)


ENTITIES = {
    "IOB2": sentence("B-LOC", "I-LOC", "B-PER", "O"),
    "IOB1": sentence("I-LOC", "I-LOC", "B-LOC", "I-PER", "O"),
    "BIOES": sentence("B-LOC", "I-LOC", "E-LOC", "S-PER", "O"),
}


@pytest.mark.parametrize("scheme", ENTITIES)
def test_legal_transitions_match_the_file_reader(scheme):
    """A path is legal if and only if a file with this path and a sentence of the scheme has that scheme."""
    tags = find_tags([ENTITIES[scheme]], entities=True)
    legal = legal_transitions(tags, scheme)
    for length in (1, 2, 3):
        ours = {tuple(tags[n] for n in path) for path in paths(len(tags), length, legal)}
        for path in itertools.product(tags, repeat=length):
            try:
                accepted = find_scheme([ENTITIES[scheme], sentence(*path)]) == scheme
            except ValueError:
                accepted = False
            assert (path in ours) == accepted, path


@pytest.mark.parametrize("scheme", ENTITIES)
@given(data=st.data())
def test_viterbi_returns_only_legal_paths(scheme, data):
    tags = find_tags([ENTITIES[scheme]], entities=True)
    legal = legal_transitions(tags, scheme)
    numbers = st.floats(-(2.0**100), 2.0**100, width=32) | st.floats(-10, 10, width=32) | st.just(0.0)
    size = LONGEST
    rows = data.draw(st.lists(st.lists(numbers, min_size=len(tags), max_size=len(tags)), min_size=size, max_size=size))
    length = data.draw(st.integers(0, size))
    transitions = np.random.default_rng(length).normal(size=(len(tags) + 1,) * 2).astype(np.float32)
    path, value = viterbi(np.array([rows], np.float32), transitions, np.array([length]), legal)
    assert np.isfinite(value[0])
    steps = [len(tags), *np.asarray(path)[0, :length].tolist(), len(tags)] if length else []
    assert all(legal[a, b] for a, b in itertools.pairwise(steps))


def test_single_tags_without_a_scheme_and_paths_by_hand():
    assert legal_transitions(["O"], "IOB2").all()
    assert legal_transitions(["NOUN", "I-am-no-entity"], None).all()
    path, _ = viterbi(np.zeros((1, 3, 1), np.float32), np.zeros((2, 2), np.float32), np.array([3]))
    assert path.tolist() == [[0, 0, 0]]
    transitions = np.array([[0, 5, 0], [0, 0, 100], [0, 0, 0]], np.float32)  # 0 before 1, and 1 at the end
    ones = np.ones((1, 2, 2), np.float32)
    assert path_score(ones, transitions, np.array([2]), np.array([[0, 1]], np.int32)).tolist() == [107.0]
    legal = np.ones((3, 3), bool)
    legal[2, 0] = False  # nothing begins with tag 0
    allowed = crf.forbid(np.zeros((3, 3), np.float32), legal)
    assert marginals(np.zeros((1, 1, 2), np.float32), allowed, np.array([1])).tolist() == [[[0.0, 1.0]]]
