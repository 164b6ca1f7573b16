"""Sections of a fine-tuning run's report: scores, confusions, mistakes, attention maps, layer weights."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import PurePath
from typing import Any

import numpy as np
from jaxtyping import Float

from bert_elmo_jax.data.tasks.rows import make_rows
from bert_elmo_jax.data.tasks.task import Example
from bert_elmo_jax.evals import entities
from bert_elmo_jax.inference.predictions import softmax
from bert_elmo_jax.inference.task_model import TaskModel, to_example
from bert_elmo_jax.inference.task_network import TaskNetwork
from bert_elmo_jax.report.figures import Grid, Scatter
from bert_elmo_jax.report.page import draw_figures, draw_table
from bert_elmo_jax.report.svg import format_number
from bert_elmo_jax.runs.task_scores import count_confusions, find_mistakes

SHOWN = 24  # the most labels of a table and pieces of an attention map
LONGEST = 200  # characters of a mistake's text
Section = tuple[str, str]


def task_sections(
    model: TaskModel | TaskNetwork,
    dev: Sequence[Any],
    predictions: Sequence[Any],
    scores: Mapping[str, Mapping[str, float]],
) -> list[Section]:
    """Return sections (heading, HTML): scores, confusions and the mistakes with the highest probability.

    A task model adds its attention over an example, a task network its weights of the encoder's layers.
    """
    task = model.task
    rows = [[part, name, format_number(value)] for part, values in scores.items() for name, value in values.items()]
    sections = [("Scores of the best model", draw_table(["", "score", ""], rows))]
    if task.kind == "regression":
        points = [(float(example.label), prediction.value) for example, prediction in zip(dev, predictions)]
        sections.append(("Predictions", draw_figures([Scatter("predicted (up), true (across)", points)])))
    elif task.kind == "classification":
        true, predicted = [example.label for example in dev], [prediction.label for prediction in predictions]
        sections.append(_confusion_section(task.labels, true, predicted))
    elif task.kind == "tags":
        true_tags, predicted_tags = [list(e.tags) for e in dev], [list(p.tags) for p in predictions]
        if task.entities:
            names = ("precision", "recall", "f1", "gold", "predicted", "correct")
            types: Mapping[str, Any] = entities.score(true_tags, predicted_tags)["types"]
            cells = [[kind, *(format_number(of[name]) for name in names)] for kind, of in types.items()]
            sections.append(("Entities", draw_table(["type", *names], cells)))
        else:
            sections.append(_confusion_section(task.labels, [*chain(*true_tags)], [*chain(*predicted_tags)]))
    mistakes = find_mistakes(task, dev, predictions)
    if mistakes:
        unit, title = "sure", "The most confident mistakes"
        if task.kind == "regression":
            unit, title = "off by", "The largest errors"
        cells = [
            [PurePath(m.where).name, _shorten(m.text), m.right, m.predicted, format_number(m.sure)] for m in mistakes
        ]
        sections.append((title, draw_table(["where", "text", "right", "predicted", unit], cells)))
    if isinstance(model, TaskNetwork):
        return [*sections, *_layer_weights(model)]
    if model.has_maps:
        chosen = next((e for e in dev if mistakes and f"{e.file}:{e.line}" == mistakes[0].where), dev[0])
        where = f"{PurePath(chosen.file).name}:{chosen.line}"
        sections.append((f"Attention over {where}, mean of the heads", draw_attention(model, chosen)))
    return sections


def draw_confusions(labels: Sequence[str], true: Sequence[str], predicted: Sequence[str]) -> str:
    """Return an HTML table of counts; for more than 24 labels, the most frequent confusions.

    >>> draw_confusions(["0", "1"], ["0", "1"], ["1", "1"]).count("<tr>")
    3
    """
    counts = count_confusions(labels, true, predicted)
    if len(labels) <= SHOWN:
        return draw_table(["", *labels], [[a, *(counts[a, b] or "·" for b in labels)] for a in labels])
    often = sorted(((n, a, b) for (a, b), n in counts.items() if a != b and n), reverse=True)[:SHOWN]
    return draw_table(["right", "predicted", "times"], [[a, b, n] for n, a, b in often])


def draw_attention(model: TaskModel, example: Any) -> str:
    """Return one map per layer of an example's first row: how much each piece (left) attends to each (top)."""
    names, maps = attention_maps(model, example)
    shown = maps[:, :SHOWN, :SHOWN]
    figures = [
        Grid(f"layer {n}", names[:SHOWN], names[:SHOWN], layer / max(float(layer.max()), 1e-9))
        for n, layer in enumerate(shown, start=1)
    ]
    cut = f"<p>The first {SHOWN} of {len(names)} pieces.</p>" if len(names) > SHOWN else ""
    return cut + draw_figures(figures)


def attention_maps(model: TaskModel, example: Any) -> tuple[list[str], Float[np.ndarray, "L T T"]]:
    """Return the pieces of an example's first row, and each layer's attention between them, averaged over heads.

    The example is one of a task file, or an input of `predict`.
    """
    if model.config.implementation != "reference":
        raise ValueError(
            f"{model.source} was loaded with {model.config.implementation} attention, which keeps no maps: load it "
            'with implementation="reference"'
        )
    whole = example if isinstance(example, Example) else to_example(model.task, example, 0)
    row = make_rows(model.task, [whole], model.tokenizer, labelled=False)[0]
    ids, types = row.ids[0][None], row.types[0][None]
    maps: Any = model.forward(ids, types).attentions
    return [model.tokenizer.tokens[i] for i in ids[0]], np.asarray(maps, np.float32)[:, 0].mean(axis=1)


def _confusion_section(labels: Sequence[str], true: Sequence[str], predicted: Sequence[str]) -> Section:
    return "Confusion (rows: right, columns: predicted)", draw_confusions(labels, true, predicted)


def _layer_weights(model: TaskNetwork) -> list[Section]:
    """Return the softmax of the weights and γ of every mix of layers in a network."""
    rows = []
    for name, mix in model.params.get("mix", {}).items():
        shares = softmax(np.asarray(mix["weights"], np.float32))
        rows.append([name, *(f"{share:.3f}" for share in shares), f"{float(mix['gamma']):.3f}"])
    if not rows:
        return []
    return [("Weights of the encoder's layers", draw_table(["at", *map(str, model.config.mixed_layers), "γ"], rows))]


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
