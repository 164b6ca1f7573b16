import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.pipeline.windows import Text
from bert_elmo_jax.data.rows.stream import LanguageModelExamples, Marks, draw_sizes, plan_sentences, plan_streams

BOS, EOS, UNK = 0, 1, 2
MARKS = Marks(BOS, EOS, UNK, 10**6)
documents_of = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=6), min_size=1, max_size=8)


def text_of(sizes) -> Text:
    """Return a text whose words are all different."""
    cuts = np.cumsum([0, *itertools.chain(*sizes)])
    return Text((np.arange(cuts[-1]) + 3).astype(np.uint32), cuts, np.cumsum([0, *map(len, sizes)]))


def sentences_of(text):
    return [text.tokens[a:b].tolist() for a, b in itertools.pairwise(text.sentences.tolist())]


def read(plan, rows):
    """Return each row's (input, target) pairs over all steps and directions, and the lengths of the steps."""
    forward, backward = [[] for _ in range(rows)], [[] for _ in range(rows)]
    sizes = []
    for step in range(len(plan)):
        batch = plan.take(step)
        sizes.append(batch.lengths.tolist())
        for row, size in enumerate(batch.lengths.tolist()):
            forward[row] += zip(batch.forward[row, :size].tolist(), batch.forward_targets[row, :size].tolist())
            backward[row] += zip(batch.backward[row, :size].tolist(), batch.backward_targets[row, :size].tolist())
            for part in batch[:4]:
                assert not part[row, size:].any()
    return forward, backward, np.array(sizes)


def literal(sentences, *, backwards=False):
    """Return the (input, target) pairs of consecutive sentences, as in the original's streams."""
    pairs = []
    for sentence in sentences:
        marked = [EOS, *sentence[::-1], BOS] if backwards else [BOS, *sentence, EOS]
        pairs += itertools.pairwise(marked)
    return pairs


@given(documents_of, st.integers(1, 7), st.integers(1, 5), st.integers(0, 99))
def test_streams_read_every_sentence_once_in_each_direction(sizes, length, rows, seed):
    text = text_of(sizes)
    plan = plan_streams(text, length, rows, MARKS, (seed,))
    forward, backward, steps = read(plan, rows)
    where = {sentence[0]: sentence for sentence in sentences_of(text)}
    sentences = []
    for row in range(rows):
        order = [where[target] for word, target in forward[row] if word == BOS]
        assert forward[row] == literal(order)  # whole sentences in order
        assert backward[row] == literal(order[::-1], backwards=True)  # the same text from its end
        sentences += order
    assert sorted(sentences) == sorted(sentences_of(text))
    # All steps are full, except the last of each row.
    assert (np.diff(steps, axis=0) <= 0).all()
    assert ((steps == length) | (np.concatenate([steps[1:], np.zeros((1, rows), int)]) == 0)).all()
    assert steps.any(axis=1).all()


@given(documents_of, st.integers(1, 30), st.integers(1, 5), st.integers(1, 4), st.integers(0, 99))
def test_random_numbers_of_steps_read_the_same_words(sizes, length, rows, spread, seed):
    text = text_of(sizes)
    forward, backward, steps = read(plan_streams(text, length, rows, MARKS, (seed,), spread), rows)
    plain = read(plan_streams(text, length, rows, MARKS, (seed,)), rows)
    assert (forward, backward) == plain[:2]
    assert steps.any(axis=1).all() and steps.max() <= length + 2 * spread


def test_random_numbers_of_steps_are_those_of_the_paper():
    sizes = draw_sizes(20_000, 70, 5, np.random.default_rng(0))
    assert sizes.min() >= 5 and sizes.max() == 80
    half = sizes < 52
    assert half.mean() == pytest.approx(0.05, abs=0.01)
    assert sizes[~half].mean() == pytest.approx(70, abs=0.5) and sizes[half].mean() == pytest.approx(35, abs=0.8)
    assert sizes[half].std() == pytest.approx(5, abs=0.5)


def test_rows_are_nearly_equal_and_documents_are_shuffled_whole():
    _, _, steps = read(plan_streams(text_of([[7] * 30] * 50), 10, 16, MARKS, (0,)), 16)
    assert np.ptp(steps.sum(axis=0)) <= 8
    plan = plan_streams(text_of([[2, 2, 2]] * 200), 50, 1, MARKS, (0,))
    words = plan.words[plan.words > EOS] - 3
    documents = words[::6] // 6
    assert (words.reshape(200, 6) == words[::6, None] + np.arange(6)).all()
    assert abs(np.corrcoef(documents, np.arange(200))[0, 1]) < 0.35
    assert sorted(documents) == list(range(200))


def test_steps_can_be_read_in_any_order_and_only_the_first_is_fresh():
    first, second = (plan_streams(text_of([[4, 5, 6]] * 20), 6, 3, MARKS, (5,)) for _ in range(2))
    inorder = [first.take(step) for step in range(len(first))]
    assert [batch.fresh for batch in inorder] == [True] + [False] * (len(inorder) - 1)
    for step in np.random.default_rng(0).permutation(len(inorder)).tolist():
        assert all(np.array_equal(a, b) for a, b in zip(inorder[step], second.take(step)))


@given(documents_of, st.integers(3, 40), st.integers(1, 5), st.integers(0, 99))
def test_sentence_batches_read_every_sentence_once(sizes, length, rows, seed):
    text = text_of(sizes)
    examples = LanguageModelExamples("sentences", length)
    plan = plan_sentences(text, examples.buckets, rows, MARKS, (seed,))
    forward, backward, empty = Counter(), Counter(), 0
    for step in range(len(plan)):
        batch = plan.take(step)
        assert batch.fresh
        assert batch.forward.shape[1] in examples.buckets
        assert (batch.lengths <= batch.forward.shape[1]).all()
        empty += (batch.lengths == 0).any()
        for row, size in enumerate(batch.lengths.tolist()):
            ahead = list(zip(batch.forward[row, :size].tolist(), batch.forward_targets[row, :size].tolist()))
            back = list(zip(batch.backward[row, :size].tolist(), batch.backward_targets[row, :size].tolist()))
            forward.update(ahead)
            backward.update(back)
            # The inputs of one direction are the targets of the other.
            assert [target for _, target in ahead][::-1] == [word for word, _ in back]
            assert [word for word, _ in ahead][::-1] == [target for _, target in back]
    assert empty <= 1
    assert forward == Counter(literal(sentences_of(text)))
    assert backward == Counter(literal(sentences_of(text), backwards=True))


def test_short_sentences_come_in_short_batches():
    text = text_of([[3] * 100, [25] * 100, [12] * 40])
    examples = LanguageModelExamples("sentences", 32)
    assert examples.buckets == (8, 16, 32)
    plan = plan_sentences(text, examples.buckets, 10, MARKS, (0,))
    assert Counter(plan.lengths.tolist()) == {8: 10, 16: 4, 32: 10}
    assert plan.lengths.tolist() != sorted(plan.lengths.tolist())


def test_unknown_choices_raise(as_users_run):
    for options, message in (
        ({"reading": "stream"}, "reading 'stream' is not known; it is streams or sentences"),
        ({"input": "bytes"}, "input 'bytes' is not known; it is characters or words"),
        ({"reading": "sentences", "spread": 3}, "spread=3 is for streams; sentences have lengths of their own"),
    ):
        with pytest.raises(ValueError, match=message):
            LanguageModelExamples(**options)
