"""Scores of a task's predictions, as its official scorer computes them, and their 95 % intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from jaxtyping import Float64

from bert_elmo_jax.data.tasks.examples import Question
from bert_elmo_jax.data.tasks.question_rows import words_of_questions
from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.data.tasks.word_rows import words_of_sentences
from bert_elmo_jax.evals import entities, glue, squad, trees
from bert_elmo_jax.evals.intervals import Interval, bootstrap_interval, correlation_interval, share_interval
from bert_elmo_jax.inference.predictions import AnswerSpan, Choice, Label, Number
from bert_elmo_jax.text.words import split_line

NEVER = 1e9  # larger than any score
ANSWERS: dict[type, str] = {Number: "value", Choice: "choice", Label: "label"}


def score_name(task: Task) -> str:
    """Return the name of the score that chooses the best model.

    >>> from bert_elmo_jax.data.tasks.task import task_named
    >>> [score_name(task_named(name)) for name in ("cola", "stsb", "uner", "ud_upos", "squad")]
    ['mcc', 'pearson', 'f1', 'accuracy', 'f1']
    """
    if task.kind == "tags":
        return "f1" if task.entities else "accuracy"
    if task.kind == "trees":
        return "las"
    if task.kind == "questions":
        return "best_f1" if task.unanswerable else "f1"  # with the threshold for no answer that is best on dev
    return glue.TASK_METRICS[_find_metrics(task)][0]


def score_unknown(
    task: Task, train: Sequence[Any], examples: Sequence[Any], predictions: Sequence[Any]
) -> dict[str, float]:
    """Return the score on words that the training examples lack: of tags, or of entities and answers with such a word.

    It is {} for other tasks, and where there is no such word.

    >>> from bert_elmo_jax.data.tasks import TaggedSentence
    >>> train, dev = (TaggedSentence(words, ("X", "X"), "…", (1, 2), 0) for words in (("a", "b"), ("a", "new")))
    >>> score_unknown(Task("tags", "tags"), [train], [dev], [dev])
    {'unknown_accuracy': 1.0}
    """
    if task.kind == "questions":
        training_words = set(chain.from_iterable(words_of_questions(train)))
        chosen = [
            n for n, question in enumerate(examples)
            if any(not training_words.issuperset(split_line(answer.text, "punctuation")) for answer in question.answers)
        ]  # fmt: skip
        if not chosen:
            return {}
        figures = _answers(task, [examples[n] for n in chosen], [predictions[n] for n in chosen])
        return {"unknown_f1": float(figures["f1"])}
    if task.kind != "tags" or task.characters:
        return {}
    training_words = set(chain.from_iterable(words_of_sentences(train)))
    is_new = [[word not in training_words for word in words] for words in words_of_sentences(examples)]
    pairs = [(example.tags, prediction.tags) for example, prediction in zip(examples, predictions)]
    if not task.entities:
        right = [a == b for flags, tags in zip(is_new, pairs) for flag, a, b in zip(flags, *tags) if flag]
        return {"unknown_accuracy": sum(right) / len(right)} if right else {}
    gold, predicted = (
        {
            (n, *part)
            for n, tags in enumerate(side)
            for part in entities.entities(tags)
            if any(is_new[n][part[1] : part[2]])
        }
        for side in zip(*pairs)
    )
    return {"unknown_f1": 2 * len(gold & predicted) / (len(gold) + len(predicted))} if gold else {}


def list_scores(task: Task) -> list[str]:
    """Return the names of the scores that `figures_of` may give, also before the labels are known."""
    if task.kind == "tags":
        names = ["precision", "recall", "accuracy"] if task.entities else []
        names += ["entity_macro_f1"] if task.name == "klue_ner" else []
    elif task.kind == "trees":
        names = ["uas", "las_subtypes"]
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
            figures = {name: scores[name] for name in ("f1", "precision", "recall", "accuracy")}
            if task.name == "klue_ner":  # KLUE's scorer leaves out spaces
                sides = (
                    [[tag for c, tag in zip(e.words, tags) if not c.isspace()] for e, tags in zip(examples, side)]
                    for side in (gold, predicted)
                )
                figures["entity_macro_f1"] = entities.strict_macro_f1(*sides)
            return figures
        return {"accuracy": glue.accuracy(list(chain(*gold)), list(chain(*predicted)))}
    if task.kind == "trees":
        return trees.score(*([(one.heads, one.relations) for one in side] for side in (examples, predictions)))
    name = _find_metrics(task)
    right, answers = _pair_labels(task, examples, predictions)
    figures = glue.score(name, right, answers)
    if task.kind == "classification" and name != "classification":
        figures.setdefault("accuracy", glue.accuracy(right, answers))
    return figures


def _pair_labels(task: Task, examples: Sequence[Any], predictions: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    right: list[Any] = [example.label for example in examples]
    answers: list[Any] = [getattr(prediction, ANSWERS[type(prediction)]) for prediction in predictions]
    if task.kind == "classification" and any(metric == "f1" for metric in glue.TASK_METRICS[_find_metrics(task)]):
        right, answers = ([int(label) for label in side] for side in (right, answers))
    return right, answers


def find_interval(task: Task, examples: Sequence[Any], predictions: Sequence[Any]) -> Interval | None:
    """Return the 95 % interval of the score that `score_name` names, or None if there are too few rows for one.

    Shares have Wilson's interval, correlations Fisher's; for other scores, rows are sampled with replacement. The words
    of a sentence are sampled together.

    >>> from bert_elmo_jax.data.tasks import TextExample
    >>> task = Task("sst2", "classification", labels=("0", "1"))
    >>> examples = [TextExample("…", None, label, None, "dev.tsv", 2) for label in 15 * "01"]
    >>> find_interval(task, examples, [Label("1", 0.5, {})] * 30)
    (0.33154..., 0.66845...)
    """
    score, count = score_name(task), len(examples)
    if task.kind in COUNTED:
        counts = COUNTED[task.kind](task, examples, predictions)
        if count < 2 or not counts[:, 1].any():
            return None
        # Each score is a share of sums over rows: right ones of all, or twice the right ones of both sides.
        return bootstrap_interval(count, lambda rows: counts[rows, 0].sum() / max(counts[rows, 1].sum(), 1e-9))
    right, answers = map(np.asarray, _pair_labels(task, examples, predictions))
    if score == "accuracy":
        return share_interval(int((right == answers).sum()), count)
    name = _find_metrics(task)
    if score in ("pearson", "spearman"):
        return correlation_interval(glue.METRICS[score](right, answers), count, ranks=score == "spearman")
    if count < 2:
        return None
    return bootstrap_interval(count, lambda rows: glue.score(name, right[rows], answers[rows])[score])


def _count_tags(task: Task, examples: Sequence[Any], predictions: Sequence[Any]) -> Float64[np.ndarray, "N 2"]:
    """Return two numbers for each sentence; the score is the sum of the first, divided by the sum of the second."""
    rows = []
    for example, prediction in zip(examples, predictions):
        if task.entities:
            scores = entities.score([list(example.tags)], [list(prediction.tags)])
            rows.append((2 * scores["correct"], scores["gold"] + scores["predicted"]))
        else:
            rows.append((sum(map(str.__eq__, example.tags, prediction.tags)), len(example.tags)))
    return np.asarray(rows, np.float64)


def _count_trees(task: Task, examples: Sequence[Any], predictions: Sequence[Any]) -> Float64[np.ndarray, "N 2"]:
    """Return the right words of each sentence and all its words."""
    both = zip(examples, predictions)
    counts = [trees.count_right((a.heads, a.relations), (b.heads, b.relations))[[1, 3]] for a, b in both]
    return np.asarray(counts, np.float64)


def _count_answers(task: Task, examples: Sequence[Any], predictions: Sequence[Any]) -> Float64[np.ndarray, "N 2"]:
    """Return the F1 of each question, with the threshold that is best for all, and 1."""
    if task.unanswerable:
        threshold = _answers(task, examples, predictions)["null_threshold"]
        predictions = [_with_threshold(prediction, threshold) for prediction in predictions]
    single = [_answers(task, [one], [prediction])["f1"] for one, prediction in zip(examples, predictions)]
    return np.asarray([(value, 1) for value in single], np.float64)


# By kind of task: two numbers of each row, whose sums give the score.
COUNTED = {"tags": _count_tags, "trees": _count_trees, "questions": _count_answers}


def _with_threshold(prediction: AnswerSpan, threshold: float) -> AnswerSpan:
    """Return the prediction with its best answer, or none if its doubt is above the threshold."""
    best = next((candidate.answer for candidate in prediction.n_best if candidate.answer), "")
    return replace(prediction, answer="" if prediction.null_score > threshold else best)


def _answers(task: Task, questions: Sequence[Question], predictions: Sequence[AnswerSpan]) -> dict[str, float]:
    version = "v2.0" if task.unanswerable else "1.1"
    qas = [
        {"id": question.id, "answers": [{"text": answer.text} for answer in question.answers]} for question in questions
    ]
    data: Mapping[str, Any] = {"version": version, "data": [{"paragraphs": [{"qas": qas}]}]}
    ids = [question.id for question in questions]
    answers = {number: prediction.answer for number, prediction in zip(ids, predictions)}
    korean = task.name == "korquad"
    if not task.unanswerable:
        return squad.score(data, answers, rules="korquad" if korean else "squad1")
    rules: squad.Rules = "korean2" if korean else "squad2"
    figures = squad.score(data, answers, rules=rules)
    # The threshold is chosen among the best answers that are not empty, with and without the current threshold.
    best = {n: next((c.answer for c in p.n_best if c.answer), "") for n, p in zip(ids, predictions)}
    doubts = {number: max(min(prediction.null_score, NEVER), -NEVER) for number, prediction in zip(ids, predictions)}
    tuned = squad.score(data, best, doubts, rules=rules)
    threshold = tuned["best_f1_thresh"]
    if threshold not in doubts.values():  # the script's own value for "no answer is best", meant for probabilities
        threshold = -NEVER
    return figures | {name: tuned[name] for name in ("best_exact", "best_f1")} | {"null_threshold": threshold}
