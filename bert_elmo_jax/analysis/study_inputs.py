"""What the studies of `probe` begin with and give back: what was asked, texts, encoders, and what came out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bert_elmo_jax import load
from bert_elmo_jax.analysis.probes import splits_of
from bert_elmo_jax.data.tasks.treebank import ParsedSentence, read_treebank
from bert_elmo_jax.inference.word_layers import Source, StaticVectors
from bert_elmo_jax.report.figures import Figure
from bert_elmo_jax.report.results import Result
from bert_elmo_jax.text.vectors import read_vectors


@dataclass(frozen=True)
class Asked:
    """What the command line asks."""

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


@dataclass(frozen=True)
class Study:
    """What came out: lines of a table, figures, sections of the page (title, HTML), and text for a terminal.

    `rows`, the names of their columns first, are the table of a study without scores.
    """

    results: Sequence[Result]
    figures: Sequence[Figure] = ()
    sections: Sequence[tuple[str, str]] = ()
    text: str = ""
    rows: Sequence[Sequence[object]] = ()


def parts_of(asked: Asked) -> dict[str, list[ParsedSentence]]:
    """The parts of a treebank; that it annotates what is asked is checked before a model is loaded."""
    files = {name: getattr(asked, name) for name in ("train", "dev", "test")}
    parts = {name: read_treebank(file, asked.encoding)[: asked.limit] for name, file in files.items()}
    for task in asked.tasks:
        splits_of(parts, task)
    return parts


def words_of(parts: Mapping[str, Sequence[ParsedSentence]]) -> Iterable[str]:
    """The words of all parts, one after the other."""
    return (word for part in parts.values() for sentence in part for word in sentence.words)


def names_of(paths: Sequence[str]) -> dict[str, str]:
    """Short names for paths: what they end with, where this tells them apart."""
    short = [Path(path).name for path in paths]
    return dict(zip(short if len(set(short)) == len(paths) else paths, paths))


def sources_of(asked: Asked, words: Iterable[str] = ()) -> dict[str, Source]:
    """The encoders, and of static vectors those of these words."""
    names = {path: name for name, path in names_of([*asked.static, *asked.model]).items()}
    forms = {form for word in words for form in (word, word.lower())}
    found: dict[str, Any] = {}
    for path in asked.static:
        known = read_vectors(path, forms)
        found[names[path]] = StaticVectors(dict(zip(known.words, known.vectors)), path)
    return found | {names[path]: load(path) for path in asked.model}
