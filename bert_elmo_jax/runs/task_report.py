"""What the report of a fine-tuning run shows beside its curves: tables, mistakes, and attention over an example."""

import html
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np
from jaxtyping import Float

from bert_elmo_jax.report.tables import table
from bert_elmo_jax.inference.predictions import Number, softmax
from bert_elmo_jax.inference.task_model import TaskModel, to_example
from bert_elmo_jax.inference.task_network import TaskNetwork
from bert_elmo_jax.runs.task_scores import confusion_of, mistakes_of
from bert_elmo_jax.data.tasks.rows import make_rows
from bert_elmo_jax.data.tasks.task import Example
from bert_elmo_jax.evals import entities
from bert_elmo_jax.train.report import INK, PALE, number

SHOWN = 24  # labels of a table, pieces of an attention map: more cannot be read
LONGEST = 200  # characters of a mistake's text
SHADES = 8


def task_sections(
    model: TaskModel | TaskNetwork,
    dev: Sequence[Any],
    predictions: Sequence[Any],
    figures: Mapping[str, Mapping[str, float]],
) -> list[tuple[str, str]]:
    """Titles and HTML: the scores, what was taken for what, the surest mistakes.

    Of a BERT also its attention over an example, of a network how it weighs the layers of its encoder.
    """
    rows = [[part, name, number(value)] for part, values in figures.items() for name, value in values.items()]
    sections = [("Scores of the best model", table(["", "figure", ""], rows))]
    task = model.task
    if task.kind == "classification":
        right, given = [example.label for example in dev], [prediction.label for prediction in predictions]
        sections.append(("Confusion (rows: right, columns: predicted)", confusion(task.labels, right, given)))
    elif task.kind == "tags" and task.entities:
        scores = entities.score([list(e.tags) for e in dev], [list(p.tags) for p in predictions])
        names = ("precision", "recall", "f1", "gold", "predicted", "correct")
        body = [[kind, *(number(of[name]) for name in names)] for kind, of in scores["types"].items()]  # type: ignore[literal-required]
        sections.append(("Entities", table(["type", *names], body)))
    elif task.kind == "tags":
        pairs = [(a, b) for e, p in zip(dev, predictions) for a, b in zip(e.tags, p.tags)]
        sections.append(
            ("Confusion (rows: right, columns: predicted)", confusion(task.labels, *map(list, zip(*pairs))))
        )
    elif task.kind == "regression":
        sections.append(("Predicted (up) beside right (across)", scatter([e.label for e in dev], predictions)))
    mistakes = mistakes_of(task, dev, predictions)
    if mistakes:
        sure = "off by" if task.kind == "regression" else "sure"
        body = [[PurePath(m.where).name, _short(m.text), m.right, m.predicted, number(m.sure)] for m in mistakes]
        title = "The largest errors" if task.kind == "regression" else "The surest mistakes"
        sections.append((title, table(["where", "text", "right", "predicted", sure], body)))
    if isinstance(model, TaskNetwork):
        return [*sections, *layer_weights(model)]
    if model.config.implementation == "reference":
        chosen = next((e for e in dev if mistakes and f"{e.file}:{e.line}" == mistakes[0].where), dev[0])
        where = f"{PurePath(chosen.file).name}:{chosen.line}"
        sections.append((f"Attention over {where}, mean of the heads", attention(model, chosen)))
    return sections


def layer_weights(model: TaskNetwork) -> list[tuple[str, str]]:
    """How the mixtures of a network weigh the layers of its encoder: softmax of the weights, and γ."""
    rows = []
    for place, mix in model.params.get("mix", {}).items():
        shares = softmax(np.asarray(mix["weights"], np.float32))
        rows.append([place, *(f"{share:.3f}" for share in shares), f"{float(mix['gamma']):.3f}"])
    if not rows:
        return []
    return [("Weights of the encoder's layers", table(["at", *map(str, model.config.mixed_layers), "γ"], rows))]


def confusion(labels: Sequence[str], right: Sequence[str], given: Sequence[str]) -> str:
    """A table of counts; of many labels, the confusions that are most frequent.

    >>> confusion(["0", "1"], ["0", "1"], ["1", "1"]).count("<tr>")
    3
    """
    counts = confusion_of(labels, right, given)
    if len(labels) <= SHOWN:
        return table(["", *labels], [[f"{a}", *(counts[a, b] or "·" for b in labels)] for a in labels])
    often = sorted(((n, a, b) for (a, b), n in counts.items() if a != b and n), reverse=True)[:SHOWN]
    return table(["right", "predicted", "times"], [[a, b, n] for n, a, b in often])


def scatter(right: Sequence[float], predictions: Sequence[Number]) -> str:
    """An SVG with a dot for each example.

    >>> scatter([1.0, 2.0], [Number(1.5), Number(2.0)]).count("<circle")
    2
    """
    given = [prediction.value for prediction in predictions]
    low, high = min(*right, *given), max(*right, *given)
    scale = 300 / ((high - low) or 1.0)
    dots = "".join(
        f'<circle cx="{10 + (x - low) * scale:.1f}" cy="{310 - (y - low) * scale:.1f}" r="2" fill="{INK}" '
        'opacity=".5"/>'
        for x, y in zip(right, given)
    )
    line = f'<line x1="10" y1="310" x2="310" y2="10" stroke="{PALE}"/>'
    return (
        f'<svg viewBox="0 0 320 330" role="img" style="max-width:24rem">{line}{dots}<text x="10" y="326">{number(low)}'
        f'</text><text x="310" y="326" text-anchor="end">{number(high)}</text></svg>'
    )


def attention(model: TaskModel, example: Any) -> str:
    """Maps of an example's first row, a layer each: which piece (left) looks at which (top)."""
    names, maps = attention_maps(model, example)
    drawn = "".join(
        f"<figure><figcaption>layer {n + 1}</figcaption>{heat(layer, names[:SHOWN])}</figure>"
        for n, layer in enumerate(maps)
    )
    cut = f"<p>The first {SHOWN} of {len(names)} pieces.</p>" if len(names) > SHOWN else ""
    return f"{cut}<main>{drawn}</main>"


def attention_maps(model: TaskModel, example: Any) -> tuple[list[str], Float[np.ndarray, "L T T"]]:
    """The pieces of an example's first row, and of each layer which of them (row) looks at which: the heads' mean.

    An example is one of a task file, or what `predict` takes.
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


def heat(values: Float[np.ndarray, "T T"], names: Sequence[str]) -> str:
    """An SVG of a matrix with named rows and columns, darker where it is larger.

    >>> heat(np.eye(2, dtype=np.float32), ["[CLS]", "배"]).count("<path")
    1
    """
    size, left = 14, 90
    kept = values[: len(names), : len(names)]
    shades = np.ceil(kept / max(float(kept.max()), 1e-9) * SHADES).astype(int)
    paths = []
    for shade in range(1, SHADES + 1):
        cells = np.argwhere(shades == shade)
        if len(cells):
            squares = "".join(f"M{left + c * size} {left + r * size}h{size}v{size}h-{size}z" for r, c in cells.tolist())
            paths.append(f'<path d="{squares}" fill="{INK}" opacity="{shade / SHADES:.2f}"/>')
    middle = [left + size * n + size * 0.75 for n in range(len(names))]
    words = "".join(
        f'<text x="{left - 4}" y="{at:.1f}" text-anchor="end">{html.escape(name)}</text>'
        f'<text transform="translate({at:.1f} {left - 4}) rotate(-90)">{html.escape(name)}</text>'
        for name, at in zip(names, middle)
    )
    whole = left + size * len(names)
    return f'<svg viewBox="0 0 {whole} {whole}" role="img">{"".join(paths)}{words}</svg>'


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
