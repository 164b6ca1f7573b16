"""Search for the paragraph of a question: its figures, and the program on a toy file."""

import json

import numpy as np
import pytest
from absl.testing import flagsaver

from ..conftest import GOLDENS


@pytest.fixture(scope="module")
def benchmark(program):
    return program("benchmarks.retrieval")


def test_reranked_candidates_are_ordered_by_their_scores(benchmark):
    class Model:
        def score(self, pairs):
            return np.array([len(paragraph) for _, paragraph in pairs], np.float32)

    order = benchmark.rerank(Model(), ["q", "q"], ["a", "ccc", "bb"], np.array([[0, 2], [1, 0]]))
    assert order.tolist() == [[2, 0], [1, 0]]


def test_a_table_of_a_toy_file(benchmark, tmp_path, capsys):
    contexts = ["[MASK] a b", "c d [MASK] [MASK]", "e"]
    paragraphs = [
        {"context": context, "qas": [{"id": context, "question": context, "answers": []}]} for context in contexts
    ]
    (tmp_path / "toy.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}), encoding="utf-8")
    with flagsaver.flagsaver(model=str(GOLDENS / "bert_tiny"), questions=str(tmp_path / "toy.json")):
        benchmark.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "3 questions, 3 paragraphs"
    for way in ("vectors", "late interaction"):  # a paragraph is its own question, so it is found first
        (line,) = [line for line in lines if line.startswith(way)]
        assert line.split()[-4:-1] == ["1.000", "1.000", "1.000"]
