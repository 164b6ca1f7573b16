"""Linear probes of every layer: predicting the annotation of a word in a treebank from its vector."""

import hashlib
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Int

from bert_elmo_jax.analysis.linear_probe import LinearProbe, choose_probe
from bert_elmo_jax.data.tasks.annotated import ParsedSentence, labels_of
from bert_elmo_jax.evals.probing import accuracy, by_word
from bert_elmo_jax.inference.kept_vectors import KeptVectors, VectorFolder
from bert_elmo_jax.inference.word_layers import Source, choose_layers
from bert_elmo_jax.report.figures import Lines
from bert_elmo_jax.report.language import Phrase
from bert_elmo_jax.report.results import Result

TASKS = ("pos", "Number", "Tense", "Person", "head_distance")
FRACTIONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
CONTROL = "control:"  # before a task: its labels, drawn at random for each different word
BASELINE = Phrase("most frequent of the word")
PARTS = ("train", "dev", "test")
Parts = Mapping[str, Sequence[ParsedSentence]]  # the sentences of each of PARTS
Report = Callable[[str], object]


class LabelledWords(NamedTuple):
    """The words of one part of a treebank that a task labels; `rows` are their places among all words."""

    rows: Int[np.ndarray, " N"]
    sentence: Int[np.ndarray, " N"]
    words: np.ndarray
    labels: np.ndarray


Words = Mapping[str, LabelledWords]  # of each of PARTS
Arrays = Mapping[str, Float32[np.ndarray, "N D"]]


def select_parts(parts: Parts, task: str) -> Words:
    """Return the words that a task labels in each part, composed (NFC); a part without any raises.

    `control:pos` is the control task of `pos` (Hewitt and Liang 2019, https://arxiv.org/abs/1909.03368): each different
    word gets one of the training labels at random. A selective probe is better on the task than on its control.

    >>> sentence = ParsedSentence(
    ...     ("배를", "탔다"), ("NOUN", "VERB"), ({}, {"Tense": "Past"}), (2, 0), ("obj", "root"), "a", (1, 2)
    ... )
    >>> words = select_parts({part: [sentence, sentence] for part in PARTS}, "Tense")["dev"]
    >>> (words.rows.tolist(), words.sentence.tolist(), words.words.tolist())
    ([1, 3], [0, 1], ['탔다', '탔다'])
    >>> words.labels.tolist()
    ['Past', 'Past']
    >>> select_parts({"train": [], "dev": [], "test": []}, "Tense")
    Traceback (most recent call last):
    ValueError: no word of the train data has Tense: name tasks that this treebank annotates, such as pos
    """
    if task.startswith(CONTROL):
        return _draw_labels(select_parts(parts, task.removeprefix(CONTROL)))
    selected = {}
    for part in PARTS:
        places = (
            (number, unicodedata.normalize("NFC", word), label)
            for number, sentence in enumerate(parts[part])
            for word, label in zip(sentence.words, labels_of(sentence, task))
        )
        labelled = [(row, n, word, str(label)) for row, (n, word, label) in enumerate(places) if label is not None]
        if not labelled:
            advice = "name tasks that this treebank annotates, such as pos"
            raise ValueError(f"no word of the {part} data has {task}: {advice}")
        rows, sentence, words, labels = zip(*labelled)
        selected[part] = LabelledWords(np.array(rows), np.array(sentence), np.array(words, object), np.array(labels))
    return selected


def _draw_labels(selected: Words) -> Words:
    """Return the same words, each with a training label that depends on nothing but its form."""
    pool = selected["train"].labels

    def draw(words: np.ndarray) -> np.ndarray:
        return np.array([pool[int(hashlib.sha256(word.encode()).hexdigest(), 16) % len(pool)] for word in words])

    return {part: labelled._replace(labels=draw(labelled.words)) for part, labelled in selected.items()}


def probe(
    sources: Mapping[str, Source],
    parts: Parts,
    folder: VectorFolder,
    *,
    tasks: Sequence[str] = TASKS,
    report: Report = lambda text: None,
) -> list[Result]:
    """Return test accuracies of probes of each task and layer, trained on `train`, the penalty chosen on `dev`.

    The first result of a task is its baseline: the label that a word had most often in training. A task that the
    treebank does not annotate raises.
    """
    selected = {task: select_parts(parts, task) for task in tasks}  # raises before anything is computed
    vectors_of = {name: _compute_vectors(source, parts, folder) for name, source in sources.items()}
    results = []
    for task, words in selected.items():
        train, test = words["train"], words["test"]
        sizes = {"labels": len(set(train.labels.tolist())), "words": f"{len(train.labels):,}"}
        note = Phrase("{labels} labels, {words} words of training", **sizes)
        results.append(Result(task, BASELINE, "", _score_baseline(train, test), len(test.labels), note))
        for name, vectors in vectors_of.items():
            for layer in vectors["train"].layers:
                report(f"{task}, {name}, layer {layer}")
                fitted, on_dev, right = _fit(words, _read_layer(words, vectors, layer))
                note = Phrase(
                    "dev {score}, penalty {strength}", score=f"{100 * on_dev:.1f}", strength=f"{fitted.strength:g}"
                )
                if not fitted.converged:
                    note = Phrase("{note}, not converged", note=note)
                results.append(Result(task, name, str(layer), right, len(test.labels), note))
    return results


def sample_efficiency(
    sources: Mapping[str, Source],
    parts: Parts,
    folder: VectorFolder,
    *,
    task: str = "pos",
    fractions: Sequence[float] = FRACTIONS,
    seeds: Sequence[int] = (0, 1, 2),
    report: Report = lambda text: None,
) -> list[Result]:
    """Return test accuracies of probes by the share of training sentences: means over seeds, which draw them.

    Each encoder is probed in the layer that is best on dev with all the data. The baseline gets the same sentences.
    """
    if not fractions or not all(0 < fraction <= 1 for fraction in fractions) or not seeds:
        raise ValueError(f"fractions={list(fractions)}, seeds={list(seeds)}: expected shares above 0 to 1, and a seed")
    words = select_parts(parts, task)
    train, test = words["train"], words["test"]
    arrays = {}
    for name, source in sources.items():
        report(f"{task}, {name}: which layer")
        layer = find_best_layer(source, parts, folder, task)
        arrays[Phrase("{name}, layer {layer}", name=name, layer=layer)] = _read_layer(
            words, _compute_vectors(source, parts, folder), layer
        )
    scores: dict[tuple[float, str], list[float]] = {}
    for fraction in sorted(fractions):
        for seed in seeds if fraction < 1 else seeds[:1]:
            # One order per seed: a larger share contains the smaller ones.
            order = np.random.default_rng(seed).permutation(len(parts["train"]))
            chosen = order[: max(1, round(fraction * len(order)))]
            rows = np.flatnonzero(np.isin(train.sentence, chosen))
            if not len(rows):
                raise ValueError(f"{fraction:.0%} of the training sentences has no word with {task}: use larger shares")
            scores.setdefault((fraction, BASELINE), []).append(_score_baseline(train, test, rows))
            for name, vectors in arrays.items():
                report(f"{task}, {name}, {fraction:.4g} of the data, seed {seed}")
                scores.setdefault((fraction, name), []).append(_fit(words, vectors, rows)[2])
    results = []
    for (fraction, name), values in scores.items():
        spread = ""
        if len(values) > 1:
            deviation = f"{100 * float(np.std(values, ddof=1)):.1f}"
            spread = Phrase("± {deviation} over {seeds} seeds", deviation=deviation, seeds=len(values))
        mean, share = float(np.mean(values)), f"{100 * fraction:g}%"
        title = Phrase("{task} by share of data", task=task)
        results.append(Result(title, name, share, mean, len(test.labels), spread))
    return results


def find_best_layer(source: Source, parts: Parts, folder: VectorFolder, task: str) -> int:
    """Return the layer whose probe, trained on all of `parts["train"]`, is best on dev; of equals the lowest."""
    words, numbers = select_parts(parts, task), choose_layers(source, folder.layers)
    if len(numbers) == 1:
        return numbers[0]
    vectors = _compute_vectors(source, parts, folder)
    return numbers[int(np.argmax([_fit(words, _read_layer(words, vectors, n))[1] for n in numbers]))]


def draw_layers(task: str, results: Sequence[Result]) -> Lines:
    """Return the scores of a task by layer, one line per encoder; a score without a layer is a level line.

    >>> draw_layers("pos", [Result("pos", "강", "0", 0.9), Result("pos", "강", "1", 0.95)]).series
    {'강': [(0.0, 90.0), (1.0, 95.0)]}
    """
    mine = [result for result in results if result.task == task]
    top = max((float(result.layer) for result in mine if result.layer), default=1.0)
    series: dict[str, list[tuple[float, float]]] = {}
    for result in mine:
        xs = [float(result.layer)] if result.layer else [0.0, top]
        series.setdefault(result.encoder, []).extend((x, 100 * result.score) for x in xs)
    note = Phrase("Each dot is the score of one layer on test text; a level line is a score that belongs to no layer.")
    return Lines(Phrase("{task} by layer", task=task), Phrase("layer"), Phrase("score in %"), series, note=note)


def draw_efficiency(results: Sequence[Result]) -> Lines:
    """Return the scores by share of data, one line per encoder.

    >>> draw_efficiency([Result("pos", "강", "10%", 0.9), Result("pos", "강", "100%", 0.95)]).series
    {'강': [(10.0, 90.0), (100.0, 95.0)]}
    """
    series: dict[str, list[tuple[float, float]]] = {}
    for result in results:
        series.setdefault(result.encoder, []).append((float(result.layer.rstrip("%")), 100 * result.score))
    across, up = Phrase("% of the training sentences"), Phrase("score in %")
    return Lines(results[0].task, across, up, series, logarithmic=True)


def _compute_vectors(source: Source, parts: Parts, folder: VectorFolder) -> dict[str, KeptVectors]:
    return {part: folder.compute(source, [sentence.words for sentence in parts[part]]) for part in PARTS}


def _read_layer(words: Words, vectors: Mapping[str, KeptVectors], layer: int) -> Arrays:
    return {part: np.asarray(vectors[part].layer(layer)[words[part].rows]) for part in PARTS}


def _fit(words: Words, vectors: Arrays, rows: Any = slice(None)) -> tuple[LinearProbe, float, float]:
    """Return a probe trained on some rows of the training words, and its accuracies on dev and test."""
    dev, test = words["dev"].labels, words["test"].labels
    fitted, on_dev = choose_probe(vectors["train"][rows], words["train"].labels[rows], vectors["dev"], dev)
    return fitted, on_dev, float(np.mean(fitted.predict(vectors["test"]) == test))


def _score_baseline(train: LabelledWords, test: LabelledWords, rows: Any = slice(None)) -> float:
    words, labels = train.words[rows].tolist(), train.labels[rows].tolist()
    return accuracy(test.labels.tolist(), by_word(words, labels, test.words.tolist()))
