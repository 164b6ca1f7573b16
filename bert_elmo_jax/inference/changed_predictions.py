"""Where the predictions of two models differ: what int8 or a smaller model costs on a task, row by row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bert_elmo_jax.inference.predictions import (
    AnswerSpan,
    Choice,
    Entities,
    Label,
    Labels,
    Number,
    Numbers,
    Prediction,
    Tree,
)


@dataclass(frozen=True)
class Change:
    """A row whose prediction changed.

    >>> print(Change(3, Label("good", 0.51, {}), Label("bad", 0.52, {})))
    row 3: good (0.510) -> bad (0.520)
    """

    row: int  # from 0
    before: Prediction
    after: Prediction

    def __str__(self) -> str:
        return f"row {self.row}: {self.before} -> {self.after}"


def changed_predictions(
    before: Sequence[Prediction], after: Sequence[Prediction], *, tolerance: float = 0.05
) -> list[Change]:
    """Return the rows whose label, tags, tree, choice or answer changed, or whose numbers differ by over `tolerance`.

    >>> good, better, bad = (Label(label, 0.9, {}) for label in ("good", "good", "bad"))
    >>> [change.row for change in changed_predictions([good, good], [better, bad])]
    [1]
    """
    if len(before) != len(after):
        raise ValueError(f"{len(before)} and {len(after)} predictions were given: expected those of the same rows")
    pairs = enumerate(zip(before, after, strict=True))
    return [Change(row, *pair) for row, pair in pairs if _differs(*pair, tolerance)]


def _differs(before: Prediction, after: Prediction, tolerance: float) -> bool:
    if isinstance(before, Number) and isinstance(after, Number):
        return _is_far(before.value, after.value, tolerance)
    if isinstance(before, Numbers) and isinstance(after, Numbers):
        return any(_is_far(value, after.values[name], tolerance) for name, value in before.values.items())
    return _decision(before) != _decision(after)


def _is_far(before: float, after: float, tolerance: float) -> bool:
    # NaN is far from every number, but not from NaN.
    return not np.isclose(before, after, rtol=0.0, atol=tolerance, equal_nan=True)


def _decision(prediction: Any) -> Any:
    """Return a prediction without its probabilities."""
    match prediction:
        case Label():
            return prediction.label
        case Labels():
            return set(prediction.labels)
        case Choice():
            return prediction.choice
        case AnswerSpan():
            return prediction.start, prediction.end, prediction.answer
        case Entities():
            return [(entity.start, entity.end, entity.label) for entity in prediction.entities]
        case Tree():
            return prediction.heads, prediction.relations
    return prediction.tags
