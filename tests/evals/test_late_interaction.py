"""Scores of late interaction against their definition, piece by piece, in chunks, and wrong inputs."""

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.evals import late_interaction
from bert_elmo_jax.evals.late_interaction import PieceIndex, piece_vectors

from ..conftest import GOLDENS

DRAW = np.random.default_rng(0)
TEXTS, QUERIES = (
    [DRAW.normal(size=(length, 4)).astype(np.float32) for length in lengths] for lengths in ((3, 7, 1, 5), (2, 6))
)


@pytest.mark.parametrize("chunk", [1, 8, 10_000])
def test_each_piece_of_a_query_takes_its_best_piece(monkeypatch, chunk):
    monkeypatch.setattr(late_interaction, "CHUNK", chunk)
    expected = [[sum(max(float(q @ t) for t in text) for q in query) for text in TEXTS] for query in QUERIES]
    index = PieceIndex(TEXTS)
    np.testing.assert_allclose(index.score(QUERIES), expected, rtol=1e-5)
    best = index.search(QUERIES, count=2)
    np.testing.assert_array_equal(best.rows, np.argsort(-np.array(expected), axis=1)[:, :2])
    assert len(index) == 4 and index.search(QUERIES, count=9).scores.shape == (2, 4)


def test_pieces_of_a_text_do_not_depend_on_the_others():
    encoder = load(GOLDENS / "bert_tiny")
    texts = ["[MASK] [MASK] [MASK]", "[MASK]"]
    together, single_text = piece_vectors(encoder, texts), piece_vectors(encoder, texts[1:])
    np.testing.assert_allclose(together[1], single_text[0], atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(together[0], axis=1), 1.0, rtol=1e-5)
    assert [len(x) for x in together] == [5, 3]


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize("texts", [[], [np.ones((2, 4)), np.ones((2, 5))], [np.ones((0, 4))]])
def test_wrong_texts_and_counts(texts):
    with pytest.raises(ValueError, match="expected one array"):
        PieceIndex(texts)
    with pytest.raises(ValueError, match="count=0: expected 1 or more"):
        PieceIndex(TEXTS).search(QUERIES, 0)
