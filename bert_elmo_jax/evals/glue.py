"""Metrics of classification and regression tasks (GLUE, KLUE and others), equal to scikit-learn's and SciPy's."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float, Float64, Shaped

Values = Sequence[int] | Sequence[float] | Sequence[str] | Shaped[np.ndarray, "N"]


def accuracy(labels: Values, predictions: Values) -> float:
    """Return the share of predictions that are right."""
    truth, guess = _pair(labels, predictions)
    return float(np.mean(truth == guess))


def f1(labels: Values, predictions: Values, positive: int | str = 1) -> float:
    """Return the F1 of one label; 0 if it does not occur on either side."""
    truth, guess = _pair(labels, predictions)
    if isinstance(positive, str) != (truth.dtype.kind == "U"):
        raise ValueError(f"positive={positive!r} is not a label like {truth[0].item()!r}: give the label to score")
    return _f1(truth == positive, guess == positive)


def macro_f1(labels: Values, predictions: Values) -> float:
    """Return the mean F1 over the labels that occur on either side."""
    truth, guess = _pair(labels, predictions)
    return float(np.mean([_f1(truth == name, guess == name) for name in np.union1d(truth, guess)]))


def micro_f1(labels: Values, predictions: Values, without: Sequence[int | str] = ()) -> float:
    """Return the F1 over all labels except `without`, as KLUE's relations exclude `no_relation`."""
    truth, guess = _pair(labels, predictions)
    counted, claimed = (~np.isin(side, np.asarray(without, truth.dtype.type)) for side in (truth, guess))
    right = int(np.sum((truth == guess) & counted))
    total = int(counted.sum() + claimed.sum())
    return 2 * right / total if total else 0.0


def mcc(labels: Values, predictions: Values) -> float:
    """Return Matthews' correlation for any number of labels; 0 if either side has only one label."""
    truth, guess = _pair(labels, predictions)
    names = np.union1d(truth, guess)
    table = np.zeros((len(names), len(names)))
    np.add.at(table, (np.searchsorted(names, truth), np.searchsorted(names, guess)), 1)
    rows, columns, count = table.sum(1), table.sum(0), len(truth)
    spread = (count**2 - rows @ rows) * (count**2 - columns @ columns)
    return float((np.trace(table) * count - rows @ columns) / np.sqrt(spread)) if spread else 0.0


def pearson(labels: Values, predictions: Values) -> float:
    """Return the correlation of two lists of numbers; nan if one of them is constant."""
    return _correlation(*_numbers(labels, predictions))


def spearman(labels: Values, predictions: Values) -> float:
    """Return the correlation of the ranks, with mean ranks for ties; nan if one side is constant."""
    truth, guess = _numbers(labels, predictions)
    return _correlation(_ranks(truth), _ranks(guess))


_METRICS = (accuracy, f1, macro_f1, micro_f1, mcc, pearson, spearman)
METRICS: Mapping[str, Callable[..., float]] = {metric.__name__: metric for metric in _METRICS}

_BY_ACCURACY = "sst2 mnli qnli rte wnli snli xnli kornli nsmc klue_nli trec trec_fine sst5 swag".split()
# The metrics of each task; the first one selects the best run.
TASK_METRICS: Mapping[str, tuple[str, ...]] = {
    "cola": ("mcc",),
    "ax": ("mcc",),
    "mrpc": ("f1", "accuracy"),
    "qqp": ("f1", "accuracy"),
    "stsb": ("pearson", "spearman"),
    "korsts": ("spearman", "pearson"),
    "klue_ynat": ("macro_f1",),
    "klue_sts": ("pearson", "f1"),
    "klue_re": ("micro_f1",),
    # Your own data.
    "classification": ("accuracy", "macro_f1"),
    "regression": ("pearson", "spearman"),
    "sentences": ("spearman", "pearson"),
    "rank": ("spearman", "pearson"),
    **dict.fromkeys(_BY_ACCURACY, ("accuracy",)),
}


def score(task: str, labels: Values, predictions: Values) -> dict[str, float]:
    """Return the metrics of a task, from 0 to 1 (correlations from -1).

    For its F1, KLUE's similarities of 3 and more count as paraphrases.

    >>> score("mrpc", [1, 0, 1, 1], [1, 1, 0, 1])
    {'f1': 0.6666666666666666, 'accuracy': 0.5}
    """
    if task not in TASK_METRICS:
        raise ValueError(f"there are no metrics for the task {task!r}; expected one of {', '.join(TASK_METRICS)}")
    figures = {}
    for name in TASK_METRICS[task]:
        if task == "klue_sts" and name == "f1":
            truth, guess = _numbers(labels, predictions)
            figures[name] = _f1(truth >= 3, guess >= 3)
        elif name == "f1":
            truth, guess = _pair(labels, predictions)
            names = truth.dtype.kind == "U"
            if names and not {*truth.tolist(), *guess.tolist()} <= {"0", "1"}:
                raise ValueError(
                    f"labels such as {truth[0].item()!r}: {task} has the labels 0 and 1; for the F1 of another one use "
                    "f1(labels, predictions, positive=…)"
                )
            figures[name] = f1(labels, predictions, "1" if names else 1)
        elif task == "klue_re":
            if _pair(labels, predictions)[0].dtype.kind != "U":
                raise ValueError("klue_re leaves out the label no_relation: give names of labels, not numbers")
            figures[name] = micro_f1(labels, predictions, ("no_relation",))
        else:
            figures[name] = METRICS[name](labels, predictions)
    return figures


def _f1(truth: Bool[np.ndarray, "N"], guess: Bool[np.ndarray, "N"]) -> float:
    total = int(truth.sum() + guess.sum())
    return 2 * int((truth & guess).sum()) / total if total else 0.0


def _pair(labels: Values, predictions: Values) -> tuple[Shaped[np.ndarray, "N"], Shaped[np.ndarray, "N"]]:
    truth, guess = _two(labels, predictions)
    if (truth.dtype.kind == "U") != (guess.dtype.kind == "U"):
        raise ValueError(
            f"labels such as {truth[0].item()!r} cannot be compared with predictions such as {guess[0].item()!r}: "
            "give names on both sides, or numbers"
        )
    for side, values in (("labels", truth), ("predictions", guess)):
        if values.dtype.kind == "f" and not np.array_equal(values, np.round(values)):
            place = int(np.argmax(values != np.round(values)))
            raise ValueError(f"{side}[{place}] is {values[place]}: expected the number or the name of a label")
    return truth, guess


def _numbers(labels: Values, predictions: Values) -> tuple[Float64[np.ndarray, "N"], Float64[np.ndarray, "N"]]:
    truth, guess = _two(labels, predictions)
    if truth.dtype.kind == "U" or guess.dtype.kind == "U":
        raise ValueError(f"names such as {truth[0].item()!r} and {guess[0].item()!r} have no correlation: give numbers")
    truth, guess = truth.astype(np.float64), guess.astype(np.float64)
    if len(truth) < 2:
        raise ValueError("a correlation needs at least two examples; there is one")
    for side, values in (("labels", truth), ("predictions", guess)):
        if not np.isfinite(values).all():
            place = int(np.argmin(np.isfinite(values)))
            raise ValueError(f"{side}[{place}] is {values[place]}: expected a finite number; did the training diverge?")
    return truth, guess


def _two(labels: Values, predictions: Values) -> tuple[np.ndarray, np.ndarray]:
    truth, guess = (_names(np.asarray(side)) for side in (labels, predictions))
    if truth.shape != guess.shape or truth.ndim != 1:
        raise ValueError(
            f"labels of shape {truth.shape} and predictions of shape {guess.shape}: expected lists of equal length"
        )
    if not len(truth):
        raise ValueError("nothing to score: both lists are empty")
    for side, values in (("labels", truth), ("predictions", guess)):
        if values.dtype.kind not in "Ubiuf":
            raise ValueError(f"{side} such as {values.tolist()[0]!r}: expected all of them to be names, or numbers")
    return truth, guess


def _names(values: np.ndarray) -> np.ndarray:
    """Return names in an array of objects, such as a column of pandas, as an array of texts; others as they are."""
    if values.dtype.kind == "O" and all(isinstance(value, str) for value in values.tolist()):
        return values.astype(str)
    return values


def _correlation(first: Float[np.ndarray, "N"], second: Float[np.ndarray, "N"]) -> float:
    if (first == first[0]).all() or (second == second[0]).all():
        return float("nan")
    # Scaled first, so that squares neither underflow nor overflow.
    a, b = (_unit(side - side.mean()) for side in (first, second))
    return float(np.clip(a @ b, -1.0, 1.0))


def _unit(values: Float[np.ndarray, "N"]) -> Float[np.ndarray, "N"]:
    scaled = values / np.abs(values).max()
    return scaled / np.linalg.norm(scaled)


def _ranks(values: Float[np.ndarray, "N"]) -> Float64[np.ndarray, "N"]:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((last - counts + 1 + last) / 2)[place]
