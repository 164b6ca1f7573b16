"""Texts and pairs as rows of words: truncation, empty texts, and batches."""

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


def test_a_text_without_words_becomes_an_unknown_word():
    """Some texts of official files are empty, but count in published scores."""
    assert words_of_texts(example("", " \u3000\n"), 9) == [("<UNK>",), ("<UNK>",)]
    [row] = make_text_rows([example("  ")], LEXICON, LABELS, 9)
    assert row.texts[0].ids.tolist() == [0]


def test_truncated_texts_are_counted():
    examples = [example("배 " * 5), example("배 " * 6, "배 " * 7), example("a" * 99, "배배배배배배배")]
    assert count_cut(examples, 5) == 2
    assert count_cut(examples, 7) == 0
    assert [text.width for row in make_text_rows(examples, LEXICON, LABELS, 5) for text in row.texts] == [5, 5, 5, 1, 1]


def test_batches_of_single_texts_and_of_pairs():
    singles = make_text_rows([example("배 ship 배"), example("ship")], LEXICON, LABELS, 9)
    batch = collate_texts(singles, 4, LEXICON)
    assert {name: array.shape for name, array in batch.items()} == {
        "words": (4, 8), "lengths": (4,), "labels": (4,), "weights": (4,)
    }  # fmt: skip
    assert batch["words"][:2, :3].tolist() == [[1, 2, 1], [2, 0, 0]]
    assert batch["lengths"].tolist() == [3, 1, 0, 0]
    assert (batch["labels"].tolist(), batch["weights"].tolist()) == ([1, 1, 0, 0], [1, 1, 0, 0])

    asked = []

    def layers(rows, height, width):
        asked.append([row.words for row in rows])
        return {
            "layers": np.arange(height, dtype=np.float32)[:, None, None, None] * np.ones((1, 2, width, 3), np.float32)
        }

    pairs = make_text_rows([example("배", "ship ship"), example("ship " * 9, "배", "no")], LEXICON, LABELS, 9)
    batch = collate_texts(pairs, 3, LEXICON, layers, targets=False)
    assert {name: array.shape for name, array in batch.items()} == {
        "words": (3, 2, 16), "lengths": (3, 2), "layers": (3, 2, 2, 16, 3)
    }  # fmt: skip
    assert batch["lengths"].tolist() == [[1, 2], [9, 1], [0, 0]]
    assert batch["words"][:2, :, 0].tolist() == [[1, 2], [2, 1]]
    assert asked == [[("배",), ("ship", "ship"), ("ship",) * 9, ("배",)]]
    assert batch["layers"][:, :, 0, 0, 0].tolist() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("unknown", ["characters", "random"])
def test_characters_and_vectors_of_unknown_words(unknown):
    lexicon = Lexicon(["배"], unknown, width=4)
    rows = make_text_rows([example("배", "처음 보는 말")], lexicon, LABELS, 9)
    batch = collate_texts(rows, 2, lexicon)
    if unknown == "characters":
        assert batch["characters"].shape[:3] == (2, 2, 8)
        assert (batch["characters"][0, 1, :3, 0] > 0).all()
        assert not batch["characters"][1].any()
    else:
        assert batch["brought"].shape == (2, 2, 8, 4)
        assert batch["brought"][0, 1, :3].any(axis=1).all()
        assert not batch["brought"][0, 0].any()


def test_different_rows_have_different_fingerprints():
    """Rows differ in their texts, the position in a pair, the label, or the ids of their words."""
    made = [
        make_text_rows(some, lexicon, LABELS, 9)
        for some, lexicon in (
            ([example("배 배")], LEXICON),
            ([example("배 배", label="no")], LEXICON),
            ([example("배", "배")], LEXICON),
            ([example("배"), example("배")], LEXICON),
            ([example("배 배")], Lexicon(["ship", "배"], "unk", width=4)),
        )
    ]
    assert len({digest(rows) for rows in made}) == len(made)
