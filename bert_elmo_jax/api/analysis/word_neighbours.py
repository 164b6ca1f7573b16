"""The neighbours of a word in its context, layer by layer: where else it is used so."""

import fnmatch
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bert_elmo_jax.api.kept_vectors import keep_apart
from bert_elmo_jax.api.word_layers import Source, StaticVectors, Words
from bert_elmo_jax.evals.nearest import neighbours

Place = tuple[int, int]  # number of the sentence, and of the word in it


@dataclass(frozen=True)
class Neighbour:
    """A place in a corpus, the word there, its sentence, and its cosine to the word that was asked about.

    >>> Neighbour((0, 1), ("큰", "배"), 0.93).word
    '배'
    """

    place: Place
    words: tuple[str, ...]
    cosine: float

    @property
    def word(self) -> str:
        """The word."""
        return self.words[self.place[1]]


@dataclass(frozen=True)
class Neighbourhood:
    """Of an encoder's layer, an occurrence of a word and those nearest to it (the first is the occurrence itself).

    >>> Neighbourhood("runs/elmo", 1, (Neighbour((0, 0), ("배",), 1.0),)).asked.word
    '배'
    """

    encoder: str
    layer: int
    found: tuple[Neighbour, ...]

    @property
    def asked(self) -> Neighbour:
        """The occurrence whose neighbours these are."""
        return self.found[0]


def occurrences(sentences: Sequence[Words], pattern: str) -> list[Place]:
    """Where a word stands, in any case; `*` stands for any letters, as in `배*` with its particles.

    >>> occurrences([["Play", "the", "play"], ["배를"]], "play"), occurrences([["배를", "배우"]], "배[를는가]")
    ([(0, 0), (0, 2)], [(0, 0)])
    """
    lower = pattern.lower()
    return [
        (n, at)
        for n, words in enumerate(sentences)
        for at, word in enumerate(words)
        if fnmatch.fnmatchcase(word.lower(), lower)
    ]


def word_neighbours(
    sources: Mapping[str, Source],
    sentences: Sequence[Words],
    pattern: str,
    folder: str | Path,
    *,
    asked: int = 3,
    count: int = 5,
    layers: Sequence[int] | None = None,
    batch_size: int = 32,
) -> list[Neighbourhood]:
    """Of some occurrences of a word, spread over the corpus, the `count` nearest ones by cosine, in each layer.

    >>> import tempfile
    >>> from bert_elmo_jax import load
    >>> sentences = [["강가의", "배"], ["큰", "배"], ["the", "play"]]
    >>> found = word_neighbours({"elmo": load("tests/goldens/elmo_tiny")}, sentences, "배", tempfile.mkdtemp(), asked=1)
    >>> [(around.layer, [neighbour.place for neighbour in around.found]) for around in found][:2]
    [(0, [(0, 1), (1, 1)]), (1, [(0, 1), (1, 1)])]
    """
    places = occurrences(sentences, pattern)
    if len(places) < 2:
        raise ValueError(
            f"{pattern!r} stands {len(places)} times in the text: two are needed. A * stands for any ending, as in 배*"
        )
    spans: list[list[tuple[int, int]]] = [[] for _ in sentences]
    for n, at in places:
        spans[n].append((at, at + 1))
    chosen = np.unique(np.linspace(0, len(places) - 1, min(asked, len(places))).round().astype(int)).tolist()
    found = []
    for row in chosen:
        for name, source in sources.items():
            kept = keep_apart(source, sentences, folder, spans=spans, layers=layers, batch_size=batch_size)
            for layer in kept.layers:
                vectors = kept.layer(layer)
                near = [pair for pair in neighbours(vectors, np.array(vectors[row]), count + 1) if pair[0] != row]
                around = [(row, 1.0), *near[:count]]
                some = (Neighbour(places[r], tuple(sentences[places[r][0]]), cosine) for r, cosine in around)
                found.append(Neighbourhood(name, layer, tuple(some)))
    return found


def static_neighbours(vectors: StaticVectors, word: str, count: int = 10) -> list[tuple[str, float]]:
    """The words whose static vectors are nearest to that of a word, whatever it means where.

    >>> table = {"play": np.array([1.0, 0.0]), "game": np.array([0.9, 0.1]), "river": np.array([0.0, 1.0])}
    >>> static_neighbours(StaticVectors(table), "play", 1)
    [('game', 0.994)]
    """
    words = list(vectors.table)
    if word not in vectors.table:
        return []
    near = neighbours(np.stack(list(vectors.table.values())), vectors.table[word], count + 1)
    return [(words[row], cosine) for row, cosine in near if words[row] != word][:count]


def neighbours_section(found: Sequence[Neighbourhood]) -> str:
    """The neighbours as HTML, the word marked in every sentence.

    >>> neighbours_section([Neighbourhood("elmo", 1, (Neighbour((0, 0), ("<배>",), 1.0),))]).count("<b>&lt;배&gt;</b>")
    1
    """
    parts, before = [], None
    for around in found:
        if around.asked.place != before:
            parts.append(f"<h3>{_marked(around.asked)}</h3>")
            before = around.asked.place
        lines = "".join(f"<li>{n.cosine:.3f} <q>{_marked(n)}</q></li>" for n in around.found[1:])
        parts.append(f"<p>{html.escape(around.encoder)}, layer {around.layer}</p><ul>{lines}</ul>")
    return "".join(parts)


def neighbours_text(found: Sequence[Neighbourhood]) -> str:
    """The neighbours as lines for a terminal.

    >>> print(neighbours_text([Neighbourhood("elmo", 1, (Neighbour((0, 1), ("큰", "배"), 1.0),))]))
    elmo, layer 1: 큰 [배]
    """
    lines = []
    for around in found:
        lines.append(f"{around.encoder}, layer {around.layer}: {_plain(around.asked)}")
        lines += [f"  {near.cosine:.3f}  {_plain(near)}" for near in around.found[1:]]
    return "\n".join(lines)


def _marked(near: Neighbour) -> str:
    words = [html.escape(word) for word in near.words]
    words[near.place[1]] = f"<b>{words[near.place[1]]}</b>"
    return " ".join(words)


def _plain(near: Neighbour) -> str:
    return " ".join(f"[{word}]" if n == near.place[1] else word for n, word in enumerate(near.words))
