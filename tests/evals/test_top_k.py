"""Exact search against a full sort, in chunks and from files, and wrong inputs."""

import numpy as np
import pytest

from bert_elmo_jax.evals import top_k
from bert_elmo_jax.evals.top_k import VectorIndex, write_vectors

DRAW = np.random.default_rng(0)
CORPUS = DRAW.normal(size=(100, 6)).astype(np.float32)
CORPUS[[20, 70]] = CORPUS[3]  # a tie over several chunks
QUERIES = np.concatenate([DRAW.normal(size=(4, 6)), CORPUS[3:4]]).astype(np.float32)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("count", [1, 2, 7, 100, 200])
def test_the_same_as_a_full_sort(monkeypatch, similarity, count):
    monkeypatch.setattr(top_k, "CHUNK", 16)
    hits = VectorIndex(CORPUS).search(QUERIES, count, similarity)
    scores = QUERIES.astype(np.float64) @ CORPUS.T.astype(np.float64)
    if similarity == "cosine":
        scores /= np.linalg.norm(QUERIES, axis=1)[:, None] * np.linalg.norm(CORPUS, axis=1)
    expected = np.argsort(-np.round(scores, 5), axis=1, kind="stable")[:, :count]
    np.testing.assert_array_equal(hits.rows, expected)
    np.testing.assert_allclose(hits.scores, np.take_along_axis(scores, expected, 1), rtol=1e-4, atol=1e-6)
    assert hits.scores.dtype == np.float32


def test_files_are_mapped_and_zeros_are_near_to_nothing(tmp_path):
    expected = VectorIndex(CORPUS).search(QUERIES, 3).rows[:, 0]
    for dtype in ("float32", "float16"):
        path = write_vectors(tmp_path / "v.npy", (CORPUS[at : at + 30] for at in range(0, 100, 30)), 100, dtype)
        index = VectorIndex(path)
        assert isinstance(index.vectors, np.memmap) and repr(index) == f"VectorIndex(100 × 6, {dtype})"
        np.testing.assert_array_equal(index.search(QUERIES, 3).rows[:, 0], expected)
        assert [file.name for file in tmp_path.iterdir()] == ["v.npy"]
    hits = VectorIndex(np.array([[0.0, 0.0], [1.0, 0.0]], np.float32)).search(np.array([[1.0, 0.0]], np.float32))
    assert hits.rows.tolist() == [[1, 0]] and hits.scores.tolist() == [[1.0, 0.0]]


def spoil(vectors, row, value=np.nan):
    spoilt = vectors.copy()
    spoilt[row, 2] = value
    return spoilt


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("count", [2, 90, 98, 100])
def test_vectors_with_nan_come_last(monkeypatch, similarity, count):
    expected = VectorIndex(np.delete(CORPUS, [18, 99], axis=0)).search(QUERIES, count, similarity)
    monkeypatch.setattr(top_k, "CHUNK", 16)
    hits = VectorIndex(spoil(CORPUS, [18, 99])).search(QUERIES, count, similarity)
    finite = min(count, 98)
    np.testing.assert_array_equal(hits.rows[:, :finite], np.delete(np.arange(100), [18, 99])[expected.rows])
    assert hits.rows[:, finite:].tolist() == [[18, 99][: count - finite]] * len(QUERIES)
    assert np.isnan(hits.scores[:, finite:]).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: VectorIndex(CORPUS).search(QUERIES[:, :4]), r"queries have shape \(5, 4\); expected \[Q, 6\]"),
        (lambda f: VectorIndex(CORPUS).search(QUERIES, 0), "count=0"),
        (lambda f: VectorIndex(CORPUS).search(QUERIES, 1, "euclid"), "similarity='euclid' is not known"),
        (lambda f: VectorIndex(CORPUS[:0]), "at least one"),
        (lambda f: write_vectors(f / "v.txt", [CORPUS], 100), "ends in .npy"),
        (lambda f: write_vectors(f / "v.npy", [CORPUS], 99), "more than 99 vectors"),
        (lambda f: write_vectors(f / "v.npy", [CORPUS], 101), "100 vectors were given for .* expected 101"),
        (lambda f: write_vectors(f / "v.npy", [CORPUS * 1e6], 100, "float16"), "too large for float16"),
        (lambda f: VectorIndex(CORPUS).search(spoil(QUERIES, 3)), "query 3 has NaN or infinity"),
        (lambda f: VectorIndex(CORPUS).search(spoil(QUERIES, 2, np.inf), 1, "dot"), "query 2 has NaN or infinity"),
        (lambda f: write_vectors(f / "v.npy", [CORPUS, spoil(CORPUS, 7)], 200), "vector 107 has NaN or infinity"),
        (lambda f: write_vectors(f / "v.npy", [spoil(CORPUS, 7, -np.inf)], 100, "float16"), "vector 7 has NaN or"),
        (lambda f: write_vectors(f / "v.npy", [CORPUS], 100, "int8"), "dtype='int8' is not known"),
    ],
)
def test_wrong_inputs(as_users_run, tmp_path, call, message):
    with pytest.raises(ValueError, match=message):
        call(tmp_path)
    assert not list(tmp_path.iterdir())
