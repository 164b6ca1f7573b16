"""The studies of attention with their usual settings: each returns tables and figures."""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bert_elmo_jax.report.figure_files import write_figures
from bert_elmo_jax.report.figures import Figure, Grid, Lines
from bert_elmo_jax.report.results import format_table, make_cells
from bert_elmo_jax.toyworld import ToyWorld, best_masked, word_log_probabilities

from . import crosstalk, heads, length, scaling, warmup, word_links
from .small_training import last_tenth, toy_texts

Cells = Sequence[Sequence[str]]
SMALL = ToyWorld("en", topics=4, words=3)  # 305 words, sentences of up to 15
BINS = 50  # points of a loss curve


class Findings(NamedTuple):
    """The tables of a study by title, with the names of columns first, and its figures by file name."""

    tables: Mapping[str, Cells]
    figures: Mapping[str, Figure]


def study_scaling(steps: int | None = None, seed: int = 0) -> Findings:
    """Unscaled and scaled dot products: random vectors, then a trained layer."""
    random = scaling.saturate(seed=seed)
    names = ["d", "scores", "variance", "largest weight", "entropy", "gradient"]
    first = [
        [str(s.width), label(s.scaled), f"{s.variance:.2f}", f"{s.largest:.3f}", f"{s.entropy:.3f}",
         f"{s.gradient:.4f}"]
        for s in random
    ]  # fmt: skip
    trained = [
        scaling.train_recall(width, scaled, steps=steps or 1_500, seed=seed)
        for width in (16, 64, 256)
        for scaled in (False, True)
    ]
    second = [
        [str(t.width), label(t.scaled), f"{t.stuck:.0%}", "never" if t.learned is None else str(t.learned),
         f"{t.final:.3f}"]
        for t in trained
    ]  # fmt: skip
    entropies = {
        label(scaled): [(s.width, s.entropy) for s in random if s.scaled == scaled] for scaled in (False, True)
    }
    curves = {f"d = {t.width}, {label(t.scaled)}": thin(t.accuracies) for t in trained if t.width != 64}
    return Findings(
        {
            "random queries and keys": [names, *first],
            "trained to recall": [["d", "scores", "stuck at the start", "steps to 95 %", "accuracy"], *second],
        },
        {
            "scaling_entropy": Lines("Entropy of the weights of 16 keys", "d", "nats", entropies, True),
            "scaling_training": Lines("Accuracy while learning to recall", "step", "accuracy", curves),
        },
    )


def study_heads(steps: int | None = None, seed: int = 0) -> Findings:
    """One head against many, of the same total width."""
    trained = heads.compare_heads(steps=steps or 1_500, seed=seed)
    rows = [
        [str(t.heads), str(heads.WIDTH // t.heads), f"{t.parameters:,}", f"{last_tenth(t.losses):.3f}",
         f"{t.final:.3f}"]
        for t in trained
    ]  # fmt: skip
    curves = {f"{t.heads} head{'s' * (t.heads > 1)}": thin(t.accuracies) for t in trained}
    pictures = {
        f"heads_{t.heads}": Grid(
            f"Weights of {t.heads} head{'s' * (t.heads > 1)}",
            [str(n + 1) for n in range(t.heads)],
            heads.ROLES,
            t.weights,
        )
        for t in trained
        if t.heads in (1, 4)
    }
    return Findings(
        {"four answers from one query": [["heads", "width of a head", "parameters", "loss", "accuracy"], *rows]},
        {"heads_training": Lines("Accuracy on four answers", "step", "accuracy", curves), **pictures},
    )


def study_length(steps: int | None = None, seed: int = 0) -> Findings:
    """Time and memory against length, of an LSTM layer and of an attention layer; `steps` limits the lengths."""
    lengths = length.LENGTHS if steps is None else length.LENGTHS[: max(2, min(steps, len(length.LENGTHS)))]
    costs = {(c.kind, c.length, c.gradients): c for c in length.measure_lengths(lengths, seed=seed)}
    rows, crossings = [], []
    series: dict[tuple[str, bool], dict[str, list[tuple[float, float]]]] = {}
    for size in lengths:
        four = [costs[kind, size, gradients] for gradients in (False, True) for kind in length.KINDS]
        rows.append([str(size), *(f"{1e3 * c.seconds:.2f}" for c in four), *(f"{c.memory / 1e6:.2f}" for c in four)])
    measures: dict[str, Callable[[Any], float]] = {
        "operations": lambda c: float(c.operations), "time": lambda c: c.seconds, "memory": lambda c: float(c.memory),
    }  # fmt: skip
    for gradients in (False, True):
        for name, measure in measures.items():
            by_kind = [[measure(costs[kind, size, gradients]) for size in lengths] for kind in length.KINDS]
            crossing = length.find_crossing(lengths, *by_kind)
            crossings.append([name, "with gradients" if gradients else "forward", f"{crossing or 'none'}"])
            for kind, values in zip(length.KINDS, by_kind):
                each = [(float(size), 1e6 * v / (length.ROWS * size)) for size, v in zip(lengths, values)]
                series.setdefault((name, gradients), {})[kind] = each
    kinds = [f"{kind}, {computed}" for computed in ("forward", "gradients") for kind in length.KINDS]
    names = ["length", *(f"{kind}, ms" for kind in kinds), *(f"{kind}, MB" for kind in kinds)]
    return Findings(
        {
            "milliseconds, then megabytes": [names, *rows],
            "length from which attention costs more": [["cost", "computed", "length"], *crossings],
        },
        {
            "length_time": Lines("Time per word, with gradients", "length", "microseconds", series["time", True], True),
            "length_memory": Lines(
                "Memory per word, with gradients", "length", "bytes",
                {k: [(x, y / 1e6) for x, y in line] for k, line in series["memory", True].items()}, True,
            ),
        },
    )  # fmt: skip


def study_crosstalk(steps: int | None = None, seed: int = 0) -> Findings:
    """A bidirectional model that predicts every word without masks, by its number of layers."""
    texts = toy_texts(SMALL)
    places = crosstalk.choose_places(texts.test, seed)
    sentences = [" ".join(texts.words[i - 2] for i in row if i) for row in texts.test]
    best = best_masked(SMALL, sentences, [[int(place)] for place in places])
    models: list[tuple[int, crosstalk.Training]] = [(1, "every word"), (2, "every word"), (3, "every word")]
    models.append((2, "masked words"))
    sights = [crosstalk.see_oneself(texts, n, training, steps=steps or 1_500, seed=seed) for n, training in models]
    rows = [
        [s.training, str(s.layers), f"{s.loss:.3f}", f"{s.own:.3f}", f"{s.hidden:.3f}", f"{s.swapped:.3f}"]
        for s in sights
    ]
    rows.append(
        ["always the most frequent word", "", "", "", *2 * [f"{crosstalk.most_frequent_share(texts, places):.3f}"]]
    )
    rows.append(["best possible", "", "", "", *2 * [f"{best.accuracy:.3f}"]])
    names = ["predicts", "layers", "training loss", "training accuracy", "[MASK]", "another word"]
    curves = {f"{s.training}, {s.layers} layer{'s' * (s.layers > 1)}": thin(s.losses) for s in sights}
    return Findings(
        {"accuracy on one hidden word per sentence": [names, *rows]},
        {"crosstalk_loss": Lines("Training loss", "step", "nats per word", curves)},
    )


def study_warmup(steps: int | None = None, seed: int = 0) -> Findings:
    """Warm-up on and off, with norms after and before the sublayers."""
    texts = toy_texts(SMALL)
    sentences = [" ".join(texts.words[i - 2] for i in row if i) for row in texts.test]
    # The first word is given, and the end of a sentence is not predicted.
    best = -np.mean(np.concatenate([p[1:-1] for p in word_log_probabilities(SMALL, sentences)]))
    how: dict[str, Any] = {} if steps is None else {"steps": steps}
    trainings = warmup.compare_warm_ups(texts, seed=seed, **how)
    rows = [
        [r.norm, str(r.warmup), f"{r.first:.2f}", f"{r.last:.2f}", f"{r.final:.3f}", f"{np.exp(r.final):.1f}"]
        for r in trainings
    ]
    rows.append(["best possible", "", "", "", f"{best:.3f}", f"{np.exp(best):.1f}"])
    names = ["norm", "warm-up", "gradient of the first layer", "of the last layer", "loss", "perplexity"]
    curves = {f"{r.norm}-norm, warm-up of {r.warmup}": thin(r.losses) for r in trainings}
    return Findings(
        {"a language model of eight layers": [names, *rows]},
        {"warmup_loss": Lines("Training loss", "step", "nats per word", curves)},
    )


def study_words(encoder: Any, name: str, world: ToyWorld | None = None, count: int = 400) -> Findings:
    """Heads that link words: in the paper's sentences, or in a toy world's texts if one is given."""
    tables: dict[str, Cells] = {}
    figures: dict[str, Figure] = {}
    if world is not None:
        results, pictures = word_links.score_links(encoder, world, name, count=count)
        tables[f"words that depend on another one ({world.language})"] = make_cells(results)
        figures = {f"words_{world.language}_{n}": picture for n, picture in enumerate(pictures)}
        sentences = [(list(text.words), *word_links.ends_of(text)) for text in sample_links(world)]
    else:
        texts = [(text.split(), word, other) for text, word, linked in word_links.SENTENCES for other in linked]
        sentences = [(words, words.index(word), words.index(other)) for words, word, other in texts]
    rows = []
    for n, (words, of, to) in enumerate(sentences):
        maps = word_links.read_maps(encoder, words)
        links = word_links.find_links(maps, words, of, to)
        linked = f"{words[of]} → {words[to]}"
        rows += [[linked, str(k.layer), str(k.head), f"{k.weight:.3f}", f"{k.even:.3f}"] for k in links]
        figures[f"words_{n + 1}" if world is None else f"words_{world.language}_text_{n + 1}"] = word_links.draw_head(
            maps, words, links[0], name
        )
    tables["heads that link two words most"] = [["words", "layer", "head", "weight", "even"], *rows]
    return Findings(tables, figures)


def study_sentence(encoder: Any, name: str, sentence: str, word: str | None = None) -> Findings:
    """Find the referent of a pronoun, with the head that links `its` with `Law` most in the paper's sentence."""
    sentence, word = unicodedata.normalize("NFC", sentence), word and unicodedata.normalize("NFC", word)
    text, pronoun, (referent, _) = word_links.SENTENCES[-1]
    paper_words, words = text.split(), sentence.split()
    of, to = paper_words.index(pronoun), paper_words.index(referent)
    (best,) = word_links.find_links(word_links.read_maps(encoder, paper_words), paper_words, of, to, top=1)
    place = word_links.find_pronoun(words, word)
    maps = word_links.read_maps(encoder, words)
    ranked = word_links.rank_words(maps, words, place, best.layer, best.head)
    rows = [[k.other, f"{k.weight:.3f}", f"{k.even:.3f}", f"{top:.3f}"] for k, top in ranked]
    title = f"what {words[place]!r} attends to in layer {best.layer}, head {best.head} ({pronoun} → {referent})"
    cells = [["word", "weight", "even", "most in any head"], *rows]
    return Findings({title: cells}, {"sentence": word_links.draw_head(maps, words, ranked[0][0], name)})


def sample_links(world: ToyWorld) -> list[Any]:
    """Return a text of each kind of link, to draw."""
    return [word_links.toy_links(world, kind, 3)[-1] for kind in (word_links.AGREEMENT, word_links.PRONOUN)]


def write_findings(findings: Findings, folder: str | Path, *, png: bool = False, stage: bool = False) -> list[Path]:
    """Print the tables, write the figures into a folder, and return the paths of the figures."""
    for title, cells in findings.tables.items():
        print(f"{title}\n\n{format_table(cells)}\n")
    return write_figures(folder, findings.figures, png=png, stage=stage)


def label(scaled: bool) -> str:
    """Return the name of a kind of score."""
    return "scaled" if scaled else "unscaled"


def thin(values: Any) -> list[tuple[float, float]]:
    """Return at most `BINS` points of a curve, each the mean of neighbouring steps.

    >>> thin(np.arange(4.0))
    [(1.0, 0.0), (2.0, 1.0), (3.0, 2.0), (4.0, 3.0)]
    """
    parts = np.array_split(np.asarray(values, np.float64), min(BINS, len(values)))
    ends = np.cumsum([len(part) for part in parts])
    return [(float(end), float(part.mean())) for end, part in zip(ends, parts)]


TRAINED: Mapping[str, Callable[..., Findings]] = {
    "scaling": study_scaling,
    "heads": study_heads,
    "length": study_length,
    "crosstalk": study_crosstalk,
    "warmup": study_warmup,
}
