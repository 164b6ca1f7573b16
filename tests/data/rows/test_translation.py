"""Rows of pairs: contents of the arrays, every pair once, packing, and omitted pairs."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus, toy_pairs
from bert_elmo_jax.data.pipeline.batches import eval_batches, train_batches
from bert_elmo_jax.data.pipeline.windows import Text
from bert_elmo_jax.data.rows.translation import PairExamples, pair_batch, plan_pair_rows
from bert_elmo_jax.text import WordVocabulary, load_tokenizer

START, END, PAD = 91, 92, 93
BEFORE, AFTER = (94, 95), (96,)
KEY = (7, 0)


def text_of(*pairs):
    """Return a window of documents, given as tuples of sentences."""
    sentences = [sentence for pair in pairs for sentence in pair]
    tokens = np.array([token for sentence in sentences for token in sentence], np.uint16)
    starts = np.cumsum([0, *map(len, sentences)])
    return Text(tokens, starts.astype(np.int64), np.cumsum([0, *map(len, pairs)]).astype(np.int64))


def examples(source=12, target=14, **options):
    return PairExamples(source, target, START, END, PAD, **options)


def plan(text, pair_examples, key=KEY):
    return plan_pair_rows(text, pair_examples, key, frame=(BEFORE, AFTER))


def pairs_in(batch, before=BEFORE, after=AFTER):
    """Return the pairs of a batch, checking the arrays against each other."""
    token_pairs = []
    for row in range(len(batch["target_in"])):
        sides = [batch["source_segments"][row], batch["target_segments"][row]]
        assert set(sides[0].tolist()) - {0} == set(sides[1].tolist()) - {0}
        for number in range(1, max(side.max() for side in sides) + 1):
            source, target = (side == number for side in sides)
            for where, name in ((source, "source"), (target, "target")):
                assert np.diff(np.flatnonzero(where)).tolist() == [1] * (where.sum() - 1)
                assert batch[f"{name}_positions"][row, where].tolist() == list(range(where.sum()))
            first = batch["source_tokens"][row, source].tolist()
            assert (*first[: len(before)], *first[len(first) - len(after) :]) == (*before, *after)
            start, *read = batch["target_in"][row, target].tolist()
            *second, last = batch["target_out"][row, target].tolist()
            assert (start, last) == (START, END)
            assert read == second
            token_pairs.append((tuple(first[len(before) : len(first) - len(after)]), tuple(second)))
        for name in ("source_tokens", "target_in", "target_out"):
            empty = sides[name.startswith("target")] == 0
            assert (batch[name][row, empty] == PAD).all()
    return token_pairs


def test_one_pair_by_hand():
    rows = plan(text_of(([5, 6], [7, 8, 9])), examples(7, 6))
    batch = pair_batch(rows, 0, 1, examples(7, 6))
    assert {name: array.tolist() for name, array in batch.items()} == {
        "source_tokens": [[94, 95, 5, 6, 96, PAD, PAD]],
        "source_positions": [[0, 1, 2, 3, 4, 0, 0]],
        "source_segments": [[1, 1, 1, 1, 1, 0, 0]],
        "target_in": [[START, 7, 8, 9, PAD, PAD]],
        "target_out": [[7, 8, 9, END, PAD, PAD]],
        "target_positions": [[0, 1, 2, 3, 0, 0]],
        "target_segments": [[1, 1, 1, 1, 0, 0]],
    }


def draw_pairs(seed, count=40, longest=9):
    rng = np.random.default_rng(seed)
    sides = rng.integers(1, longest, (count, 2))
    return [tuple(rng.integers(0, 50, length).tolist() for length in both) for both in sides]


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(12, 30), st.integers(10, 30), st.booleans())
def test_every_pair_is_in_one_row(seed, sequences, source, target, reverse):
    drawn = draw_pairs(seed)
    pair_examples = examples(source, target, sequences=sequences, reverse=reverse)
    rows = plan(text_of(*drawn), pair_examples)
    token_pairs = pairs_in(pair_batch(rows, 0, len(rows), pair_examples))
    step = -1 if reverse else 1
    assert Counter(token_pairs) == Counter(tuple(map(tuple, pair[::step])) for pair in drawn)
    assert max(np.diff(rows.first)) <= sequences
    assert len(rows) == len(drawn) if sequences == 1 else len(rows) <= len(drawn)
    # Some of the rows are the same as when all rows are made.
    part = pair_batch(rows, 1, 3, pair_examples)
    full_batch = pair_batch(rows, 0, len(rows), pair_examples)
    assert all(np.array_equal(part[name], full_batch[name][1:3]) for name in full_batch)


def test_packing_shortens_an_epoch_and_keys_change_the_order():
    assert len(plan(text_of(*draw_pairs(0, count=200)), examples(40, 40, sequences=8))) < 200 / 3
    drawn = text_of(*draw_pairs(0))
    first, again, other = (plan(drawn, examples(), key).members for key in (KEY, KEY, (8, 0)))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_pairs_that_do_not_fit_are_left_out():
    text = text_of(([1] * 4, [2]), ([1], [2] * 4), ([3], [4]), ([5],), ([1] * 3, [2] * 3))
    rows = plan(text, examples(6, 4))
    token_pairs = pairs_in(pair_batch(rows, 0, len(rows), examples(6, 4)))
    assert Counter(token_pairs) == Counter([((3,), (4,)), ((1, 1, 1), (2, 2, 2))])


def test_an_epoch_without_a_pair_that_fits_is_refused(pairs):
    batches = train_batches(pairs, examples(3, 3), 2, window=200)  # several windows
    message = r"none of \d+ documents in its part 'train' is a pair that fits into 3 positions.*raise config\.length or"
    with pytest.raises(ValueError, match=message):
        next(batches)
    assert list(eval_batches(pairs, examples(3, 3), 2)) == []


def test_words_outside_the_vocabulary_are_unknown(tmp_path):
    folder = toy_pairs(tmp_path / "words", documents=60, tokenizer="words", vocab_size=40, heldout=0.0)
    store, vocabulary = open_store(folder), WordVocabulary.load(folder / "tokenizer")
    pair_examples = PairExamples(40, 40, vocabulary.bos_id, vocabulary.eos_id, vocabulary.eos_id)
    batch = next(train_batches(folder, pair_examples, len(store)))
    ids = np.concatenate([batch["source_tokens"].ravel(), batch["target_out"].ravel()])  # a source has no frame
    inside = ids[ids != vocabulary.eos_id]
    assert inside.max() < vocabulary.vocab_size == 40
    words = np.concatenate([sentence for document in store for sentence in document])
    assert (words >= 40).any()
    assert (inside == vocabulary.unk_id).sum() == ((words >= 40) | (words == vocabulary.unk_id)).sum()


@settings(max_examples=5)
@given(st.integers(1, 30), st.sampled_from([1, 4]))
def test_evaluation_reads_the_held_out_part_once(pairs, batch_size, sequences):
    frame = load_tokenizer(pairs / "tokenizer").frame
    held_out = [tuple(tuple(side.tolist()) for side in document) for document in open_store(pairs, "heldout")]
    pair_examples = examples(60, 60, sequences=sequences)
    batches = list(eval_batches(pairs, pair_examples, batch_size))
    assert {len(batch["target_in"]) for batch in batches} == {batch_size}
    assert Counter(pair for batch in batches for pair in pairs_in(batch, frame.before, frame.after)) == Counter(
        held_out
    )


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    return toy_pairs(tmp_path_factory.mktemp("pairs") / "toy", documents=100, heldout=0.3)


def test_another_corpus_is_refused(tmp_path, pairs):
    texts = toy_corpus(tmp_path / "texts", documents=20)
    with pytest.raises(ValueError, match=r"holds texts without translations; prepare pairs with prepare_data --source"):
        train_batches(texts, examples(), 2)
    three = text_of(([1], [2]), ([1], [2], [3]), ([1],), ([1],))  # as many sentences as pairs would have
    with pytest.raises(ValueError, match="a document of this corpus has 3 sentences, but a pair has two"):
        plan(three, examples())


def test_wrong_settings(tmp_path):
    for name in ("source", "target"):
        with pytest.raises(ValueError, match=f"{name}_length=1 has no room"):
            examples(**{name: 1})
    for language in ("en", "en,en", "ko,de"):
        with pytest.raises(ValueError, match="the toy world's pairs are en,ko or ko,en"):
            toy_pairs(tmp_path / "x", language=language)


def test_the_sides_of_the_toy_world(tmp_path):
    en_ko, ko_en = (toy_pairs(tmp_path / name, language=name, documents=10, heldout=0.0) for name in ("en,ko", "ko,en"))
    lengths = [[[len(side) for side in pair] for pair in open_store(folder)] for folder in (en_ko, ko_en)]
    assert lengths[0] == [pair[::-1] for pair in lengths[1]]
