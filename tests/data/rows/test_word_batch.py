import numpy as np
import pytest

from bert_elmo_jax.data.corpora.store import Forms
from bert_elmo_jax.data.pipeline.windows import Text
from bert_elmo_jax.data.rows.stream import LanguageModelExamples, Marks, plan_sentences, plan_streams
from bert_elmo_jax.data.rows.word_batch import batch_of, form_characters
from bert_elmo_jax.text import boundary_characters, character_table

VOCABULARY = ["<S>", "</S>", "<UNK>", "배를", "the", "은행", "ship"]
OUTSIDE = ["맛있는", "<S>", "x" * 60, "강물이흐르는소리를들으며", "a", "riverbank", "눈", "fourteenletter"]
MARKS = Marks(0, 1, 2, len(VOCABULARY))


def forms_of(words) -> Forms:
    encoded = [word.encode() for word in words]
    return Forms(np.frombuffer(b"".join(encoded), np.uint8), np.cumsum([0, *map(len, encoded)]))


def text_of(words: int, seed: int) -> Text:
    """Return sentences of random words without marks."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, 60)
    cuts = np.concatenate([[0], np.cumsum(sizes)])
    return Text(rng.integers(3, words, cuts[-1]).astype(np.uint32), cuts, np.arange(0, 61, 5))


FORMS = [forms_of([*VOCABULARY, *OUTSIDE]), forms_of([*VOCABULARY, "another", "은행나무"])]


def steps_of(rows=(4,), length=6, seed=0):
    plans = [plan_streams(text_of(len(form), seed), length, count, MARKS, (seed,)) for form, count in zip(FORMS, rows)]
    return [plan.take(1) for plan in plans]


def make(parts, examples, *, shards=1, process=0, processes=1):
    forms = FORMS[: len(parts)]
    return batch_of(parts, forms, examples, MARKS, shards=shards, process=process, processes=processes)


@pytest.mark.parametrize("rows", [(4,), (3, 1)])
@pytest.mark.parametrize("shards", [1, 2, 4])
def test_indices_point_to_the_words_in_the_table_of_their_shard(rows, shards):
    parts = steps_of(rows)
    batch = make(parts, LanguageModelExamples(smallest_table=2), shards=shards)
    characters = batch["characters"]
    assert characters.shape[0] == shards
    assert characters.shape[1] & (characters.shape[1] - 1) == 0  # doubled as often as necessary
    row = 0
    for part, words in zip(parts, ([*VOCABULARY, *OUTSIDE], [*VOCABULARY, "another", "은행나무"])):
        expected = np.concatenate([boundary_characters(50), character_table(words[2:], 50)])
        for local, length in enumerate(part.lengths.tolist()):
            for name, ids in (("words_forward", part.forward[local]), ("words_backward", part.backward[local])):
                word_characters = characters[row * shards // sum(rows), batch[name][row, :length]]
                assert (word_characters == expected[ids[:length]]).all()
            row += 1


def test_table_has_each_word_once_and_zeros_after_them():
    parts = steps_of()
    batch = make(parts, LanguageModelExamples(smallest_table=64))
    distinct = {*parts[0].forward.ravel().tolist(), *parts[0].backward.ravel().tolist()}
    table = batch["characters"][0]
    assert table.shape == (64, 50)
    assert len({tuple(row) for row in table[: len(distinct)].tolist()}) == len(distinct)
    assert not table[len(distinct) :].any()


def test_targets_outside_the_vocabulary_are_unknown_and_inputs_keep_their_letters():
    (part,) = steps_of()
    batch = make([part], LanguageModelExamples())
    outside = part.forward_targets >= MARKS.size
    assert outside.any()
    assert (batch["forward_targets"][outside] == 2).all()
    inside = ~outside & (np.arange(6) < part.lengths[:, None])
    assert (batch["forward_targets"][inside] == part.forward_targets[inside]).all()
    assert batch["forward_weights"].sum() == part.lengths.sum() == batch["backward_weights"].sum()
    words = make([part], LanguageModelExamples(input="words"))
    assert "characters" not in words
    assert (words["words_forward"][part.forward >= MARKS.size] == 2).all()
    assert (words["words_forward"][part.forward < MARKS.size] == part.forward[part.forward < MARKS.size]).all()
    assert {array.dtype.name for array in batch.values()} == {"int32", "float32", "bool"}


@pytest.mark.parametrize("kind", ["characters", "words"])
def test_processes_get_the_parts_of_one_batch(kind):
    parts = steps_of((6, 2))
    examples = LanguageModelExamples(input=kind, smallest_table=2, widest_filter=3)
    full_batch = make(parts, examples, shards=4)
    pieces = [make(parts, examples, shards=4, process=process, processes=2) for process in range(2)]
    for name, array in full_batch.items():
        assert (np.concatenate([piece[name] for piece in pieces]) == array).all(), name


def test_rows_of_another_corpus_can_be_shorter():
    texts = [plan_sentences(text_of(len(f), 1), (4, 8), 2, MARKS, (0,)) for f in FORMS]
    parts = [next(t for n in range(len(p)) if (t := p.take(n)).forward.shape[1] == w) for p, w in zip(texts, (4, 8))]
    batch = make(parts, LanguageModelExamples("sentences", 8))
    assert batch["words_forward"].shape == (4, 8)
    assert batch["lengths"].tolist() == [*parts[0].lengths, *parts[1].lengths]
    assert not batch["forward_weights"][:2, 4:].any()
    assert batch["fresh"].all()


def test_characters_match_the_strings():
    words = [*VOCABULARY, *OUTSIDE]
    for width in (5, 12, 50):
        table = form_characters(np.arange(2, len(words)), FORMS[:1], np.array([0]), MARKS, width)
        assert (table == character_table(words[2:], width)).all()


def pooled(characters, filters, kernels):
    """Return the maximum over time of convolutions over the embedded ids."""
    table = np.random.default_rng(0).normal(size=(262, 3))[characters]
    maxima = []
    for width, kernel in zip(filters, kernels):
        windows = np.lib.stride_tricks.sliding_window_view(table, width, axis=1)
        maxima.append(np.einsum("utcw,wcf->utf", windows, kernel).max(axis=1))
    return np.concatenate(maxima, axis=1)


def test_less_padding_does_not_change_convolutions():
    filters = range(1, 8)
    kernels = [np.random.default_rng(n).normal(size=(n, 3, 4)) for n in filters]
    short = [n for n, word in enumerate([*VOCABULARY, *OUTSIDE]) if len(word.encode()) < 20]
    rng = np.random.default_rng(0)
    for longest, width in ((short, 32), ([3, 4, 5, 6], 16), ([5, len(VOCABULARY) + len(OUTSIDE) - 1], 32)):
        ids = np.array(longest)
        cuts = np.arange(0, 41, 4)
        text = Text(rng.choice(ids[ids > 2], 40).astype(np.uint32), cuts, np.array([0, 10]))
        part = plan_streams(text, 50, 1, MARKS, (0,)).take(0)
        wide, narrow = (make([part], LanguageModelExamples(widest_filter=widest)) for widest in (0, 7))
        assert narrow["characters"].shape[2] == width
        assert wide["characters"].shape[2] == 50
        words = np.unique(wide["words_forward"])
        outputs = [pooled(batch["characters"][0, words], filters, kernels) for batch in (wide, narrow)]
        np.testing.assert_allclose(*outputs, atol=1e-12)


def test_sizes_of_tables_and_of_long_words():
    text = Text(np.full(4, 9, np.uint32), np.array([0, 4]), np.array([0, 1]))  # a word of sixty letters
    part = plan_streams(text, 5, 1, MARKS, (0,)).take(0)
    assert make([part], LanguageModelExamples(widest_filter=7))["characters"].shape[2] == 50
    assert make([part], LanguageModelExamples(widest_filter=7, max_characters=30))["characters"].shape[2] == 30
    examples = LanguageModelExamples(smallest_table=4)
    sizes = [make(steps_of((4,), length, 3), examples)["characters"].shape[1] for length in (1, 2, 4, 20)]
    assert sizes == sorted(sizes) and len(set(sizes)) > 1
    assert all(size in (4, 8, 16) for size in sizes)
