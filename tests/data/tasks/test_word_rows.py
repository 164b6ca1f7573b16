"""Words are padded to a few widths in characters, which do not change the output of the network."""

import jax
import numpy as np
import pytest

from bert_elmo_jax.data.tasks.word_rows import WordRow, characters_of
from bert_elmo_jax.networks.word_input import WordInput


def row_of(*words):
    return WordRow(0, words, np.zeros(len(words), np.int32))


@pytest.mark.parametrize(
    ("longest", "width"),
    [("a" * 12, 16), ("a" * 13, 24), ("가" * 6, 24), ("강가에서부터", 24), ("a" * 21, 50), ("나" * 40, 50)],
)
def test_words_have_one_of_three_widths(longest, width):
    assert characters_of([row_of("배", longest)], 1, 2).shape == (1, 2, width)


def test_the_width_does_not_change_the_output():
    words = WordInput(2, 3, 4, characters=True)
    short, wide = (characters_of([row_of("배", "boats", *more)], 1, 3)[:, :2] for more in ([], ["a" * 30]))
    assert short.shape != wide.shape
    ids = np.zeros((1, 2), np.int32)
    params = words.init(jax.random.key(0), ids, short)
    np.testing.assert_allclose(words.apply(params, ids, short), words.apply(params, ids, wide), atol=1e-6)
