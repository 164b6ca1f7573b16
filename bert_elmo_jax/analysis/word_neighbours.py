"""The neighbours of a word in its context, layer by layer: where else it is used so."""

import fnmatch
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bert_elmo_jax.evals.nearest import neighbours
from bert_elmo_jax.inference.kept_vectors import keep_apart
from bert_elmo_jax.inference.word_layers import Source, StaticVectors, Words

Place = tuple[int, int]  # number of the sentence (-1: one that was given), and of the word in it
COLUMNS = ["asked", "asked in", "encoder", "layer", "cosine", "word", "in"]


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
    sentence: Words | None = None,
) -> list[Neighbourhood]:
    """Of some occurrences of a word, spread over the corpus, the `count` nearest ones by cosine, in each layer.

    With a `sentence` those of the word in it, where it stands first. Layer 0 of an ELMo, to which a word is the same
    everywhere, is left out unless `layers` names it.

    >>> import tempfile
    >>> from bert_elmo_jax import load
    >>> sentences = [["강가의", "배"], ["큰", "배"], ["the", "play"]]
    >>> found = word_neighbours({"elmo": load("tests/goldens/elmo_tiny")}, sentences, "배", tempfile.mkdtemp(), asked=1)
    >>> [(around.layer, [neighbour.place for neighbour in around.found]) for around in found]
    [(1, [(0, 1), (1, 1)]), (2, [(0, 1), (1, 1)])]
    """
    places, own = occurrences(sentences, pattern), occurrences([sentence or ()], pattern)
    if sentence is not None and not own:
        raise ValueError(f"{pattern!r} does not stand in the sentence {' '.join(sentence)!r}: name a word of it")
    if len(places) < 2 - len(own[:1]):
        needed = "one is" if own else "two are"
        raise ValueError(
            f"{pattern!r} stands {len(places)} times in the text: {needed} needed. A * stands for any ending, as in 배*"
        )
    spans: list[list[tuple[int, int]]] = [[] for _ in sentences]
    for n, at in places:
        spans[n].append((at, at + 1))
    chosen = np.unique(np.linspace(0, len(places) - 1, min(asked, len(places))).round().astype(int)).tolist()
    found = []
    for row in [None] if own else chosen:
        for name, source in sources.items():
            wanted = _in_context(source) if layers is None else layers
            options: Any = {"layers": wanted, "batch_size": batch_size}
            kept = keep_apart(source, sentences, folder, spans=spans, **options)
            if row is None:
                assert sentence is not None
                at = own[0][1]
                alone = keep_apart(source, [sentence], folder, spans=[[(at, at + 1)]], **options)
                first = Neighbour((-1, at), tuple(sentence), 1.0)
            else:
                first = Neighbour(places[row], tuple(sentences[places[row][0]]), 1.0)
            for layer in kept.layers:
                vectors = kept.layer(layer)
                vector = np.array(alone.layer(layer)[0] if row is None else vectors[row])
                near = [pair for pair in neighbours(vectors, vector, count + 1) if pair[0] != row][:count]
                some = (Neighbour(places[r], tuple(sentences[places[r][0]]), cosine) for r, cosine in near)
                found.append(Neighbourhood(name, layer, (first, *some)))
    return found


def what_is_compared(sentences: Sequence[Words], pattern: str, found: Sequence[Neighbourhood]) -> str:
    """What the neighbours are, and of which places, in a sentence for readers who see nothing else.

    >>> near = Neighbour((0, 0), ("배",), 1.0)
    >>> print(what_is_compared([["배"], ["큰", "배"]], "배", [Neighbourhood("elmo", 1, (near, near))]))
    배 stands at 2 places of the text. Of 1 of them, spread evenly from the first to the last, here are the other \
places whose vectors are nearest in a layer: by the cosine of the two, which is at most 1.000 (the same direction).
    """
    asked = list(dict.fromkeys(around.asked.place for around in found))
    of = f"Of {len(asked)} of them, spread evenly from the first to the last, here are the other places"
    if asked[0][0] < 0:
        of = f"Of the {found[0].asked.word} in the sentence that was given, here are those of these places"
    return (
        f"{pattern} stands at {len(occurrences(sentences, pattern)):,} places of the text. {of} whose vectors are "
        "nearest in a layer: by the cosine of the two, which is at most 1.000 (the same direction)."
    )


def neighbours_rows(found: Sequence[Neighbourhood]) -> list[list[object]]:
    """The neighbours as rows of a table, of the columns `COLUMNS`.

    >>> near = Neighbour((0, 1), ("큰", "배"), 0.5)
    >>> neighbours_rows([Neighbourhood("elmo", 1, (near, near))])
    [['배', '큰 배', 'elmo', '1', 0.5, '배', '큰 배']]
    """
    return [
        [around.asked.word, " ".join(around.asked.words), around.encoder, str(around.layer), near.cosine, near.word,
         " ".join(near.words)]
        for around in found for near in around.found[1:]
    ]  # fmt: skip


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


def _in_context(source: Source) -> Sequence[int] | None:
    """The layers to which a word is another one in other company."""
    return range(1, source.num_layers + 1) if getattr(source, "FIXED_INPUT", False) else None


def _marked(near: Neighbour) -> str:
    words = [html.escape(word) for word in near.words]
    words[near.place[1]] = f"<b>{words[near.place[1]]}</b>"
    return " ".join(words)


def _plain(near: Neighbour) -> str:
    return " ".join(f"[{word}]" if n == near.place[1] else word for n, word in enumerate(near.words))
