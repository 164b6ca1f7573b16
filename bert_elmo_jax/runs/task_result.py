"""The first sections of a task's report: its result, compared with simple baselines, and the data."""

import html
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np

from bert_elmo_jax.data.tasks.task import OWN_FILES, Task
from bert_elmo_jax.evals.entities import entities
from bert_elmo_jax.evals.intervals import Interval
from bert_elmo_jax.inference.model_kinds import find_kind
from bert_elmo_jax.report.language import Phrase, Translate, english
from bert_elmo_jax.report.page import draw_table
from bert_elmo_jax.runs.baselines import fit_baselines
from bert_elmo_jax.runs.task_scores import figures_of, find_interval, score_name, score_unknown
from bert_elmo_jax.runs.trainable import Section

SHOWN = 24  # the most labels of a table
TASK_NAMES = {
    "classification": "Text classification", "regression": "Regression on texts", "choice": "Choice of an ending",
    "questions": "Reading comprehension", "sentences": "Sentence vectors", "tags": "Tagging of words",
    "entities": "Named entities", "rank": "Ranking of passages", "trees": "Dependency parsing",
}  # fmt: skip


FLAG = re.compile(r"--\w+=\w+")
BIASED = "The rows of dev chose the checkpoint, so this score is a little too good; --test=FILE gives a fair one."
NO_BETTER = "No better than the baseline “{name}” ({value}): this model has learned nothing more."
WORSE = "Worse than the baseline “{name}” ({value}): train longer, with another learning rate or model, or more data."
TOO_FEW = "The interval includes the baseline “{name}” ({value}): these rows do not show that the model is better."


class PartScores(NamedTuple):
    """The scores of the model and of each baseline on one part of the data."""

    size: Phrase  # rows, words or entities, and what one of them is worth
    figures: Mapping[str, float]
    interval: Interval | None
    baselines: Mapping[Phrase, Mapping[str, float]]


def compare_with_baselines(
    task: Task, train: Sequence[Any], parts: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]
) -> dict[str, PartScores]:
    """Return the scores of each part (examples, predictions), with the scores of baselines fitted to `train`."""
    baselines, compared = fit_baselines(task, train), {}
    for part, (examples, predictions) in parts.items():

        def score(predictions: Sequence[Any], examples: Sequence[Any] = examples) -> dict[str, float]:
            return {**figures_of(task, examples, predictions), **score_unknown(task, train, examples, predictions)}

        figures = score(predictions)
        interval = find_interval(task, examples, predictions)
        scores = {name: score(predict(examples)) for name, predict in baselines.items()}
        compared[part] = PartScores(describe_size(task, examples), figures, interval, scores)
    return compared


def describe_size(task: Task, examples: Sequence[Any]) -> Phrase:
    """Return the number of rows, and what one more right row is worth.

    >>> describe_size(Task("sst2", "classification"), [None] * 30)
    '30 rows: one row is 3.3 points'
    """
    count = len(examples)
    if task.kind == "tags" and task.entities:
        number = sum(len(entities(list(example.tags))) for example in examples)
        return Phrase("{count} sentences with {number} entities: one entity is {points} points of recall",
                      count=f"{count:,}", number=f"{number:,}", points=_points(number))  # fmt: skip
    if task.kind in ("tags", "trees"):
        number = sum(len(example.words) for example in examples)
        return Phrase("{count} sentences of {number} words: one word is {points} points",
                      count=f"{count:,}", number=f"{number:,}", points=_points(number))  # fmt: skip
    if task.kind in ("regression", "sentences"):
        return Phrase("{count} rows", count=f"{count:,}")
    if task.kind == "questions":
        return Phrase("{count} questions: one question is {points} points", count=f"{count:,}", points=_points(count))
    if score_name(task) == "accuracy":
        return Phrase("{count} rows: one row is {points} points", count=f"{count:,}", points=_points(count))
    return Phrase("{count} rows: one row is {points} points of accuracy", count=f"{count:,}", points=_points(count))


def _points(count: int) -> str:
    """Return the points that one of so many is worth.

    >>> _points(30), _points(7), _points(1204), _points(1)
    ('3.3', '14', '0.083', '100')
    """
    points = 100 / max(count, 1)
    return f"{points:.0f}" if points >= 10 else f"{points:.2g}"


def show_score(value: float) -> str:
    """Return a score with four decimals, as a run prints it; a dash for an undefined one.

    >>> show_score(23 / 30), show_score(float("nan"))
    ('0.7667', '–')
    """
    return "–" if math.isnan(value) else f"{value:.4f}"


def list_lines(score: str, compared: Mapping[str, PartScores]) -> list[str]:
    """Return the lines that a run prints: figures, and then interval, size and baselines of the score."""
    lines = []
    for part, scores in compared.items():
        lines.append(f"{part}: {', '.join(f'{name} {value:.4f}' for name, value in scores.figures.items())}")
        clauses = [str(scores.size)]
        if scores.interval is not None:
            clauses.insert(0, "{} is between {} and {} (95%)".format(score, *map(show_score, scores.interval)))
        clauses += [f"{name}: {show_score(figures[score])}" for name, figures in scores.baselines.items()]
        lines.append(f"{part}: {'; '.join(clauses)}")
    return lines


def to_json(compared: Mapping[str, PartScores]) -> dict[str, Any]:
    """Return intervals and baselines for `result.json`."""
    return {
        part: {
            "size": str(scores.size), "interval": scores.interval,
            "baselines": {str(name): figures for name, figures in scores.baselines.items()},
        }
        for part, scores in compared.items()
    }  # fmt: skip


def draw_result(
    score: str, compared: Mapping[str, PartScores], step: int | None, steps: int, translate: Translate = english
) -> Section:
    """Return the first section: the score of the best checkpoint, its interval, and the table with the baselines."""
    lines = []
    for part, scores in compared.items():
        headline = translate("{score} {value} on {part}", score=score, value=show_score(scores.figures[score]),
                             part=part)  # fmt: skip
        lines.append(f'<p class="score">{html.escape(headline)}</p>')
        sentences = [translate(scores.size)]
        if scores.interval is not None:
            low, high = map(show_score, scores.interval)
            sentences.insert(0, translate("95% interval: {low} to {high}", low=low, high=high))
        lines.append(f"<p>{html.escape('. '.join(sentences))}.</p>")
        if judgement := judge(score, scores, translate):
            lines.append(f"<p>{html.escape(judgement)}</p>")
    if step is not None:
        best = translate("The best checkpoint, of step {step} of {steps}, chosen by {score} on dev.",
                         step=f"{step:,}", steps=f"{steps:,}", score=score)  # fmt: skip
        biased = "" if "test" in compared else translate(BIASED)
        text = FLAG.sub(r"<code>\g<0></code>", html.escape(f"{best} {biased}"))
        lines.append(f'<p class="about">{text}</p>')
    return translate("Result"), "".join(lines) + _draw_scores(compared, translate)


def judge(score: str, scores: PartScores, translate: Translate = english) -> str:
    """Return a sentence that compares the score with the best baseline, or "" without one."""
    values = {name: figures[score] for name, figures in scores.baselines.items() if not math.isnan(figures[score])}
    if not values:
        return ""
    name = max(values, key=lambda name: values[name])
    shown = {"name": translate(name), "value": show_score(values[name])}
    reached = scores.figures[score]
    if reached <= values[name]:
        return translate(NO_BETTER if reached == values[name] else WORSE, **shown)
    if scores.interval is not None and values[name] >= scores.interval[0]:
        return translate(TOO_FEW, **shown)
    return translate("Better than the best baseline, “{name}” ({value}).", **shown)


def _draw_scores(compared: Mapping[str, PartScores], translate: Translate) -> str:
    rows: list[list[str]] = []
    for part, scores in compared.items():
        for name, value in scores.figures.items():
            columns = (value, *(figures.get(name) for figures in scores.baselines.values()))
            rows.append([part, name, *("" if column is None else show_score(column) for column in columns)])
    names = next(iter(compared.values())).baselines
    return draw_table(["", translate("score"), translate("this model"), *map(translate, names)], rows)


def name_task(task: Task, translate: Translate = english) -> str:
    """Return the task for a title: its kind, and the name of a public data set.

    >>> name_task(Task("sst2", "classification")), name_task(Task("regression", "regression"))
    ('Text classification (sst2)', 'Regression on texts')
    """
    kind = "rank" if task.name == "rank" else "entities" if task.entities else task.kind
    return translate(TASK_NAMES[kind]) + ("" if task.name in OWN_FILES else f" ({task.name})")


def name_model(model: Any) -> str:
    """Return the name of a loaded model's family, without its article, or of its network.

    >>> from types import SimpleNamespace
    >>> from bert_elmo_jax.families.bert.config import BertConfig
    >>> name_model(SimpleNamespace(config=BertConfig(vocab_size=10)))
    'BERT'
    """
    called = find_kind(model.config).called
    name = called.partition(" ")[2]
    return name if name[0].isupper() else called  # BERT, but a tagger


def title_run(task: Task, model: Any, file: str, translate: Translate = english) -> str:
    """Return the title of a report: task, model and file."""
    names = {"task": name_task(task, translate), "model": translate(name_model(model))}
    title = translate("{task} with {model}", **names)
    return f"{title}: {PurePath(file).name}" if task.name in OWN_FILES else title


def draw_task_data(
    parts: Mapping[str, Sequence[Any]],
    task: Task,
    files: Mapping[str, Mapping[str, Any]],
    translate: Translate = english,
) -> Section:
    """Return the section on the data: file and rows of each part, and the counts of its labels."""
    rows = []
    for part, examples in parts.items():
        source = files.get(part, {})
        rows.append([part, f"{len(examples):,}", source.get("file", ""), str(source.get("fingerprint", ""))[:12]])
    table = draw_table(["", *map(translate, ("rows", "file", "fingerprint"))], rows, stacked=True)
    return translate("Data"), table + _draw_labels(parts, task, translate)


def _draw_labels(parts: Mapping[str, Sequence[Any]], task: Task, translate: Translate) -> str:
    names = list(parts)
    if task.kind in ("regression", "sentences"):
        values = {
            part: [float(one.label) for one in examples if one.label is not None] for part, examples in parts.items()
        }
        rows = [
            [translate(name), *(f"{measure(values[part]):.4g}" if values[part] else "–" for part in names)]
            for name, measure in (("lowest", min), ("mean", np.mean), ("highest", max))
        ]
        return draw_table([translate("label"), *names], rows)
    counts = {part: Counter(_list_labels(task, examples)) for part, examples in parts.items()}
    labels = sorted(set(chain(*counts.values())), key=lambda label: -sum(part[label] for part in counts.values()))
    if not labels:
        return ""
    rows = [
        [translate(label) if isinstance(label, Phrase) else label, *(f"{counts[part][label]:,}" for part in names)]
        for label in labels[:SHOWN]
    ]
    hidden = len(labels) - SHOWN
    more = translate("{count} more labels are not shown.", count=f"{hidden:,}") if hidden > 0 else ""
    return draw_table([translate("label"), *names], rows) + (f"<p>{html.escape(more)}</p>" if more else "")


def _list_labels(task: Task, examples: Sequence[Any]) -> Iterable[str]:
    if task.kind == "tags" and task.entities:
        return (kind for example in examples for kind, _, _ in entities(list(example.tags)))
    if task.kind == "tags":
        return chain.from_iterable(example.tags for example in examples)
    if task.kind == "trees":
        return chain.from_iterable(example.relations for example in examples)
    if task.kind == "questions":
        return (Phrase("with an answer") if example.answers else Phrase("without an answer") for example in examples)
    if task.kind == "choice":
        return (Phrase("choice {number}", number=example.label + 1) for example in examples)
    return (example.label for example in examples)
