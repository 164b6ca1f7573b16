"""Small systems trained in the toy world, each compared with the best possible score of a reader who sees the same.

The gap below 1 has two parts: what the words that a system sees do not tell (1 − ceiling), and what it has not learned
(ceiling − score). A system is an encoder, pretrained on text and frozen; a linear probe reads all of its layers at the
word, trained on so many labels that a few more change nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax import load
from bert_elmo_jax.analysis.linear_probe import choose_probe
from bert_elmo_jax.inference.word_layers import word_layers
from bert_elmo_jax.report.figures import Bars
from bert_elmo_jax.runs.config_files import read_config, set_field, show_value
from bert_elmo_jax.runs.pretraining import pretrain
from bert_elmo_jax.sweeps.points import File
from bert_elmo_jax.sweeps.toy_tasks import make_files
from bert_elmo_jax.toyworld import VIEWS, Place, ToyWorld, best_reader, exact_ceiling, list_places
from bert_elmo_jax.toyworld.readers import LabelTask
from bert_elmo_jax.toyworld.tasks import SPLITS

from ...sweeps._scales import TOY_DATA, TOY_DOCUMENTS
from ...sweeps._three_encoders import SCALES
from ..why_attention.studies import Findings

PLACES = 4_000  # labelled words to train a probe
TASKS: tuple[LabelTask, ...] = ("senses", "topics")
SHARE = 0.5  # of the steps of own_three_encoders


class System(NamedTuple):
    """A system: its pretraining, the reader whose ceiling it has, and how many neighbours' vectors its probe reads."""

    pretraining: str
    reader: str
    window: int = 0


SYSTEMS: Mapping[str, System] = {
    "one vector per word": System("static", "word"),
    "vectors of 3 words": System("static", "window 1", 1),
    "vectors of 5 words": System("static", "window 2", 2),
    "GPT": System("GPT", "left"),
    "ELMo": System("ELMo", "separate"),
    "BERT": System("BERT", "all"),
}


def train_systems(folder: Path, share: float = SHARE) -> dict[str, Path]:
    """Pretrain the encoders in subfolders of a folder, or resume their training; return their run directories."""
    words = TOY_DATA.corpus("words", 8_192, TOY_DOCUMENTS)
    recipes: dict[str, tuple[str, Mapping[str, Any]]] = {"static": ("static:toy", {"data": words, "steps": 2_000})}
    recipes |= SCALES["toy"].pretrainings
    make_files(folder / "data", [settings["data"] for _, settings in recipes.values()])
    runs = {}
    for name, (recipe, settings) in recipes.items():
        config, _ = read_config(recipe)
        steps = max(2, round(share * settings["steps"]))
        # ELMo reads single sentences, as its probe does.
        more = {"reading": "sentences"} if name == "ELMo" else {}
        for field, value in {**settings, **more, "steps": steps, "eval_every": steps}.items():
            set_field(config, field, show_value(folder / "data" / value.name if isinstance(value, File) else value))
        runs[name] = folder / name.lower()
        if status := pretrain(config, runs[name]):
            raise SystemExit(status)
    return runs


def draw_places(world: ToyWorld, task: LabelTask, count: int = PLACES) -> dict[str, list[Place]]:
    """Return labelled words of each part: `count` to train, a quarter to choose the penalty, half to test.

    The parts have documents of their own.
    """
    parts = {}
    for part, size in {"train": count, "dev": count // 4, "test": count // 2}.items():
        documents = (world.document(SPLITS[part] + i) for i in range(size))
        parts[part] = list(islice(_each_place(world, task, documents), size))
    return parts


def _each_place(world: ToyWorld, task: LabelTask, documents: Iterator[Any]) -> Iterator[Place]:
    while batch := list(islice(documents, 100)):
        yield from list_places(world, task, batch)


def read_vectors(encoder: Any, places: Sequence[Place], window: int = 0) -> Float32[np.ndarray, "N D"]:
    """Return all layers of each word and of `window` words on either side, concatenated; zeros beyond the sentence."""
    sentences = list(dict.fromkeys(place.sentence.words for place in places))
    numbers = {words: n for n, words in enumerate(sentences)}
    rows = []
    for layers in word_layers(encoder, sentences):
        words = np.concatenate(list(layers), axis=1)
        padded = np.pad(words, ((window, window), (0, 0)))
        rows.append(np.concatenate([padded[n : n + len(words)] for n in range(2 * window + 1)], axis=1))
    return np.stack([rows[numbers[place.sentence.words]][place.number] for place in places]).astype(np.float32)


def score_system(encoder: Any, parts: Mapping[str, Sequence[Place]], window: int) -> float:
    """Return the accuracy of a linear probe of an encoder on the test part."""
    vectors = {part: read_vectors(encoder, places, window) for part, places in parts.items()}
    labels = {part: np.array([place.label for place in places]) for part, places in parts.items()}
    probe, _ = choose_probe(vectors["train"], labels["train"], vectors["dev"], labels["dev"])
    return float(np.mean(probe.predict(vectors["test"]) == labels["test"]))


def study_systems(folder: Path, world: ToyWorld, share: float = SHARE, places: int = PLACES) -> Findings:
    """Train all systems, and return a table and a figure for each task."""
    encoders = {name: load(run) for name, run in train_systems(folder, share).items()}
    tables, figures = {}, {}
    for task in TASKS:
        parts = draw_places(world, task, places)
        lines, bars = [], {}
        for name, system in SYSTEMS.items():
            score = score_system(encoders[system.pretraining], parts, system.window)
            view = VIEWS.get(system.reader)
            sample = best_reader(world, task, parts["test"], system.reader)
            # Two halves have no view of their own: the expectation on the sample.
            ceiling = sample.expected if view is None else exact_ceiling(world, task, view)
            error = 1.96 * (score * (1 - score) / len(parts["test"])) ** 0.5
            lines.append(
                [name, system.reader, f"{score:.3f} ± {error:.3f}", f"{sample.accuracy:.3f}", f"{ceiling:.3f}",
                 f"{1 - ceiling:.3f}", f"{sample.accuracy - score:.3f}"]
            )  # fmt: skip
            bars[name] = (score, sample.accuracy)
        head = ["system", "sees", "score", "best possible here", "on all sentences", "not told", "not learned"]
        tables[f"{task} ({world.language})"] = [head, *lines]
        note = "The left bar of a system is its score, the right one the best possible score with the words it sees."
        figures[f"ceilings_{task}"] = Bars(f"Accuracy on {task}", ("score", "best possible"), bars, note)
    return Findings(tables, figures)
