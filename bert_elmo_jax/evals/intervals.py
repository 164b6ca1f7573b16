"""95 % intervals of scores: what other rows of the same kind could have given."""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Integer

Z = 1.959963984540054  # 95 % of a normal distribution lie within so many standard deviations
Interval = tuple[float, float]
MANY = 5_000  # rows; of more, fewer samples are drawn


def share_interval(right: int, total: int) -> Interval:
    """Return Wilson's interval of a share.

    >>> tuple(round(end, 4) for end in share_interval(23, 30))
    (0.5907, 0.8821)
    """
    share, square = right / total, Z**2 / total
    middle = (share + square / 2) / (1 + square)
    reach = Z / (1 + square) * math.sqrt(share * (1 - share) / total + square / (4 * total))
    return max(0.0, middle - reach), min(1.0, middle + reach)


def correlation_interval(correlation: float, count: int, ranks: bool = False) -> Interval | None:
    """Return Fisher's interval of Pearson's correlation, or Fieller's of Spearman's; None for fewer than four rows.

    >>> tuple(round(end, 3) for end in correlation_interval(0.5, 28))
    (0.156, 0.736)
    """
    if count < 4 or not abs(correlation) <= 1:
        return None
    if abs(correlation) == 1:
        return correlation, correlation
    reach = Z * math.sqrt((1.06 if ranks else 1.0) / (count - 3))
    middle = math.atanh(correlation)
    return math.tanh(middle - reach), math.tanh(middle + reach)


def bootstrap_interval(count: int, score: Callable[[Integer[np.ndarray, "N"]], float], seed: int = 0) -> Interval:
    """Return the middle 95 % of the scores of samples: `count` numbers of rows, drawn with replacement.

    >>> right = np.array([1, 1, 1, 0])
    >>> bootstrap_interval(4, lambda rows: right[rows].mean())
    (0.25, 1.0)
    """
    chance = np.random.default_rng(seed)
    times = 1_000 if count <= MANY else 200
    scores = [score(chance.integers(count, size=count)) for _ in range(times)]
    low, high = np.nanpercentile(scores, [2.5, 97.5])
    return float(low), float(high)
