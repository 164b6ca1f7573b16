"""Linear probes of every layer: what a treebank says of a word, read off its vector; and what the word alone tells."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int

from bert_elmo_jax.analysis.linear_probe import choose_probe
from bert_elmo_jax.data.tasks.treebank import ParsedSentence, labels_of
from bert_elmo_jax.evals.probing import accuracy, by_word
from bert_elmo_jax.inference.kept_vectors import KeptVectors, keep_apart
from bert_elmo_jax.inference.word_layers import Source, choose_layers
from bert_elmo_jax.report.figures import Lines
from bert_elmo_jax.report.results import Result

TASKS = ("pos", "Number", "Tense", "Person", "head_distance")
FRACTIONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
Report = Callable[[str], object]


@dataclass(frozen=True, eq=False)
class Split:
    """The words of one part of a treebank that a task asks about: which rows of its vectors they are, and the answers.

    >>> split = split_of([], "pos")
    >>> len(split.rows)
    0
    """

    rows: Int[np.ndarray, " N"]
    sentence: Int[np.ndarray, " N"]
    words: Sequence[str]
    labels: np.ndarray

    def of(self, vectors: KeptVectors, layer: int) -> Float32[np.ndarray, "N D"]:
        """The vectors of these words."""
        return np.asarray(vectors.layer(layer)[self.rows])


def split_of(sentences: Sequence[ParsedSentence], task: str) -> Split:
    """The words that a task asks about.

    >>> sentence = ParsedSentence(("배를",), ("NOUN",), ({},), (0,), ("root",), "a.conllu", (1,))
    >>> split = split_of([sentence, sentence], "pos")
    >>> split.rows.tolist(), split.sentence.tolist(), split.labels.tolist()
    ([0, 1], [0, 1], ['NOUN', 'NOUN'])
    """
    found = [
        (number, word, label)
        for number, sentence in enumerate(sentences)
        for word, label in zip(sentence.words, labels_of(sentence, task))
    ]
    asked = [row for row, (_, _, label) in enumerate(found) if label is not None]
    return Split(
        np.array(asked, np.int64),
        np.array([found[row][0] for row in asked], np.int64),
        [found[row][1] for row in asked],
        np.array([str(found[row][2]) for row in asked]),
    )


def probe(
    sources: Mapping[str, Source],
    parts: Mapping[str, Sequence[ParsedSentence]],
    folder: str | Path,
    *,
    tasks: Sequence[str] = TASKS,
    layers: Sequence[int] | None = None,
    batch_size: int = 32,
    report: Report = lambda text: None,
) -> list[Result]:
    """Accuracies on `parts["test"]` of probes trained on `train`, their penalty chosen on `dev`: each task and layer.

    The first line of a task is its baseline: the label that a word had most often in training. A task that the
    treebank does not annotate is an error.

    >>> import tempfile
    >>> from bert_elmo_jax.inference.word_layers import StaticVectors
    >>> words, tags, none = ("배를", "탔다"), ("NOUN", "VERB"), ({}, {})
    >>> sentence = ParsedSentence(words, tags, none, (2, 0), ("obj", "root"), "a.conllu", (1, 2))
    >>> vectors = StaticVectors({"배를": np.ones(2), "탔다": np.zeros(2)})
    >>> parts = {part: [sentence] for part in ("train", "dev", "test")}
    >>> [result.percent for result in probe({"my vectors": vectors}, parts, tempfile.mkdtemp(), tasks=["pos"])]
    ['100.0', '100.0']
    """
    splits = {task: splits_of(parts, task) for task in tasks}  # what is wrong is said before anything is computed
    kept = {name: keep_parts(source, parts, folder, layers, batch_size) for name, source in sources.items()}
    results = []
    for task, split in splits.items():
        train, test = split["train"], split["test"]
        usual = by_word(train.words, train.labels.tolist(), test.words)
        count = len(test.labels)
        results.append(
            Result(task, "most frequent of the word", "", accuracy(test.labels.tolist(), usual), count, _labels(train))
        )
        for name, vectors in kept.items():
            for layer in vectors["train"].layers:
                report(f"{task}, {name}, layer {layer}")
                results.append(_result(task, name, layer, vectors, split))
    return results


def sample_efficiency(
    sources: Mapping[str, Source],
    parts: Mapping[str, Sequence[ParsedSentence]],
    folder: str | Path,
    *,
    task: str = "pos",
    fractions: Sequence[float] = FRACTIONS,
    seeds: Sequence[int] = (0, 1, 2),
    layers: Sequence[int] | None = None,
    batch_size: int = 32,
    report: Report = lambda text: None,
) -> list[Result]:
    """How a probe of each encoder grows with its training data: means over seeds of the sentences that are drawn.

    Of an encoder it is the layer that is best on dev with all the data. The baseline grows with the same sentences.

    >>> import tempfile
    >>> from bert_elmo_jax.inference.word_layers import StaticVectors
    >>> sentence = ParsedSentence(("배를",), ("NOUN",), ({},), (0,), ("root",), "a.conllu", (1,))
    >>> parts = {part: [sentence] * 4 for part in ("train", "dev", "test")}
    >>> sources = {"my vectors": StaticVectors({"배를": np.ones(2)})}
    >>> [result.layer for result in sample_efficiency(sources, parts, tempfile.mkdtemp(), fractions=[0.5, 1.0])]
    ['50%', '50%', '100%', '100%']
    """
    if not fractions or not all(0 < fraction <= 1 for fraction in fractions) or not seeds:
        raise ValueError(f"fractions={list(fractions)}, seeds={list(seeds)}: expected shares above 0 to 1, and a seed")
    split = splits_of(parts, task)
    best: dict[str, int] = {}
    arrays: dict[str, dict[str, Float32[np.ndarray, "N D"]]] = {}
    for name, source in sources.items():
        report(f"{task}, {name}: which layer")
        best[name] = best_layer(source, parts, folder, task, layers=layers, batch_size=batch_size)
        vectors = keep_parts(source, parts, folder, layers, batch_size)
        arrays[name] = {part: split[part].of(vectors[part], best[name]) for part in vectors}
    train, dev, test = (split[part] for part in ("train", "dev", "test"))
    names = ["most frequent of the word", *arrays]
    scores: dict[tuple[float, str], list[float]] = {}
    for fraction in sorted(fractions):
        for seed in seeds if fraction < 1 else seeds[:1]:
            # One order a seed: a larger share holds the smaller one.
            order = np.random.default_rng(seed).permutation(len(parts["train"]))
            chosen = order[: max(1, round(fraction * len(order)))]
            some = np.flatnonzero(np.isin(train.sentence, chosen))
            if not len(some):
                raise ValueError(f"{fraction:.0%} of the training sentences has no word with {task}: use larger shares")
            words, labels = [train.words[n] for n in some.tolist()], train.labels[some]
            usual = accuracy(test.labels.tolist(), by_word(words, labels.tolist(), test.words))
            scores.setdefault((fraction, names[0]), []).append(usual)
            for name, part in arrays.items():
                report(f"{task}, {name}, {fraction:.4g} of the data, seed {seed}")
                found, _ = choose_probe(part["train"][some], labels, part["dev"], dev.labels)
                right = float(np.mean(found.predict(part["test"]) == test.labels))
                scores.setdefault((fraction, name), []).append(right)
    return [
        Result(f"{task} by share of data", f"{name}, layer {best[name]}" if name in best else name,
               f"{100 * fraction:g}%", float(np.mean(all_)), len(test.labels), _spread(all_))
        for (fraction, name), all_ in scores.items()
    ]  # fmt: skip


def best_layer(
    source: Source,
    parts: Mapping[str, Sequence[ParsedSentence]],
    folder: str | Path,
    task: str,
    *,
    layers: Sequence[int] | None = None,
    batch_size: int = 32,
) -> int:
    """The layer whose probe, trained on all of `parts["train"]`, is best on dev; of equals the lowest.

    >>> import tempfile
    >>> from bert_elmo_jax.inference.word_layers import StaticVectors
    >>> sentence = ParsedSentence(("배를",), ("NOUN",), ({},), (0,), ("root",), "a.conllu", (1,))
    >>> parts = {part: [sentence] for part in ("train", "dev", "test")}
    >>> best_layer(StaticVectors({"배를": np.ones(2)}), parts, tempfile.mkdtemp(), "pos")
    0
    """
    split = splits_of(parts, task)
    numbers = choose_layers(source, layers)
    if len(numbers) == 1:
        return numbers[0]
    vectors = keep_parts(source, parts, folder, layers, batch_size)
    train, dev = split["train"], split["dev"]
    scores = [
        choose_probe(train.of(vectors["train"], n), train.labels, dev.of(vectors["dev"], n), dev.labels)[1]
        for n in numbers
    ]
    return numbers[int(np.argmax(scores))]


def layer_figure(task: str, results: Sequence[Result]) -> Lines:
    """The scores of a task by layer, a line for each encoder; what has no layers is a level line.

    >>> layer_figure("pos", [Result("pos", "강", "0", 0.9), Result("pos", "강", "1", 0.95)]).series
    {'강': [(0.0, 90.0), (1.0, 95.0)]}
    """
    mine = [result for result in results if result.task == task]
    top = max((float(result.layer) for result in mine if result.layer), default=1.0)
    series: dict[str, list[tuple[float, float]]] = {}
    for result in mine:
        places = [float(result.layer)] if result.layer else [0.0, top]
        series.setdefault(result.encoder, []).extend((x, 100 * result.score) for x in places)
    return Lines(f"{task} by layer", "layer", "%", series)


def efficiency_figure(results: Sequence[Result]) -> Lines:
    """The scores by share of data, a line for each encoder.

    >>> efficiency_figure([Result("pos", "강", "10%", 0.9), Result("pos", "강", "100%", 0.95)]).series
    {'강': [(10.0, 90.0), (100.0, 95.0)]}
    """
    series: dict[str, list[tuple[float, float]]] = {}
    for result in results:
        series.setdefault(result.encoder, []).append((float(result.layer.rstrip("%")), 100 * result.score))
    return Lines(results[0].task, "% of the training sentences", "%", series, logarithmic=True)


def splits_of(parts: Mapping[str, Sequence[ParsedSentence]], task: str) -> dict[str, Split]:
    """What a task asks of each part, which must ask something.

    >>> splits_of({"train": [], "dev": [], "test": []}, "Tense")
    Traceback (most recent call last):
    ValueError: no word of the train data has Tense: name tasks that this treebank annotates, such as pos
    """
    splits = {part: split_of(parts[part], task) for part in ("train", "dev", "test")}
    for part, split in splits.items():
        if not len(split.rows):
            raise ValueError(
                f"no word of the {part} data has {task}: name tasks that this treebank annotates, such as pos"
            )
    return splits


def keep_parts(
    source: Source,
    parts: Mapping[str, Sequence[ParsedSentence]],
    folder: str | Path,
    layers: Sequence[int] | None,
    batch_size: int,
) -> dict[str, KeptVectors]:
    """The vectors of all words of each part."""
    return {
        part: keep_apart(source, [s.words for s in parts[part]], folder, layers=layers, batch_size=batch_size)
        for part in ("train", "dev", "test")
    }


def _result(task: str, name: str, layer: int, vectors: Mapping[str, KeptVectors], split: Mapping[str, Split]) -> Result:
    train, dev, test = (split[part].of(vectors[part], layer) for part in ("train", "dev", "test"))
    found, on_dev = choose_probe(train, split["train"].labels, dev, split["dev"].labels)
    right = float(np.mean(found.predict(test) == split["test"].labels))
    note = f"dev {100 * on_dev:.1f}, penalty {found.strength:g}"
    return Result(task, name, str(layer), right, len(test), note if found.converged else f"{note}, not converged")


def _labels(split: Split) -> str:
    return f"{len(set(split.labels.tolist()))} labels, {len(split.labels):,} words of training"


def _spread(values: Sequence[float]) -> str:
    return f"± {100 * float(np.std(values, ddof=1)):.1f} over {len(values)} seeds" if len(values) > 1 else ""
