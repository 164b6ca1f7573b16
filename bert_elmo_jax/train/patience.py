"""Early stopping."""

import math
from collections.abc import Iterable, Mapping
from typing import Any


class Patience:
    """Return True once `patience` evaluations in a row have not raised the best `score`; never if `patience` is 0.

    Call it with the figures of each evaluation. `lines` of `metrics.jsonl` restore the count of a resumed run.

    >>> patience = Patience("dev/f1", 2)
    >>> [patience({"dev/f1": value}) for value in (0.5, 0.6, 0.6, 0.4)]
    [False, False, False, True]
    >>> Patience("dev/f1", 2, [{"step": 1, "loss": 2.0}, {"dev/f1": 0.5}, {"dev/f1": 0.5}])({"dev/f1": 0.1})
    True
    """

    def __init__(self, score: str, patience: int, lines: Iterable[Mapping[str, Any]] = ()):
        if patience < 0:
            raise ValueError(f"patience={patience}: use a number of evaluations, or 0 to never stop early")
        self._score, self._patience = score, patience
        self._best, self._waited = -math.inf, 0
        for line in lines:
            if score in line:
                self(line)

    @property
    def spent(self) -> bool:
        """True if the run should end."""
        return 0 < self._patience <= self._waited

    def __call__(self, figures: Mapping[str, Any]) -> bool:
        """Record an evaluation and return `spent`."""
        value = figures[self._score]
        if value is not None and value > self._best:
            self._best, self._waited = value, 0
        else:
            self._waited += 1
        return self.spent
