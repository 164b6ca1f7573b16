"""Words are padded to a few widths in characters, which do not change the output of the network."""

import unicodedata

import jax
import numpy as np

from bert_elmo_jax.data.tasks.examples import ParsedSentence, TaggedSentence
from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.data.tasks.tree_rows import make_tree_rows
from bert_elmo_jax.data.tasks.word_rows import WordRow, characters_of, collate_words, make_word_rows
from bert_elmo_jax.inference.task_networks import tag_predictions, tree_predictions
from bert_elmo_jax.networks.word_network import WordInput
from bert_elmo_jax.text import Lexicon


def row_of(*words):
    return WordRow(0, words, np.zeros(len(words), np.int32))


WIDTHS = [("a" * 12, 16), ("a" * 13, 24), ("가" * 6, 24), ("강가에서부터", 24), ("a" * 21, 50), ("나" * 40, 50)]


def test_words_have_one_of_three_widths():
    for longest, width in WIDTHS:
        assert characters_of([row_of("배", longest)], 1, 2).shape == (1, 2, width)
    assert characters_of([row_of("a")], 1, 2)[0, :, :4].tolist() == [[259, 98, 260, 261], [0, 0, 0, 0]]


def test_the_width_does_not_change_the_output():
    words = WordInput(2, 3, 4, characters=True)
    short, wide = (characters_of([row_of("배", "boats", *more)], 1, 3)[:, :2] for more in ([], ["a" * 30]))
    assert short.shape != wide.shape
    ids = np.zeros((1, 2), np.int32)
    params = jax.jit(words.init)(jax.random.key(0), ids, short)
    apply = jax.jit(words.apply)
    np.testing.assert_allclose(apply(params, ids, short), apply(params, ids, wide), atol=1e-6)


def test_rows_and_batches_of_words():
    sentence = TaggedSentence(("배", "밖"), ("NOUN", "ADV"), "dev.conllu", (1, 2), 0)
    [row] = make_word_rows([sentence], Lexicon(["배"], "unk", width=4), ("ADV", "NOUN"))
    assert (row.ids.tolist(), row.tags.tolist()) == ([1, 0], [1, 0])
    row = WordRow(0, ("강가에", "배"), np.array([0, 1], np.int32), np.array([2, 2], np.int32))
    batch = collate_words([row], 2, Lexicon(["배"], "characters", width=4))
    shapes = {"words": (2, 8), "lengths": (2,), "characters": (2, 8, 16), "tags": (2, 8)}
    assert {name: array.shape for name, array in batch.items()} == shapes


def test_decomposed_words_have_the_same_ids():
    words = ("배를", "탔다")
    decomposed = TaggedSentence(tuple(unicodedata.normalize("NFD", word) for word in words), None, "dev.txt", (1, 2), 0)
    lexicon = Lexicon(words, "unk", width=4)
    [row] = make_word_rows([decomposed], lexicon, (), labelled=False)
    assert (row.words, row.ids.tolist()) == (words, [1, 2])
    [tree] = make_tree_rows([ParsedSentence(decomposed.words, None, None, None, "dev.txt", (1, 2), None)], lexicon)
    assert (tree.words, tree.ids.tolist()) == (words, [1, 2])
    outputs = [(np.zeros(2, np.int32), np.ones(2, np.float32))]
    [tags] = tag_predictions(Task("tags", "tags", labels=("A",)), [decomposed], [row], outputs)
    assert tags.words == decomposed.words  # as in the file
    [tree] = tree_predictions(Task("trees", "trees", labels=("A",)), [decomposed], [tree], [outputs[0][:1] * 2])
    assert tree.words == decomposed.words
