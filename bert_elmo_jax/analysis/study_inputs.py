"""The options of a study, its result, and the texts and encoders that it reads."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bert_elmo_jax import load
from bert_elmo_jax.analysis.probes import PARTS, select_parts
from bert_elmo_jax.data.tasks.annotated import ParsedSentence, read_treebank
from bert_elmo_jax.inference.kept_vectors import VectorFolder
from bert_elmo_jax.inference.word_layers import Source, StaticVectors
from bert_elmo_jax.report.figures import Figure
from bert_elmo_jax.report.results import Result
from bert_elmo_jax.text.vectors import read_vectors


@dataclass(frozen=True)
class StudyOptions:
    """The options of the command line."""

    model: Sequence[str]
    static: Sequence[str]
    vectors: Path
    train: str | None
    dev: str | None
    test: str | None
    encoding: str
    limit: int | None
    tasks: Sequence[str]
    layers: Sequence[int] | None
    fractions: Sequence[float]
    seeds: Sequence[int]
    words: Sequence[str]
    sentence: str | None
    batch_size: int
    report: Callable[[str], object]

    @property
    def folder(self) -> VectorFolder:
        """The folder of vectors, with the layers to compute."""
        return VectorFolder(self.vectors, self.layers, self.batch_size)


@dataclass(frozen=True)
class Study:
    """The results of a study: scores, figures, sections of the page (heading, HTML), and text for a terminal.

    `rows`, the column names first, are the table of a study without scores.
    """

    results: Sequence[Result]
    figures: Sequence[Figure] = ()
    sections: Sequence[tuple[str, str]] = ()
    text: str = ""
    rows: Sequence[Sequence[object]] = ()

    def __repr__(self) -> str:
        return f"Study({len(self.results)} results, {len(self.figures)} figures, {len(self.sections)} sections)"


def read_parts(options: StudyOptions) -> dict[str, list[ParsedSentence]]:
    """Return the parts of a treebank, after checking that it annotates all tasks."""
    parts = {part: read_treebank(getattr(options, part), options.encoding)[: options.limit] for part in PARTS}
    for task in options.tasks:
        select_parts(parts, task)
    return parts


def shorten_names(paths: Sequence[str]) -> dict[str, str]:
    """Return the paths by name: the last part of each path if these differ, otherwise the whole path."""
    short = [Path(path).name for path in paths]
    return dict(zip(short if len(set(short)) == len(paths) else paths, paths))


def load_sources(options: StudyOptions, sentences: Iterable[Any] = ()) -> dict[str, Source]:
    """Return the encoders, and the static vectors of the sentences' words."""
    names = {path: name for name, path in shorten_names([*options.static, *options.model]).items()}
    forms = {form for sentence in sentences for word in sentence.words for form in (word, word.lower())}
    found: dict[str, Any] = {}
    for path in options.static:
        known = read_vectors(path, forms)
        found[names[path]] = StaticVectors(dict(zip(known.words, known.vectors)), path)
    return found | {names[path]: load(path) for path in options.model}


def load_models(options: StudyOptions) -> dict[str, Any]:
    """Return what `load` returns of each model, by name."""
    return {name: load(path) for name, path in shorten_names(options.model).items()}
