"""Attention heads that follow the arcs of a treebank, from a word to its head or from a head to the word."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from bert_elmo_jax.data.rows.widths import height_for, width_for
from bert_elmo_jax.data.tasks.annotated import ParsedSentence
from bert_elmo_jax.evals.attention_heads import OFFSETS, at_offsets, follows, most_attended, word_maps
from bert_elmo_jax.families.forward import Request, compile_run
from bert_elmo_jax.families.piece_encoder import PieceEncoder
from bert_elmo_jax.report.figures import Grid
from bert_elmo_jax.report.language import Phrase
from bert_elmo_jax.report.results import Result
from bert_elmo_jax.text import Encoding

LEAST = 10  # arcs of a relation in each half of the sentences
DRAWN = 6  # relations with a picture
PRONOUN = Phrase("any, of a pronoun")
DIRECTIONS = (Phrase("from the dependant to its head"), Phrase("from the head to the dependant"))
Arc = tuple[int, int, tuple[str, ...]]


class _Hits(NamedTuple):
    """Arcs of one relation in each half of the sentences, and those that each map and each fixed offset follows."""

    arcs: np.ndarray
    maps: np.ndarray
    offsets: np.ndarray


def heads_and_arcs(
    encoder: Any,
    sentences: Sequence[ParsedSentence],
    name: str,
    *,
    batch_size: int = 8,
    report: Callable[[str], object] = lambda text: None,
) -> tuple[list[Result], list[Grid]]:
    """Return for each relation the attention head that follows it best, the best fixed offset, and pictures of heads.

    A head follows an arc if, of all other words, it attends most to the one at the other end of the arc. The best head
    is chosen on one half of the sentences (every other one) and scored on the other, so that the choice among many
    heads is not rewarded. Sentences with more pieces than the model takes are left out.
    """
    if not isinstance(encoder, PieceEncoder):
        raise ValueError(f"{name} has no attention heads: leave it out")
    if encoder.config.attention != "reference":
        raise ValueError(f"{name} was loaded with fused attention, which keeps no maps: load it without")
    if encoder.family.causal(encoder.config):
        raise ValueError(f"{name} attends to one side only; its heads cannot follow arcs to the other")
    encoded = [encoder.tokenizer.encode_words(list(sentence.words)) for sentence in sentences]
    short = [n for n, text in enumerate(encoded) if len(text) <= encoder.config.max_positions]
    chosen = sorted((n for n in short if list_arcs(sentences[n])), key=lambda n: -len(encoded[n]))
    hits_by_relation: dict[str, _Hits] = {}
    forward = compile_run(encoder.family, encoder.config)
    for at in range(0, len(chosen), batch_size):
        batch = chosen[at : at + batch_size]
        tokens, mask = _pad(encoder, [encoded[n] for n in batch], batch_size)
        maps: Any = forward(encoder.params, tokens, None, None, mask, request=Request(attentions=True)).attentions
        for n, values in zip(batch, np.moveaxis(jax.device_get(maps), 1, 0)):
            for relation, *hits in _follow(sentences[n], values, encoded[n]):
                zeros = (np.zeros((2, *np.shape(counts)), np.int64) for counts in hits)
                for sums, counts in zip(hits_by_relation.setdefault(relation, _Hits(*zeros)), hits):
                    sums[n % 2] += counts
        if at // batch_size % 20 == 0:
            report(f"attention, {name}: {at + len(batch):,} of {len(chosen):,} sentences")
    left = len(sentences) - len(short)
    return _score(hits_by_relation, name, left)


def list_arcs(sentence: ParsedSentence) -> list[Arc]:
    """Return (dependant, head, names) of the arcs between two words; a name is the relation up to its colon.

    >>> sentence = ParsedSentence(
    ...     ("내", "배"), ("PRON", "NOUN"), ({}, {}), (2, 0), ("nmod:poss", "root"), "a", (1, 2)
    ... )
    >>> list_arcs(sentence)
    [(0, 1, ('nmod', 'any, of a pronoun'))]
    """
    return [
        (n, head - 1, (relation.partition(":")[0], *([PRONOUN] if tag == "PRON" else [])))
        for n, (head, relation, tag) in enumerate(zip(sentence.heads, sentence.relations, sentence.tags))
        if head and relation
    ]


def _pad(encoder: PieceEncoder, texts: Sequence[Encoding], batch_size: int) -> tuple[np.ndarray, np.ndarray]:
    width = width_for(max(map(len, texts)), encoder.config.max_positions)
    shape = (height_for(len(texts), batch_size), width)
    tokens, mask = np.full(shape, encoder.config.pad_id, np.int32), np.zeros(shape, np.int32)
    for n, text in enumerate(texts):
        tokens[n, : len(text)], mask[n, : len(text)] = text.ids, 1
    return tokens, mask


def _follow(sentence: ParsedSentence, maps: np.ndarray, text: Encoding) -> Iterator[tuple[Any, ...]]:
    """Yield each arc's names with 1, and the maps and offsets that follow it; `maps` are [layers, heads, T, T]."""
    size, arcs = len(text), list_arcs(sentence)
    ends = [(dependant, head) for dependant, head, _ in arcs]
    attended = most_attended(word_maps(maps[..., :size, :size], text.word_ids, len(sentence.words)))
    hits, fixed = follows(attended, ends), at_offsets(ends)
    for n, (_, _, names) in enumerate(arcs):
        yield from ((relation, 1, hits[:, n], fixed[:, n]) for relation in names)


def _score(hits_by_relation: dict[str, _Hits], name: str, left_out: int) -> tuple[list[Result], list[Grid]]:
    often = sorted(
        (r for r, hits in hits_by_relation.items() if hits.arcs.min() >= LEAST),
        key=lambda r: -hits_by_relation[r].arcs.sum(),
    )
    if not often:
        most = max((int(hits.arcs.min()) for hits in hits_by_relation.values()), default=0)
        raise ValueError(
            f"{most} arcs of the most frequent relation in half of the text: {LEAST} are needed; give more"
        )
    results: list[Result] = []
    figures: list[Grid] = []
    for relation in often:
        hits, task = hits_by_relation[relation], Phrase("attention: {relation}", relation=relation)
        count = int(hits.arcs[1])
        (way, offset), (side, layer, head) = (
            np.unravel_index(int(counts[0].argmax()), counts[0].shape) for counts in (hits.offsets, hits.maps)
        )
        fixed, best = hits.offsets[1, way, offset] / count, hits.maps[1, side, layer, head] / count
        offset_name = Phrase("offset {number}", number=f"{OFFSETS[offset]:+}")
        results.append(Result(task, offset_name, "", float(fixed), count, DIRECTIONS[way]))
        where = Phrase("head {number}, {direction}", number=head + 1, direction=DIRECTIONS[side])
        if left_out:
            where = Phrase("{note}; {count} sentences left out", note=where, count=f"{left_out:,}")
        results.append(Result(task, name, str(layer + 1), float(best), count, where))
        if len(figures) < DRAWN or relation == PRONOUN:
            shares = hits.maps.sum(axis=0)[side] / hits.arcs.sum()
            rows, columns = ([str(n + 1) for n in range(size)] for size in shares.shape)
            title = Phrase(
                "{relation}, {direction}: {name} (one row per layer, one column per head)",
                relation=relation, direction=DIRECTIONS[side], name=name,
            )  # fmt: skip
            figures.append(Grid(title, rows, columns, shares))
    return results, figures
