"""Remarks of a report: what in the metrics of a run deserves a second look."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bert_elmo_jax.report.language import Phrase
from bert_elmo_jax.report.svg import format_number

JUMP = 1.5  # a perplexity this many times the best one before, or a loss higher by its logarithm, is a jump


def find_remarks(lines: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for steps that updated nothing, and for each held-out loss that jumped or began as infinity.

    >>> lines = [{"step": 1, "held_out/perplexity": 4.0}, {"step": 2, "held_out/perplexity": 8.0}]
    >>> find_remarks(lines)
    ['held_out/perplexity rose from 4 (step 1, the best before) to 8 (step 2).']
    """
    lines = list(lines)
    return [*_skipped(lines), *_jumps(lines)]


def _skipped(lines: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence about steps whose loss or gradient was not finite."""
    steps = [
        line["step"] for line in lines if {"loss", "gradient_norm"} & {n for n, value in line.items() if value is None}
    ]
    if steps:
        shown = ", ".join(f"{step:,}" for step in steps[:5]) + (", …" if len(steps) > 5 else "")
        yield Phrase("The loss or a gradient was not finite in {count} steps ({shown}), which updated nothing.",
                     count=f"{len(steps):,}", shown=shown)  # fmt: skip


def _jumps(lines: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence about the largest jump of each held-out loss or perplexity, or its beginning at infinity."""
    best: dict[str, tuple[float, int]] = {}
    jumps: dict[str, tuple[float, str]] = {}
    begun: dict[str, str] = {}
    for line in lines:
        for name, value in line.items():
            # A loss may have an accuracy, such as held_out/nsp and held_out/nsp_accuracy.
            if "/" not in name or not (name.endswith(("perplexity", "loss")) or f"{name}_accuracy" in line):
                continue
            number, step = math.inf if value is None else float(value), int(line["step"])
            low, before = best.get(name, (number, step))
            if low == number == math.inf and name not in begun:
                begun[name] = Phrase("{name} was not finite at its first measurement (step {step}).",
                                     name=name, step=f"{step:,}")  # fmt: skip
            rise = number / low if name.endswith("perplexity") else math.exp(min(number - low, 700.0))
            if rise > max(JUMP, jumps.get(name, (0.0, ""))[0]):
                values = {"name": name, "low": format_number(low), "before": f"{before:,}", "step": f"{step:,}"}
                reached = "a number that is not finite" if value is None else "{number}"
                template = "{name} rose from {low} (step {before}, the best before) to " + reached + " (step {step})."
                jumps[name] = rise, Phrase(template, number=format_number(number), **values)
            if number <= low:
                best[name] = number, step
    yield from begun.values()
    yield from (text for _, text in jumps.values())
