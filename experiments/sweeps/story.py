r"""The systems of 2013 to 2024 under one protocol: word vectors, language models, Transformers.

Each system is pretrained with the same number of operations (BUDGETS in _story.py; static vectors need fewer) on the
same text, so a costlier one reads less of it. Then all are frozen, and the same network reads their layers for each
task: the last one at toy scale, a mixture of all at laptop scale. In the same row are the encoder's parameters in
millions and what the pretraining cost: millions of positions, operations in 10¹², seconds of processor time.

Paper and expected score: none; the papers' own budgets differ by a factor of thousands.
Scales: toy (the toy world in English and Korean: senses, sentences that follow each other; one seed) and laptop
(novels, reviews; part of speech, entities, sentiment, inference, questions; not measured).
Cost: toy, 11 to 18 minutes of processor time in 43 runs.
Command: python -m experiments.sweep --sweep=story --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.report.figures import Lines
from bert_elmo_jax.sweeps.definition import Add, Means
from bert_elmo_jax.sweeps.points import Point

from ._story import SYSTEMS, TASKS, YEARS

SCALES = ("toy", "laptop")
WINDOW = "window of words"  # the network of 2011: it tags words, and has no pretraining
COSTS = {
    "parameters": "the encoder's parameters, in millions",
    "positions": "positions of all rows of the pretraining, in millions",
    "operations": "its operations in matrix products, in 10¹²",
    "seconds": "its seconds of processor time",
}


def add_pretrainings(add: Add, language: str, english: dict[str, Point]) -> dict[str, Point]:
    """Add the pretraining of each system in a language, unless a point of `english` is the same."""
    points: dict[str, Point] = {}
    for system, (config, settings) in SYSTEMS[add.scale][language].items():
        teacher = {"teacher": points["BERT"]} if system == "DistilBERT" else {}
        point = Point(system, "pretrain", config, {**settings, **teacher})
        if system in english and english[system].identity == point.identity:
            points[system] = english[system]
        else:
            name = f"{system}, {language}" if english else system
            points[system] = add.pretrain(name, config, **settings, **teacher)
    return points


def sweep(add: Add) -> None:
    """Add the pretrainings, the tagger without one, and for each system its tasks and its costs."""
    english = add_pretrainings(add, "en", {})
    models = {"en": english, "ko": add_pretrainings(add, "ko", english)}
    for column, (_, task, network, how, seeds) in TASKS[add.scale].items():
        if network == "tagger":
            add.transfer(WINDOW, column, "window", of=task.of, seeds=seeds, **{**task.settings, **how})
    for system in YEARS:
        for column, (language, task, network, how, seeds) in TASKS[add.scale].items():
            settings: dict[str, Any] = {**task.settings, **how, "encoder": models[language][system]}
            add.transfer(system, column, network, of=task.of, seeds=seeds, **settings)
        for name, measured in COSTS.items():
            add.figure(system, name, english[system], of=measured, score=name)


def plot(means: Means) -> Lines:
    """Draw the scores of the tasks over the years of the systems."""
    years = {WINDOW: 2011.6, **YEARS}
    tasks = dict.fromkeys(column for _, column in means if column not in COSTS)
    series = {
        task: sorted((year, means[system, task]) for system, year in years.items() if (system, task) in means)
        for task in tasks
    }
    return Lines("Scores of the systems at equal budgets", "year", "score", series)
