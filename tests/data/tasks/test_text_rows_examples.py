"""Examples of `bert_elmo_jax.data.tasks.word_rows`."""

import numpy as np

from bert_elmo_jax.data.tasks.examples import TextExample
from bert_elmo_jax.data.tasks.word_rows import (
    TextRow,
    WordRow,
    collate_texts,
    count_cut,
    make_text_rows,
    words_of_texts,
)
from bert_elmo_jax.text import Lexicon


def test_example_of_words_of_texts():
    assert words_of_texts(TextExample("배를 탔다.", " ", None, None, "dev.tsv", 2), limit=2) == [
        ("배를", "탔다"),
        ("<UNK>",),
    ]


def test_example_of_count_cut():
    assert count_cut([TextExample("배를 탔다.", "배", None, None, "dev.tsv", 2)], limit=2) == 1


def test_example_of_make_text_rows():
    example = TextExample("배를 탔다.", "배", "1", None, "dev.tsv", 2)
    [row] = make_text_rows([example], Lexicon(["배"], "unk", width=4), ("0", "1"), limit=2)
    assert ([text.ids.tolist() for text in row.texts], row.label) == ([[0, 0], [1]], 1)


def test_example_of_collate_texts():
    words = WordRow(0, ("강가에", "배"), np.array([0, 1], np.int32))
    batch = collate_texts([TextRow(0, (words, words), 1)], 2, Lexicon(["배"], "unk", width=4))
    assert {name: array.shape for name, array in batch.items()} == {
        "words": (2, 2, 8),
        "lengths": (2, 2),
        "labels": (2,),
        "weights": (2,),
    }
