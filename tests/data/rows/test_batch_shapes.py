"""The predicted shapes match the batches of the pipeline."""

import pytest

from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus
from bert_elmo_jax.data.pipeline.batches import train_batches
from bert_elmo_jax.data.rows.masking import Masking
from bert_elmo_jax.data.rows.pieces import PieceExamples
from bert_elmo_jax.data.rows.stream import LanguageModelExamples


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpora")
    pieces = toy_corpus(folder / "pieces", documents=60)
    return {"pieces": pieces, "words": toy_corpus(folder / "words", documents=60, tokenizer="words")}


def test_bert_batches_have_these_shapes(corpora):
    for examples in (
        PieceExamples(32),
        PieceExamples(48, "sentences", masking=Masking("next")),
        PieceExamples(64, "sop", masking=Masking("span", predictions=7), sequences=3),
    ):
        batch = next(train_batches(corpora["pieces"], examples, 6))
        assert {name: (array.shape, array.dtype.type) for name, array in batch.items()} == examples.shapes(6)


@pytest.mark.parametrize("reading", ["streams", "sentences"])
@pytest.mark.parametrize("kind", ["characters", "words"])
def test_word_batches_have_at_most_these_shapes(corpora, reading, kind):
    examples = LanguageModelExamples(reading, 12, kind, max_characters=20, smallest_table=4)
    expected = examples.shapes(8, shards=2)
    batches = train_batches(corpora["words"], examples, 8, shards=2)
    for _ in range(3):
        batch = next(batches)
        assert batch.keys() == expected.keys()
        for name, array in batch.items():
            shape, dtype = expected[name]
            assert array.dtype == dtype, name
            assert len(array.shape) == len(shape), name
            assert all(real <= most for real, most in zip(array.shape, shape)), name
            assert array.shape[0] == shape[0], name
    batches.close()


def test_table_holds_all_words_even_if_all_differ():
    examples = LanguageModelExamples(length=20, smallest_table=256)
    assert [examples.table_size(40 * rows) for rows in (1, 6, 7, 16)] == [256, 256, 512, 1024]
    with pytest.raises(ValueError, match="10 rows cannot be split into 4 equal parts; use a multiple of 4"):
        LanguageModelExamples().shapes(10, shards=4)
    assert LanguageModelExamples(length=20).table_size(640) == 1024
