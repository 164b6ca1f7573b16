"""Rerankers (cross-encoders): the score of each pair of texts, and the texts that fit a query best."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.data.tasks.examples import TextExample
from bert_elmo_jax.encoders.arguments import check_list, check_whole
from bert_elmo_jax.encoders.encoder import BAR_FROM
from bert_elmo_jax.encoders.rows import lone_surrogate, shorten
from bert_elmo_jax.heads.sentence_head import ACTIVATIONS


@dataclass(frozen=True)
class RankedText:
    """A text of a ranking: its place in the list that was ranked, and its score.

    >>> print(RankedText(2, 0.93, "She'd brought bread."))
    2: 0.930 She'd brought bread.
    """

    index: int
    score: float
    text: str

    def __str__(self) -> str:
        return f"{self.index}: {self.score:.3f} {self.text}"


def score_pairs(
    model: Any, pairs: Sequence[tuple[str, str]], *, batch_size: int = 32, progress: bool | None = None
) -> Float32[np.ndarray, "N"] | Float32[np.ndarray, "N labels"]:
    """Return the score of each pair of texts, [N], with the activation of the model: by default a sigmoid.

    A model with several labels has a score for each, [N, labels], without activation by default. The default prompt of
    a model is put before the first text. A long pair is cut: the longer text loses pieces until both fit.

    >>> from bert_elmo_jax import load
    >>> load("tests/goldens/reranker").score([("Who brought bread?", "She had brought it.")]).shape
    (1,)
    """
    check_list(pairs)
    if model.task.kind not in ("classification", "regression"):
        raise ValueError(f"score() is for models that read pairs of texts, and this one predicts {model.task.kind}")
    if not takes_pairs(model.task):
        raise ValueError(
            f"score() is for models that read pairs of texts, and {model.source} was trained on single texts"
        )
    examples = [_to_pair(pair, number) for number, pair in enumerate(pairs)]
    if not examples:
        return np.zeros((0, len(model.labels)) if len(model.labels) > 1 else 0, np.float32)
    rows, compute = model.rows_of(examples)
    bar = len(rows) >= BAR_FROM if progress is None else progress
    outputs = compute(batch_size=check_whole("batch_size", batch_size, 1), progress=bar)
    scores = np.stack([np.asarray(output, np.float32) for output in outputs])
    scores = scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores
    name = model.task.activation or ("sigmoid" if scores.ndim == 1 else "identity")
    return np.asarray(ACTIVATIONS[name](scores), np.float32)


def takes_pairs(task: Any) -> bool:
    """Return True if a task is about pairs of texts; a released model does not say whether it reads them."""
    return task.kind in ("classification", "regression") and (task.pairs or task.layout is None)


def is_reranker(task: Any) -> bool:
    """Return True if a task gives a pair one score; files of many rerankers only say that they have one label.

    >>> from bert_elmo_jax import load
    >>> is_reranker(load("tests/goldens/reranker").task)
    True
    """
    one_score = takes_pairs(task) and len(task.labels) < 2 and not task.multi_label
    return one_score and (task.kind == "classification" or bool(task.activation))


def rank_texts(
    model: Any, query: str, texts: Sequence[str], *, top_k: int | None = None, batch_size: int = 32,
    progress: bool | None = None,
) -> list[RankedText]:  # fmt: skip
    """Return the texts (or `top_k` of them) with their scores for a query, best first.

    >>> from bert_elmo_jax import load
    >>> ranking = load("tests/goldens/reranker").rank("Who brought bread?", ["She did.", "The river."], top_k=1)
    >>> len(ranking), ranking[0].index in (0, 1)
    (1, True)
    """
    check_list(texts)
    texts = list(texts)  # a column of pandas finds its rows by label, but gives them in order
    top_k = len(texts) if top_k is None else check_whole("top_k", top_k, 1)
    scores = score_pairs(model, [(query, text) for text in texts], batch_size=batch_size, progress=progress)
    if scores.ndim > 1:
        raise ValueError(
            f"rank() needs one score for each text, and this model has {scores.shape[1]} labels "
            f"({', '.join(model.labels)}): give a model with one, or sort by a column of score()"
        )
    best = np.argsort(-scores, kind="stable")[:top_k].tolist()
    return [RankedText(number, float(scores[number]), texts[number]) for number in best]


def _to_pair(pair: Any, number: int) -> TextExample:
    # Not only tuples, because other libraries give lists.
    if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(isinstance(text, str) for text in pair):
        raise ValueError(f"pair {number} is {shorten(pair)}; expected (text, text)")
    for text in pair:
        if problem := lone_surrogate(text):
            raise ValueError(f"pair {number} {problem}")
    return TextExample(pair[0], pair[1], None, None, f"pair {number}", number)
