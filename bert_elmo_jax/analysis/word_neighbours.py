"""The neighbours of a word in context, layer by layer: its most similar occurrences in a text."""

import dataclasses
import fnmatch
import html
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bert_elmo_jax.evals.nearest import neighbours
from bert_elmo_jax.inference.kept_vectors import VectorFolder
from bert_elmo_jax.inference.word_layers import Source, StaticVectors, Words
from bert_elmo_jax.report.language import Phrase, Translate, english

Place = tuple[int, int]  # number of the sentence (-1: the sentence of the user), and of the word in it
COLUMNS = ["asked", "asked in", "encoder", "layer", "cosine", "word", "in"]


class Neighbour(NamedTuple):
    """An occurrence of a word: its place, its sentence, and its cosine to the word in question.

    >>> repr(Neighbour((0, 1), ("큰", "배"), 0.93))
    '큰 [배] 0.930'
    """

    place: Place
    words: tuple[str, ...]
    cosine: float

    @property
    def word(self) -> str:
        """The word."""
        return self.words[self.place[1]]

    @property
    def text(self) -> str:
        """The sentence, with the word in brackets."""
        return " ".join(f"[{word}]" if n == self.place[1] else word for n, word in enumerate(self.words))

    def __repr__(self) -> str:
        return f"{self.text} {self.cosine:.3f}"


class Neighbourhood(NamedTuple):
    """An occurrence of a word in a layer of an encoder, followed by its nearest ones."""

    encoder: str
    layer: int
    occurrences: tuple[Neighbour, ...]

    @property
    def query(self) -> Neighbour:
        """The occurrence in question."""
        return self.occurrences[0]


def find_occurrences(sentences: Sequence[Words], pattern: str) -> list[Place]:
    """Return the places of a word, ignoring case; `*` is any letters, as in `배*`, and `배[를는]` has one of two."""
    lower = pattern.lower()
    return [
        (n, at)
        for n, words in enumerate(sentences)
        for at, word in enumerate(words)
        if fnmatch.fnmatchcase(word.lower(), lower)
    ]


def find_neighbours(
    sources: Mapping[str, Source],
    sentences: Sequence[Words],
    pattern: str,
    folder: VectorFolder,
    *,
    asked: int = 3,
    count: int = 5,
    sentence: Words | None = None,
) -> list[Neighbourhood]:
    """Return the `count` nearest occurrences, by cosine, for some occurrences of a word, in each layer.

    The `asked` occurrences are spread evenly over the text; with a `sentence` it is the first one there. A layer in
    which a word has the same vector everywhere (layer 0 of an ELMo) is left out unless `folder.layers` names it, or it
    is the only one.
    """
    places, own_places = find_occurrences(sentences, pattern), find_occurrences([sentence or ()], pattern)
    if sentence is not None and not own_places:
        raise ValueError(f"{pattern!r} is not in the sentence {' '.join(sentence)!r}: name a word of it")
    if len(places) < 2 - len(own_places[:1]):
        needed = "one is" if own_places else "two are"
        raise ValueError(
            f"{pattern!r} occurs {len(places)} times in the text: {needed} needed. A * matches any ending, as in 배*"
        )
    spans: list[list[tuple[int, int]]] = [[] for _ in sentences]
    for n, at in places:
        spans[n].append((at, at + 1))
    occurrences = [Neighbour(place, tuple(sentences[place[0]]), 1.0) for place in places]
    chosen = np.unique(np.linspace(0, len(places) - 1, min(asked, len(places))).round().astype(int)).tolist()
    neighbourhoods = []
    for row in [None] if own_places else chosen:
        for name, source in sources.items():
            inner = folder
            if folder.layers is None and source.num_layers and getattr(source, "FIXED_INPUT", False):
                inner = dataclasses.replace(folder, layers=range(1, source.num_layers + 1))
            vectors = inner.compute(source, sentences, spans)
            if row is None:
                at = own_places[0][1]
                query_vectors, query = inner.compute(source, [sentence or ()], [[(at, at + 1)]]), 0
                first = Neighbour((-1, at), tuple(sentence or ()), 1.0)
            else:
                query_vectors, query, first = vectors, row, occurrences[row]
            for layer in vectors.layers:
                near = neighbours(vectors.layer(layer), np.array(query_vectors.layer(layer)[query]), count + 1)
                nearest = [(other, cosine) for other, cosine in near if other != row][:count]
                closest = (occurrences[other]._replace(cosine=cosine) for other, cosine in nearest)
                neighbourhoods.append(Neighbourhood(name, layer, (first, *closest)))
    return neighbourhoods


def find_static_neighbours(vectors: StaticVectors, word: str, count: int = 10) -> list[tuple[str, float]]:
    """Return the words whose static vectors are nearest to a word's, with their cosines; [] for an unknown word.

    >>> table = {"play": np.array([1.0, 0.0]), "game": np.array([0.9, 0.1]), "river": np.array([0.0, 1.0])}
    >>> find_static_neighbours(StaticVectors(table), "play", 1)
    [('game', 0.994)]
    """
    words = list(vectors.table)
    if word not in vectors.table:
        return []
    near = neighbours(np.stack(list(vectors.table.values())), vectors.table[word], count + 1)
    return [(words[row], cosine) for row, cosine in near if words[row] != word][:count]


def describe_neighbours(sentences: Sequence[Words], pattern: str, neighbourhoods: Sequence[Neighbourhood]) -> Phrase:
    """Return a sentence that explains the neighbours to readers."""
    queries = dict.fromkeys(around.query.place for around in neighbourhoods)
    count = f"{len(find_occurrences(sentences, pattern)):,}"
    if neighbourhoods[0].query.place[0] < 0:
        return Phrase(
            "{pattern} occurs {count} times in the text. For the {word} in your sentence, here are the occurrences "
            "whose vectors are nearest in a layer, with their cosine: at most 1.000, the same direction.",
            pattern=pattern, count=count, word=neighbourhoods[0].query.word,
        )  # fmt: skip
    return Phrase(
        "{pattern} occurs {count} times in the text. For {queries} of them, spread evenly over the text, here are the "
        "other occurrences whose vectors are nearest in a layer, with their cosine: at most 1.000, the same direction.",
        pattern=pattern, count=count, queries=len(queries),
    )  # fmt: skip


def list_neighbours(neighbourhoods: Sequence[Neighbourhood]) -> list[list[object]]:
    """Return the neighbours as table rows with the columns `COLUMNS`."""
    return [
        [around.query.word, " ".join(around.query.words), around.encoder, str(around.layer), near.cosine, near.word,
         " ".join(near.words)]
        for around in neighbourhoods for near in around.occurrences[1:]
    ]  # fmt: skip


def format_neighbours(neighbourhoods: Sequence[Neighbourhood]) -> str:
    """Return the neighbours as lines for a terminal.

    >>> format_neighbours([Neighbourhood("elmo", 1, (Neighbour((0, 1), ("큰", "배"), 1.0),))])
    'elmo, layer 1: 큰 [배]'
    """
    lines = []
    for around in neighbourhoods:
        lines.append(f"{around.encoder}, layer {around.layer}: {around.query.text}")
        lines += [f"  {near.cosine:.3f}  {near.text}" for near in around.occurrences[1:]]
    return "\n".join(lines)


def draw_neighbours(neighbourhoods: Sequence[Neighbourhood], translate: Translate = english) -> str:
    """Return the neighbours as HTML, with the word marked in every sentence.

    >>> draw_neighbours([Neighbourhood("elmo", 1, (Neighbour((0, 0), ("<배>",), 1.0),))]).count("<b>&lt;배&gt;</b>")
    1
    """

    def mark(near: Neighbour) -> str:
        words = [html.escape(word) for word in near.words]
        words[near.place[1]] = f"<b>{words[near.place[1]]}</b>"
        return " ".join(words)

    parts, before = [], None
    for around in neighbourhoods:
        if around.query.place != before:
            parts.append(f"<h3>{mark(around.query)}</h3>")
            before = around.query.place
        lines = "".join(f"<li>{near.cosine:.3f} <q>{mark(near)}</q></li>" for near in around.occurrences[1:])
        title = translate("{name}, layer {layer}", name=around.encoder, layer=around.layer)
        parts.append(f"<p>{html.escape(title)}</p><ul>{lines}</ul>")
    return "".join(parts)
