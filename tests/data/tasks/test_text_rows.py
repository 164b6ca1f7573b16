"""Texts and pairs as rows of words: truncation, empty texts, and batches."""

import unicodedata

import numpy as np
import pytest

from bert_elmo_jax.data.tasks import TextExample
from bert_elmo_jax.data.tasks.batches import digest
from bert_elmo_jax.data.tasks.files import BadRow
from bert_elmo_jax.data.tasks.word_rows import collate_texts, count_cut, make_text_rows, words_of_texts
from bert_elmo_jax.text import Lexicon

LEXICON = Lexicon(["배", "ship", "를"], "unk", width=4)
LABELS = ("no", "yes")


def example(text, pair=None, label="yes", line=2):
    return TextExample(text, pair, label, None, "train.tsv", line)


def test_words_and_numbers():
    rows = make_text_rows([example("배 ship."), example("The ship", label="no")], LEXICON, LABELS, 9)
    assert [row.texts[0].words for row in rows] == [("배", "ship", "."), ("The", "ship")]
    assert [row.texts[0].ids.tolist() for row in rows] == [[1, 2, 0], [0, 2]]
    assert [(row.example, row.label, row.width) for row in rows] == [(0, 1, 3), (1, 0, 2)]
    [unlabelled] = make_text_rows([example("배", label=None)], LEXICON, LABELS, 9, labelled=False)
    assert unlabelled.label is None
    with pytest.raises(BadRow, match=r"train\.tsv:7: the label 'maybe' is not in the training data"):
        make_text_rows([example("배", label="maybe", line=7)], LEXICON, LABELS, 9)


def test_decomposed_texts_have_the_same_words():
    texts = ["배를 탔다.", unicodedata.normalize("NFD", "배를 탔다.")]
    lexicon = Lexicon(["배를", "탔다", "."], "unk", width=4)
    one, other = make_text_rows([example(text) for text in texts], lexicon, LABELS, 9)
    assert one.texts[0].ids.tolist() == other.texts[0].ids.tolist() == [1, 2, 3]
    assert one.texts[0].words == other.texts[0].words
    assert count_cut([example(unicodedata.normalize("NFD", "배를 탔다"))], 2) == 0


def test_empty_and_truncated_texts():
    """Some texts of official files are empty, but count in published scores: they become an unknown word."""
    assert words_of_texts(example("", " \u3000\n"), 9) == [("<UNK>",), ("<UNK>",)]
    [row] = make_text_rows([example("  ")], LEXICON, LABELS, 9)
    assert row.texts[0].ids.tolist() == [0]
    examples = [example("배 " * 5), example("배 " * 6, "배 " * 7), example("a" * 99, "배배배배배배배")]
    assert (count_cut(examples, 5), count_cut(examples, 7)) == (2, 0)
    assert [text.width for row in make_text_rows(examples, LEXICON, LABELS, 5) for text in row.texts] == [5, 5, 5, 1, 1]


def test_batches_of_single_texts_and_of_pairs():
    singles = make_text_rows([example("배 ship 배"), example("ship")], LEXICON, LABELS, 9)
    batch = collate_texts(singles, 4, LEXICON)
    assert batch.keys() == {"words", "lengths", "labels", "weights"} and batch["words"].shape == (4, 8)
    assert batch["words"][:2, :3].tolist() == [[1, 2, 1], [2, 0, 0]]
    assert batch["lengths"].tolist() == [3, 1, 0, 0]
    assert (batch["labels"].tolist(), batch["weights"].tolist()) == ([1, 1, 0, 0], [1, 1, 0, 0])

    requested = []

    def layers(rows, height, width):
        requested.append([row.words for row in rows])
        numbers = np.arange(height, dtype=np.float32)[:, None, None, None]
        return {"layers": numbers * np.ones((1, 2, width, 3), np.float32)}

    pairs = make_text_rows([example("배", "ship ship"), example("ship " * 9, "배", "no")], LEXICON, LABELS, 9)
    batch = collate_texts(pairs, 3, LEXICON, layers, targets=False)
    shapes = {"words": (3, 2, 16), "lengths": (3, 2), "layers": (3, 2, 2, 16, 3)}
    assert {name: array.shape for name, array in batch.items()} == shapes
    assert batch["lengths"].tolist() == [[1, 2], [9, 1], [0, 0]]
    assert batch["words"][:2, :, 0].tolist() == [[1, 2], [2, 1]]
    assert requested == [[("배",), ("ship", "ship"), ("ship",) * 9, ("배",)]]
    assert batch["layers"][:, :, 0, 0, 0].tolist() == [[0, 1], [2, 3], [4, 5]]


def test_characters_and_vectors_of_unknown_words():
    for unknown, name, shape in (("characters", "characters", (2, 2, 8)), ("random", "brought", (2, 2, 8, 4))):
        lexicon = Lexicon(["배"], unknown, width=4)
        rows = make_text_rows([example("배", "처음 보는 말")], lexicon, LABELS, 9)
        array = collate_texts(rows, 2, lexicon)[name]
        assert array.shape[: len(shape)] == shape
        assert array[0, 1, :3].any(axis=1).all() and not array[1].any()
        assert unknown == "characters" or not array[0, 0].any()


def test_different_rows_have_different_fingerprints():
    """Rows differ in their texts, the position in a pair, the label, or the ids of their words."""
    examples = [
        [example("배 배")],
        [example("배 배", label="no")],
        [example("배", "배")],
        [example("배"), example("배")],
    ]
    digests = {digest(make_text_rows(group, LEXICON, LABELS, 9)) for group in examples}
    other = Lexicon(["ship", "배"], "unk", width=4)
    assert len(digests | {digest(make_text_rows(examples[0], other, LABELS, 9))}) == 5
