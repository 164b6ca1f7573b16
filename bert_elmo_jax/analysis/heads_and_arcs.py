"""Which attention heads of a BERT follow the arcs of a treebank: from a word to its head, or from a head to it."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from bert_elmo_jax.data.rows.widths import height_for, width_for
from bert_elmo_jax.data.tasks.treebank import ParsedSentence
from bert_elmo_jax.evals.attention_heads import OFFSETS, at_offsets, follows, most_attended, word_maps
from bert_elmo_jax.families.forward import Wanted, run
from bert_elmo_jax.families.piece_encoder import PieceEncoder
from bert_elmo_jax.report.figures import Grid
from bert_elmo_jax.report.results import Result
from bert_elmo_jax.text import Encoding

LEAST = 10  # arcs of a relation in each half: fewer say nothing
DRAWN = 6  # relations that get a picture
PRONOUN = "any, of a pronoun"
DIRECTIONS = ("from the dependant to its head", "from the head to the dependant")
Arc = tuple[int, int, tuple[str, ...]]


class _Counts:
    """Hits of every map and of every fixed offset, by relation and direction, in each half of the sentences."""

    def __init__(self) -> None:
        self.arcs: dict[str, np.ndarray] = {}
        self.maps: dict[str, np.ndarray] = {}
        self.offsets: dict[str, np.ndarray] = {}

    def add(self, half: int, relation: str, maps: np.ndarray, offsets: np.ndarray) -> None:
        if relation not in self.arcs:
            self.arcs[relation] = np.zeros(2, np.int64)
            self.maps[relation] = np.zeros((2, *maps.shape), np.int64)
            self.offsets[relation] = np.zeros((2, *offsets.shape), np.int64)
        self.arcs[relation][half] += 1
        self.maps[relation][half] += maps
        self.offsets[relation][half] += offsets


def heads_and_arcs(
    encoder: Any,
    sentences: Sequence[ParsedSentence],
    name: str,
    *,
    batch_size: int = 8,
    report: Callable[[str], object] = lambda text: None,
) -> tuple[list[Result], list[Grid]]:
    """For each relation the head of the BERT that follows it best, beside the best fixed offset; pictures of all heads.

    A head follows an arc where, of all other words, it attends most to the one at the arc's other end. Best is what is
    best in one half of the sentences (every other one), and the score is that of the other half, so that the choice
    among many heads is not rewarded. Sentences with more pieces than the model takes are left out.

    >>> from bert_elmo_jax import load
    >>> words, none = ("w1", "w2", "w3"), ({}, {}, {})
    >>> sentence = ParsedSentence(words, ("DET", "NOUN", "VERB"), none, (2, 3, 0), ("det", "nsubj", "root"), "a", (1,))
    >>> results, _ = heads_and_arcs(load("tests/goldens/bert_tiny"), [sentence] * 20, "tiny")
    >>> results[0].task, results[0].encoder, results[0].score
    ('attention: det', 'offset +1', 1.0)
    """
    if not isinstance(encoder, PieceEncoder):
        raise ValueError(f"{name} is no BERT, and only a BERT has attention heads: leave it out")
    if encoder.config.implementation != "reference":
        raise ValueError(f"{name} was loaded with fused attention, which keeps no maps: load it without")
    if encoder.config.attention != "bidirectional":
        raise ValueError(f"{name} attends to one side only; its heads cannot follow arcs to the other")
    encoded = [encoder.tokenizer.encode_words(list(sentence.words)) for sentence in sentences]
    short = [n for n, text in enumerate(encoded) if len(text) <= encoder.config.max_positions]
    kept = [n for n in short if arcs_of(sentences[n])]
    counts = _Counts()
    forward = jax.jit(functools.partial(run, encoder.family, encoder.config), static_argnames="wanted")
    kept.sort(key=lambda n: -len(encoded[n]))
    for at in range(0, len(kept), batch_size):
        batch = kept[at : at + batch_size]
        inputs = _batch(encoder, [encoded[n] for n in batch], batch_size)
        maps = forward(encoder.params, *inputs, wanted=Wanted(attentions=True)).attentions
        assert maps is not None
        for n, values in zip(batch, np.moveaxis(jax.device_get(maps), 1, 0)):
            _count(counts, n % 2, sentences[n], values, encoded[n])
        if at // batch_size % 20 == 0:
            report(f"attention, {name}: {at + len(batch):,} of {len(kept):,} sentences")
    left = len(sentences) - len(short)
    return _results(counts, name, f"; {left:,} sentences left out" if left else "")


def arcs_of(sentence: ParsedSentence) -> list[Arc]:
    """(dependant, head, names) of the arcs between two words; a name is the relation without what follows a colon.

    >>> sentence = ParsedSentence(("내", "배"), ("PRON", "NOUN"), ({}, {}), (2, 0), ("nmod:poss", "root"), "a", (1, 2))
    >>> arcs_of(sentence)
    [(0, 1, ('nmod', 'any, of a pronoun'))]
    """
    return [
        (n, head - 1, (relation.partition(":")[0], *([PRONOUN] if tag == "PRON" else [])))
        for n, (head, relation, tag) in enumerate(zip(sentence.heads, sentence.relations, sentence.tags))
        if head and relation
    ]


def _batch(
    encoder: PieceEncoder, texts: Sequence[Encoding], batch_size: int
) -> tuple[np.ndarray, None, None, np.ndarray]:
    width = width_for(max(map(len, texts)), encoder.config.max_positions)
    shape = (height_for(len(texts), batch_size), width)
    tokens, mask = np.full(shape, encoder.config.pad_id, np.int32), np.zeros(shape, np.int32)
    for n, text in enumerate(texts):
        tokens[n, : len(text)], mask[n, : len(text)] = text.ids, 1
    return tokens, None, None, mask


def _count(counts: _Counts, half: int, sentence: ParsedSentence, maps: np.ndarray, text: Encoding) -> None:
    """`maps` are those of the sentence's row, [layers, heads, T, T]."""
    size = len(text)
    arcs = arcs_of(sentence)
    ends = [(dependant, head) for dependant, head, _ in arcs]
    attended = most_attended(word_maps(maps[..., :size, :size], text.word_ids, len(sentence.words)))
    hits, fixed = follows(attended, ends), at_offsets(ends)
    for n, (_, _, names) in enumerate(arcs):
        for relation in names:
            counts.add(half, relation, hits[:, n], fixed[:, n])


def _results(counts: _Counts, name: str, note: str) -> tuple[list[Result], list[Grid]]:
    often = sorted((r for r, n in counts.arcs.items() if n.min() >= LEAST), key=lambda r: -int(counts.arcs[r].sum()))
    if not often:
        most = max((int(n.min()) for n in counts.arcs.values()), default=0)
        raise ValueError(
            f"{most} arcs of the most frequent relation in half of the text: {LEAST} are needed; give more"
        )
    results: list[Result] = []
    figures: list[Grid] = []
    for relation in often:
        of = int(counts.arcs[relation][1])
        maps, offsets = counts.maps[relation], counts.offsets[relation]
        way, offset = np.unravel_index(int(offsets[0].argmax()), offsets[0].shape)
        fixed = float(offsets[1][way, offset]) / of
        task = f"attention: {relation}"
        results.append(Result(task, f"offset {OFFSETS[offset]:+}", "", fixed, of, DIRECTIONS[way]))
        side, layer, head = np.unravel_index(int(maps[0].argmax()), maps[0].shape)
        best = float(maps[1][side, layer, head]) / of
        results.append(Result(task, name, str(layer + 1), best, of, f"head {head + 1}, {DIRECTIONS[side]}{note}"))
        if len(figures) < DRAWN or relation == PRONOUN:
            shares = maps.sum(axis=0)[side] / counts.arcs[relation].sum()
            rows, columns = ([str(n + 1) for n in range(size)] for size in shares.shape)
            title = f"{relation}, {DIRECTIONS[side]}: {name} (a row is a layer, a column a head)"
            figures.append(Grid(title, rows, columns, shares))
    return results, figures
