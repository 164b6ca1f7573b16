"""Scores of a task's predictions, as its official scorer computes them, and the sections of the run's report."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePath
from typing import Any

import numpy as np
from jaxtyping import Float

from bert_elmo_jax.data.tasks.examples import Question
from bert_elmo_jax.data.tasks.rows import make_rows
from bert_elmo_jax.data.tasks.task import Example, Task
from bert_elmo_jax.evals import entities, glue, squad
from bert_elmo_jax.inference.predictions import AnswerSpan, Choice, Label, Number, Prediction, Tags, softmax
from bert_elmo_jax.inference.task_model import Predictor, TaskModel, to_example
from bert_elmo_jax.inference.task_network import TaskNetwork
from bert_elmo_jax.report.figures import Grid, Scatter
from bert_elmo_jax.report.page import draw_figures, draw_table
from bert_elmo_jax.report.svg import format_number

REACH = 6  # words shown on each side of a wrong one
NEVER = 1e9  # larger than any score
ANSWERS: dict[type, str] = {Number: "value", Choice: "choice", Label: "label"}
SHOWN = 24  # the most labels of a table and pieces of an attention map
LONGEST = 200  # characters of a mistake's text
Section = tuple[str, str]


@dataclass(frozen=True)
class Mistake:
    """A wrong prediction: file and line, text, right and predicted answer, probability (or a number's error).

    >>> Mistake("dev.tsv:2", "정말 재미있다", "1", "0", 0.99).sure
    0.99
    """

    where: str
    text: str
    right: str
    predicted: str
    sure: float


def score_name(task: Task) -> str:
    """Return the name of the score that chooses the best model.

    >>> from bert_elmo_jax.data.tasks.task import task_named
    >>> [score_name(task_named(name)) for name in ("cola", "stsb", "uner", "ud_upos", "squad")]
    ['mcc', 'pearson', 'f1', 'accuracy', 'f1']
    """
    if task.kind == "tags":
        return "f1" if task.entities else "accuracy"
    if task.kind == "questions":
        return "best_f1" if task.unanswerable else "f1"  # with the threshold for no answer that is best on dev
    return glue.TASK_METRICS[_find_metrics(task)][0]


def list_scores(task: Task) -> list[str]:
    """Return the names of the scores that `figures_of` may give, also before the labels are known."""
    if task.kind == "tags":
        names = ["precision", "recall", "accuracy"] if task.entities else []
    elif task.kind == "questions":
        parts = [f"{part}_{name}" for part in ("HasAns", "NoAns", "best") for name in ("exact", "f1")]
        names = ["exact_match", "exact", "f1", *parts, "null_threshold"]
    else:
        names = [*glue.TASK_METRICS[_find_metrics(task)], *glue.TASK_METRICS.get(task.name, ())]
        names += ["accuracy"] if task.kind == "classification" else []
    return list(dict.fromkeys([score_name(task), *names]))


def _find_metrics(task: Task) -> str:
    """Return the key of the task in `evals.glue.TASK_METRICS`."""
    if task.name in ("mrpc", "qqp") and set(task.labels) != {"0", "1"}:
        return "classification"
    return task.name if task.name in glue.TASK_METRICS else task.kind


def figures_of(task: Task, examples: Sequence[Any], predictions: Sequence[Any]) -> dict[str, float]:
    """Return the scores of predictions; `null_threshold` is the best threshold for no answer to a question.

    >>> from bert_elmo_jax.data.tasks import TextExample
    >>> task = Task("sst2", "classification", labels=("0", "1"))
    >>> examples = [TextExample("…", None, label, None, "dev.tsv", 2) for label in ("0", "1")]
    >>> figures_of(task, examples, [Label("1", 0.5, {}), Label("1", 0.5, {})])
    {'accuracy': 0.5}
    """
    if task.kind == "questions":
        figures = _answers(task, examples, predictions)
        return {name: float(value) for name, value in figures.items() if "total" not in name and name != "missing"}
    if task.kind == "tags":
        gold, predicted = [list(e.tags) for e in examples], [list(p.tags) for p in predictions]
        if task.entities:
            scores = entities.score(gold, predicted)
            return {name: scores[name] for name in ("f1", "precision", "recall", "accuracy")}
        return {"accuracy": glue.accuracy(list(chain(*gold)), list(chain(*predicted)))}
    right: list[Any] = [example.label for example in examples]
    answers: list[Any] = [getattr(prediction, ANSWERS[type(prediction)]) for prediction in predictions]
    name = _find_metrics(task)
    if task.kind == "classification" and any(metric == "f1" for metric in glue.TASK_METRICS[name]):
        right, answers = ([int(label) for label in side] for side in (right, answers))
    figures = glue.score(name, right, answers)
    if task.kind == "classification" and name != "classification":
        figures.setdefault("accuracy", glue.accuracy(right, answers))
    return figures


def find_mistakes(task: Task, examples: Sequence[Any], predictions: Sequence[Any], most: int = 10) -> list[Mistake]:
    """Return the mistakes with the highest probability, highest first; for a regression the largest errors."""
    mistakes: list[Mistake | None] = []
    for example, prediction in zip(examples, predictions):
        if isinstance(prediction, Tags):
            mistakes += _wrong_words(example, prediction)
        else:
            mistakes.append(_mistake(task, example, prediction))
    return sorted(filter(None, mistakes), key=lambda mistake: -mistake.sure)[:most]


def _answers(task: Task, questions: Sequence[Question], predictions: Sequence[AnswerSpan]) -> dict[str, float]:
    version = "v2.0" if task.unanswerable else "1.1"
    qas = [
        {"id": question.id, "answers": [{"text": answer.text} for answer in question.answers]} for question in questions
    ]
    data: Mapping[str, Any] = {"version": version, "data": [{"paragraphs": [{"qas": qas}]}]}
    ids = [question.id for question in questions]
    answers = {number: prediction.answer for number, prediction in zip(ids, predictions)}
    if not task.unanswerable:
        return squad.score(data, answers, rules="korquad" if task.name in ("korquad", "klue_mrc") else "squad1")
    figures = squad.score(data, answers)
    # The threshold is chosen among the best answers that are not empty, with and without the current threshold.
    best = {n: next((c.answer for c in p.n_best if c.answer), "") for n, p in zip(ids, predictions)}
    doubts = {number: max(min(prediction.null_score, NEVER), -NEVER) for number, prediction in zip(ids, predictions)}
    tuned = squad.score(data, best, doubts)
    threshold = tuned["best_f1_thresh"]
    if threshold not in doubts.values():  # the script's own value for "no answer is best", meant for probabilities
        threshold = -NEVER
    return figures | {name: tuned[name] for name in ("best_exact", "best_f1")} | {"null_threshold": threshold}


def _mistake(task: Task, example: Any, prediction: Prediction) -> Mistake | None:
    where = f"{example.file}:{example.line}"
    if isinstance(prediction, Number):
        right = example.label / (task.top_score or 1.0)
        return Mistake(where, _text(example), f"{right:g}", str(prediction), abs(prediction.value - right))
    if isinstance(prediction, AnswerSpan):
        rules = task.name == "korquad"
        right = [squad.normalize(a.text, korean=rules) for a in example.answers] or [""]
        if squad.normalize(prediction.answer, korean=rules) in right:
            return None
        shown = " / ".join(dict.fromkeys(answer.text for answer in example.answers)) or "(no answer)"
        return Mistake(where, example.text, shown, prediction.answer or "(no answer)", prediction.probability)
    if isinstance(prediction, Choice):
        sure = prediction.probabilities[prediction.choice]
        wrong = Mistake(where, example.text, example.choices[example.label], prediction.text, sure)
        return None if prediction.choice == example.label else wrong
    assert isinstance(prediction, Label)
    wrong = Mistake(where, _text(example), example.label, prediction.label, prediction.probability)
    return None if prediction.label == example.label else wrong


def _wrong_words(sentence: Any, prediction: Tags) -> list[Mistake]:
    mistakes, words = [], sentence.words
    each = zip(sentence.lines, sentence.tags, prediction.tags, prediction.probabilities)
    for n, (line, right, tag, sure) in enumerate(each):
        if right != tag and not math.isnan(sure):
            around = [*words[max(0, n - REACH) : n], f"[{words[n]}]", *words[n + 1 : n + 1 + REACH]]
            mistakes.append(Mistake(f"{sentence.file}:{line}", " ".join(around), right, tag, sure))
    return mistakes


def _text(example: Any) -> str:
    return example.text if example.pair is None else f"{example.text} ‖ {example.pair}"


def task_sections(
    model: Predictor, dev: Sequence[Any], predictions: Sequence[Any], scores: Mapping[str, Any]
) -> list[Section]:
    """Return sections (heading, HTML): scores, confusions, mistakes, and attention or the weights of layers."""
    task = model.task
    rows = [[part, name, format_number(value)] for part, values in scores.items() for name, value in values.items()]
    sections = [("Scores of the best model", draw_table(["", "score", ""], rows))]
    if task.kind in ("regression", "sentences"):
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
        numbers = task.kind in ("regression", "sentences")
        unit, title = ("off by", "The largest errors") if numbers else ("sure", "The most confident mistakes")
        cells = []
        for m in mistakes:
            text = m.text if len(m.text) <= LONGEST else f"{m.text[: LONGEST - 1]}…"
            cells.append([PurePath(m.where).name, text, m.right, m.predicted, format_number(m.sure)])
        sections.append((title, draw_table(["where", "text", "right", "predicted", unit], cells)))
    if isinstance(model, TaskNetwork):
        return [*sections, *_layer_weights(model)]
    if isinstance(model, TaskModel) and model.has_maps:
        chosen = next((e for e in dev if mistakes and f"{e.file}:{e.line}" == mistakes[0].where), dev[0])
        where = f"{PurePath(chosen.file).name}:{chosen.line}"
        sections.append((f"Attention over {where}, mean of the heads", draw_attention(model, chosen)))
    return sections


def remark_one_answer(task: Task, examples: Sequence[Any], predictions: Sequence[Any]) -> list[str]:
    """Return a remark if all predictions have one label, and the examples have several."""
    right: set[Any]
    if task.kind == "classification":
        right, predicted = {example.label for example in examples}, {prediction.label for prediction in predictions}
    elif task.kind == "tags":
        right, predicted = ({tag for one in side for tag in one.tags} for side in (examples, predictions))
    else:
        return []
    if len(predicted) != 1 or len(right) < 2:
        return []
    share = "every word" if task.kind == "tags" else "every example"
    return [
        f"The model gives {share} of the dev data the label {predicted.pop()!r}, and the data have {len(right)} "
        "labels: it has learned nothing but this. Try another learning rate, more epochs, or another seed."
    ]


def draw_confusions(labels: Sequence[str], true: Sequence[str], predicted: Sequence[str]) -> str:
    """Return an HTML table of counts; for more than 24 labels, the most frequent confusions."""
    counts = Counter(zip(true, predicted))
    if len(labels) <= SHOWN:
        return draw_table(["", *labels], [[a, *(counts[a, b] or "·" for b in labels)] for a in labels])
    often = sorted(((n, a, b) for (a, b), n in counts.items() if a != b), reverse=True)[:SHOWN]
    return draw_table(["right", "predicted", "times"], [[a, b, n] for n, a, b in often])


def draw_attention(model: TaskModel, example: Any) -> str:
    """Return one map per layer of an example's first row: how much each piece (left) attends to each (top)."""
    names, maps = attention_maps(model, example)
    shown = maps[:, :SHOWN, :SHOWN]
    short, note = names[:SHOWN], "The stronger the colour, the more the piece on the left attends to the piece on top."
    figures = [Grid(f"layer {n}", short, short, layer, note) for n, layer in enumerate(shown, start=1)]
    cut = f"<p>The first {SHOWN} of {len(names)} pieces.</p>" if len(names) > SHOWN else ""
    return cut + draw_figures(figures)


def attention_maps(model: TaskModel, example: Any) -> tuple[list[str], Float[np.ndarray, "L T T"]]:
    """Return the pieces of the first row of an example or input, and each layer's attention, averaged over heads."""
    if model.config.attention != "reference":
        why = 'attention, which keeps no maps: load it with attention="reference"'
        raise ValueError(f"{model.source} was loaded with {model.config.attention} {why}")
    first_example = example if isinstance(example, Example) else to_example(model.task, example, 0)
    row = make_rows(model.task, [first_example], model.tokenizer, labelled=False)[0]
    ids, types = row.ids[0][None], row.types[0][None]
    # A model of one type ignores the types of a tokenizer that was made for two.
    one_type = getattr(model.config, "type_vocab_size", 2) == 1
    maps: Any = model.forward(ids, None if one_type else types).attentions
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
