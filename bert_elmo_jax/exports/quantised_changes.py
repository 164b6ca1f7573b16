"""Differences between the predictions of an exported ONNX model and its quantised copy, row by row."""

import os
import runpy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bert_elmo_jax.encoders.rows import shorten
from bert_elmo_jax.files import read_text

SHOWN = 20  # changed rows in a report
AT_ONCE = 32  # texts of one call
WHOLE_LINES = ("tag", "words", "network", "write")  # kinds


def read_lines(path: str | Path, kind: str) -> list[Any]:
    """Return the texts of a file, one per line, as `run.py` of this kind reads them; skip empty lines.

    `kind` is that of `PlainForward`. A tab separates two texts: each line of a reader has one, those of a sentence
    model none. Models that tag words, or write, read a line with its tabs as one text.
    """
    expected, sizes = {
        "read": ("two texts with a tab between them", [2]),
        "sentences": ("one text, without tabs", [1]),
    }.get(kind, ("a text, or two with a tab between them", [1, 2]))
    texts: list[Any] = []
    for number, line in enumerate(read_text(path).replace("\r\n", "\n").split("\n"), start=1):
        if not line.strip():
            continue
        parts = (line,) if kind in WHOLE_LINES else tuple(line.split("\t"))
        if len(parts) not in sizes or not all(part.strip() for part in parts):
            raise ValueError(f"{path}, line {number}: {shorten(line)} is not {expected}, none empty: correct the line")
        texts.append(parts if len(parts) == 2 else line)
    if not texts:
        raise ValueError(f"{path} has no texts: write {expected} on each line")
    return texts


def compare_quantised(folder: str | Path, texts: Sequence[Any]) -> list[str]:
    """Return the lines of a report on texts (pairs are tuples): rows that changed, and how far numbers moved.

    `folder` is one that `export_model(…, int8=True)` wrote.
    """
    folder = Path(folder)
    if not list(folder.glob("onnx/*_quantized.onnx")):
        raise ValueError(f"{folder} has no quantised model: export it with --int8")
    if not texts:
        raise ValueError("there are no texts to compare the quantised model on")
    parts = [texts[first : first + AT_ONCE] for first in range(0, len(texts), AT_ONCE)]
    before, after = ([one for part in parts for one in _predict(folder, part, flag)] for flag in ("", "1"))
    return list_changes(before, after)


def list_changes(before: Sequence[Any], after: Sequence[Any]) -> list[str]:
    """Return the lines of a report, given what two `run.py` print for each row.

    >>> list_changes([{"label": "good", "probability": 0.6}], [{"label": "bad", "probability": 0.7}])
    ['int8 changes 1 of 1 rows', "row 0: 'good' -> 'bad'"]
    >>> list_changes([[1.0, 2.0]], [[1.0, 2.5]])
    ['int8 moves numbers by up to 20% of the largest']
    """
    numbers = [np.asarray(_answers(one), float) for one in (*before, *after) if _is_numeric(_answers(one))]
    if len(numbers) == 2 * len(before):
        pairs = list(zip(numbers[: len(before)], numbers[len(before) :]))
        largest = max(float(np.abs(b).max()) for pair in pairs for b in pair)
        moved = max(float(np.abs(a - b).max()) for a, b in pairs)
        return [f"int8 moves numbers by up to {100 * moved / max(largest, 1e-9):.3g}% of the largest"]
    rows = [(number, _answers(a), _answers(b)) for number, (a, b) in enumerate(zip(before, after, strict=True))]
    changed = [row for row in rows if row[1] != row[2]]
    lines = [f"int8 changes {len(changed):,} of {len(rows):,} rows"]
    lines += [f"row {number}: {a!r} -> {b!r}" for number, a, b in changed[:SHOWN]]
    return lines


def _answers(prediction: Any) -> Any:
    """Return the part of a prediction that a change concerns: a label, several, an answer, tags, or numbers."""
    if isinstance(prediction, dict) and isinstance(prediction.get("values"), dict):
        return list(prediction["values"].values())
    if isinstance(prediction, dict):
        return prediction.get("label", prediction.get("answer", sorted(prediction)))
    if isinstance(prediction, list) and prediction and isinstance(prediction[0], list | tuple):
        return [tag for _, tag in prediction] if isinstance(prediction[0][0], str) else prediction
    return prediction


def _is_numeric(answer: Any) -> bool:
    while isinstance(answer, list) and answer:
        answer = answer[0]
    return isinstance(answer, float | int)


def _predict(folder: Path, texts: Sequence[Any], quantised: str) -> list[Any]:
    """Return the predictions of the folder's `run.py`."""
    runner = runpy.run_path(str(folder / "run.py"))  # an import would leave a __pycache__ in the folder
    with _environment("QUANTIZED", quantised):
        return list(runner["predict"](list(texts)))


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    previous = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name)
        if previous is not None:
            os.environ[name] = previous
