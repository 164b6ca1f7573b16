"""The sections of a run's report that show predictions: confusions, mistakes, attention."""

import html
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePath
from typing import Any

import numpy as np
from jaxtyping import Float

from bert_elmo_jax.data.tasks.rows import make_rows
from bert_elmo_jax.data.tasks.task import Example, Task
from bert_elmo_jax.evals import entities, squad
from bert_elmo_jax.inference.predictions import AnswerSpan, Choice, Label, Number, Prediction, Tags, Tree, softmax
from bert_elmo_jax.inference.task_model import Predictor, TaskModel, to_example
from bert_elmo_jax.inference.task_network import TaskNetwork
from bert_elmo_jax.report.figures import Grid, Scatter
from bert_elmo_jax.report.language import Phrase, Translate, english
from bert_elmo_jax.report.page import draw_figures, draw_table
from bert_elmo_jax.report.svg import format_number

REACH = 6  # words shown on each side of a wrong one
SHOWN = 24  # the most labels of a table and pieces of an attention map
LONGEST = 200  # characters of a mistake's text
AXES = ("expected", "predicted")
NONE = "(no answer)"
_ONLY_ONE = (
    "of the dev data the label {label}, and the data have {count} labels: it has learned nothing but this. Try another "
    "learning rate, more epochs, or another seed."
)
ONE_TAG, ONE_LABEL = f"The model gives every word {_ONLY_ONE}", f"The model gives every example {_ONLY_ONE}"
SPREAD = 0.05  # of the expected numbers' deviation: predictions within less of each other are one number
ONE_NUMBER = (
    "The model gives all examples of the dev data about {number}, and the data have {low} to {high}: it has learned "
    "nothing but their mean. Try a lower learning rate, more epochs, or another seed."
)
NO_ANSWERS = (
    "The model finds no answer to any of the {count} questions of the dev data, and {answered} have one: it has "
    "learned nothing but this. Try another learning rate, more epochs, or another seed."
)
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


def find_mistakes(task: Task, examples: Sequence[Any], predictions: Sequence[Any], most: int = 10) -> list[Mistake]:
    """Return the mistakes with the highest probability, highest first; for a regression the largest errors."""
    mistakes: list[Mistake | None] = []
    for example, prediction in zip(examples, predictions):
        if isinstance(prediction, Tags):
            mistakes += _wrong_words(example, prediction)
        elif not isinstance(prediction, Tree):  # which has no probabilities
            mistakes.append(_mistake(task, example, prediction))
    return sorted(filter(None, mistakes), key=lambda mistake: -mistake.sure)[:most]


def _number(task: Task, example: Any) -> float:
    """Return the number that a model should give: its label, or the cosine that stands for its score."""
    return float(example.label) / (task.top_score or 1.0)


def _mistake(task: Task, example: Any, prediction: Prediction) -> Mistake | None:
    where = f"{example.file}:{example.line}"
    if isinstance(prediction, Number):
        expected = _number(task, example)
        return Mistake(where, _text(example), f"{expected:g}", str(prediction), abs(prediction.value - expected))
    if isinstance(prediction, AnswerSpan):
        rules = task.name == "korquad"
        right = [squad.normalize(a.text, korean=rules) for a in example.answers] or [""]
        if squad.normalize(prediction.answer, korean=rules) in right:
            return None
        shown = " / ".join(dict.fromkeys(answer.text for answer in example.answers)) or NONE
        return Mistake(where, example.text, shown, prediction.answer or NONE, prediction.probability)
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
    model: Predictor, dev: Sequence[Any], predictions: Sequence[Any], translate: Translate = english
) -> list[Section]:
    """Return sections (heading, HTML): confusions, mistakes, and attention or the weights of layers."""
    task = model.task
    sections: list[Section] = []
    if task.kind in ("regression", "sentences"):
        points = [(_number(task, example), prediction.value) for example, prediction in zip(dev, predictions)]
        note = translate("Each dot is one example; on the diagonal, the prediction is exact.")
        scatter = Scatter(translate("predicted (up), expected (across)"), points, note, *map(translate, AXES))
        sections.append((translate("Predictions"), draw_figures([scatter])))
    elif task.kind == "classification":
        true, predicted = [example.label for example in dev], [prediction.label for prediction in predictions]
        sections.append(_confusion_section(task.labels, true, predicted, translate))
    elif task.kind == "tags":
        true_tags, predicted_tags = [list(e.tags) for e in dev], [list(p.tags) for p in predictions]
        if task.entities:
            names = ("precision", "recall", "f1", "gold", "predicted", "correct")
            types: Mapping[str, Any] = entities.score(true_tags, predicted_tags)["types"]
            cells = [[kind, *(format_number(of[name]) for name in names)] for kind, of in types.items()]
            table = draw_table([translate("type"), *map(translate, names)], cells, stacked=True)
            sections.append((translate("Entities"), table))
        else:
            tag_lists = [*chain(*true_tags)], [*chain(*predicted_tags)]
            sections.append(_confusion_section(task.labels, *tag_lists, translate))
    elif task.kind == "trees":
        sections.append(draw_relations(dev, predictions, translate))
    mistakes = [mistake for mistake in find_mistakes(task, dev, predictions) if mistake.sure]  # exact numbers are none
    if mistakes:
        sections.append(draw_mistakes(task, mistakes, translate))
    if isinstance(model, TaskNetwork):
        return [*sections, *_layer_weights(model, translate)]
    if isinstance(model, TaskModel) and model.has_maps:
        chosen = next((e for e in dev if mistakes and f"{e.file}:{e.line}" == mistakes[0].where), dev[0])
        where = f"{PurePath(chosen.file).name}:{chosen.line}"
        title = translate("Attention over {where}, mean of the heads", where=where)
        sections.append((title, draw_attention(model, chosen, translate)))
    return sections


def draw_relations(examples: Sequence[Any], predictions: Sequence[Any], translate: Translate = english) -> Section:
    """Return the section with the right heads of the most frequent relations, and how often both were right."""
    words, heads, both = Counter[str](), Counter[str](), Counter[str]()
    for right, predicted in zip(examples, predictions):
        arcs = zip(right.heads, right.relations, predicted.heads, predicted.relations)
        for head, relation, guess, name in arcs:
            words[relation] += 1
            heads[relation] += head == guess
            both[relation] += (head, relation) == (guess, name)
    cells = [
        [name, f"{count:,}", *(f"{right[name] / count:.3f}" for right in (heads, both))]
        for name, count in words.most_common(SHOWN)
    ]
    names = ("relation", "words", "right heads", "right heads and relations")
    return translate("Relations"), draw_table([*map(translate, names)], cells, stacked=True)


def draw_mistakes(task: Task, mistakes: Sequence[Mistake], translate: Translate = english) -> Section:
    """Return the section of mistakes: text, right and predicted answer, and probability or error."""
    numbers = task.kind in ("regression", "sentences")
    names = ("text", "expected", "predicted", "off by" if numbers else "probability", "where")
    cells = []
    for m in mistakes:
        text = m.text if len(m.text) <= LONGEST else f"{m.text[: LONGEST - 1]}…"
        right, predicted = (translate(NONE) if answer == NONE else answer for answer in (m.right, m.predicted))
        cells.append([text, right, predicted, format_number(m.sure), PurePath(m.where).name])
    title = "The largest errors" if numbers else "The surest mistakes"
    return translate(title), draw_table([*map(translate, names)], cells, stacked=True)


def remark_one_answer(task: Task, examples: Sequence[Any], predictions: Sequence[Any]) -> list[str]:
    """Return a remark if all predictions are the same (for numbers: nearly), and what is expected is not."""
    if not examples:
        return []
    right: set[Any]
    if task.kind in ("regression", "sentences"):
        numbers = np.array([[_number(task, e), p.value] for e, p in zip(examples, predictions)])
        expected_spread, spread = numbers.std(axis=0)
        if not spread < SPREAD * expected_spread:
            return []
        number, low, high = numbers[:, 1].mean(), numbers[:, 0].min(), numbers[:, 0].max()
        return [Phrase(ONE_NUMBER, number=f"{number:.3g}", low=f"{low:g}", high=f"{high:g}")]
    if task.kind == "questions":
        answered = sum(bool(example.answers) for example in examples)
        if not answered or any(prediction.answer for prediction in predictions):
            return []
        return [Phrase(NO_ANSWERS, count=f"{len(examples):,}", answered=f"{answered:,}")]
    if task.kind == "classification":
        right, predicted = {example.label for example in examples}, {prediction.label for prediction in predictions}
    elif task.kind == "tags":
        right, predicted = ({tag for one in side for tag in one.tags} for side in (examples, predictions))
    else:
        return []
    if len(predicted) != 1 or len(right) < 2:
        return []
    remark = ONE_TAG if task.kind == "tags" else ONE_LABEL
    return [Phrase(remark, label=repr(predicted.pop()), count=len(right))]


def draw_confusions(
    labels: Sequence[str], true: Sequence[str], predicted: Sequence[str], translate: Translate = english
) -> str:
    """Return an HTML table of counts; for more than 24 labels, the most frequent confusions."""
    counts = Counter(zip(true, predicted))
    if len(labels) <= SHOWN:
        return draw_table(["", *labels], [[a, *(counts[a, b] or "·" for b in labels)] for a in labels])
    often = sorted(((n, a, b) for (a, b), n in counts.items() if a != b), reverse=True)[:SHOWN]
    return draw_table([*map(translate, ("expected", "predicted", "times"))], [[a, b, n] for n, a, b in often])


def draw_attention(model: TaskModel, example: Any, translate: Translate = english) -> str:
    """Return one map per layer of an example's first row: how much each piece (left) attends to each (top)."""
    names, maps = attention_maps(model, example)
    shown = maps[:, :SHOWN, :SHOWN]
    short = names[:SHOWN]
    note = translate("The stronger the colour, the more the piece on the left attends to the piece on top.")
    titles = (translate("layer {number}", number=n) for n in range(1, len(shown) + 1))
    figures = [Grid(title, short, short, layer, note) for title, layer in zip(titles, shown)]
    cut = translate("The first {shown} of {count} pieces.", shown=SHOWN, count=len(names))
    cut = f"<p>{html.escape(cut)}</p>" if len(names) > SHOWN else ""
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


def _confusion_section(
    labels: Sequence[str], true: Sequence[str], predicted: Sequence[str], translate: Translate
) -> Section:
    return translate("Confusion (rows: expected, columns: predicted)"), draw_confusions(
        labels, true, predicted, translate
    )


def _layer_weights(model: TaskNetwork, translate: Translate) -> list[Section]:
    """Return the softmax of the weights and γ of every mix of layers in a network."""
    rows = []
    for name, mix in model.params.get("mix", {}).items():
        shares = softmax(np.asarray(mix["weights"], np.float32))
        rows.append([name, *(f"{share:.3f}" for share in shares), f"{float(mix['gamma']):.3f}"])
    if not rows:
        return []
    names = [translate("at"), *map(str, model.config.mixed_layers), "γ"]
    return [(translate("Weights of the encoder's layers"), draw_table(names, rows))]
