"""Rows of damaged texts with their originals: the pretraining of BART, Lewis et al. 2020, section 2.2."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Integer

from bert_elmo_jax.data.pipeline.windows import Text
from bert_elmo_jax.data.rows.draws import DAMAGE, generator
from bert_elmo_jax.data.rows.translation import PairExamples, PairRows, pack_pairs

Pieces = Integer[np.ndarray, "_"]


@dataclass(frozen=True)
class Noise:
    """The damage of a text; its parts are applied in this order.

    Args:
        permute: shuffle the sentences.
        rotate: begin the text at a random piece, and append the part before it.
        delete: the share of pieces that are deleted.
        mask: the share of pieces that become the mask.
        infill: the share of pieces in spans that become one mask each; a span of no pieces inserts a mask.
        span: the mean length of these spans, which is drawn from Poisson's distribution.
    """

    permute: bool = True
    rotate: bool = False
    delete: float = 0.0
    mask: float = 0.0
    infill: float = 0.3
    span: float = 3.0


@dataclass(frozen=True)
class DenoisingExamples(PairExamples):
    """Settings of examples with a damaged text as their source, and the text as their target."""

    noise: Noise = Noise()


def plan_denoising_rows(
    text: Text,
    examples: DenoisingExamples,
    key: tuple[int, ...],
    frame: tuple[tuple[int, ...], tuple[int, ...]],
    mask: int,
) -> PairRows:
    """Return the rows of a window; `key` identifies the window and its epoch, which has damage of its own.

    `frame` are the pieces before and after every source; a target has the ones before it, too. An example is as many
    consecutive sentences of a document as fit into a row.
    """
    rng = generator(*key, DAMAGE)
    before, after = frame
    room = min(examples.source_length - len(before) - len(after), examples.target_length - len(before) - 1)
    if room < 1:
        raise ValueError(f"rows of {examples.length} pieces have no room for a piece between the special ones")
    parts: list[Pieces] = []
    lengths = []
    for sentences in split_documents(text, room):
        source = damage(sentences, examples.noise, mask, rng)[:room]
        target = np.concatenate([before, *sentences])
        parts += [source, target]
        lengths.append((len(source) + len(before) + len(after), len(target) + 1))
    sizes = np.array([len(part) for part in parts], np.int64)
    begins = (np.cumsum(sizes) - sizes).reshape(-1, 2)
    tokens = np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, np.int64)
    return pack_pairs(tokens, frame, begins, np.array(lengths, np.int64).reshape(-1, 2), examples, key)


def split_documents(text: Text, room: int) -> Iterator[list[Pieces]]:
    """Yield the sentences of each example: consecutive ones of a document with at most `room` pieces together."""
    tokens, cuts = np.asarray(text.tokens), text.sentences.tolist()
    for first, end in zip(text.documents[:-1].tolist(), text.documents[1:].tolist()):
        sentences: list[Pieces] = []
        size = 0
        for number in range(first, end):
            for begin in range(cuts[number], cuts[number + 1], room):  # a long sentence is cut
                sentence = tokens[begin : min(begin + room, cuts[number + 1])]
                if size + len(sentence) > room:
                    yield sentences
                    sentences, size = [], 0
                sentences.append(sentence)
                size += len(sentence)
        if sentences:
            yield sentences


def damage(sentences: Sequence[Pieces], noise: Noise, mask: int, rng: np.random.Generator) -> Pieces:
    """Return the pieces of a damaged text.

    >>> text = [np.array([5, 6, 7]), np.array([8, 9])]
    >>> damage(text, Noise(infill=0.0), 1, np.random.default_rng(3)).tolist()
    [8, 9, 5, 6, 7]
    >>> damage(text, Noise(permute=False, infill=0.5), 1, np.random.default_rng(1)).tolist()
    [5, 6, 7, 1]
    """
    order = rng.permutation(len(sentences)) if noise.permute else range(len(sentences))
    pieces = np.concatenate([sentences[n] for n in order])
    if noise.rotate and len(pieces):
        pieces = np.roll(pieces, -int(rng.integers(len(pieces))))
    if noise.delete:
        pieces = pieces[rng.random(len(pieces)) >= noise.delete]
    if noise.mask:
        pieces = np.where(rng.random(len(pieces)) < noise.mask, mask, pieces)
    return infill(pieces, noise.infill, noise.span, mask, rng) if noise.infill else pieces


def infill(pieces: Pieces, share: float, span: float, mask: int, rng: np.random.Generator) -> Pieces:
    """Return pieces with spans that have this share of them replaced by one mask each; spans do not touch."""
    total = round(share * len(pieces))
    lengths: list[int] = []
    while (left := total - sum(lengths)) > 0:
        lengths.append(min(int(rng.poisson(span)), left))
    stay = len(pieces) - total
    if len(lengths) > stay + 1:  # each span begins in another gap between pieces that stay
        lengths = [*lengths[:stay], sum(lengths[stay:])]
    sizes = np.array(lengths, np.int64)
    begins = np.sort(rng.choice(stay + 1, len(lengths), replace=False)) + np.cumsum(sizes) - sizes
    kept = np.ones(len(pieces), bool)
    for begin, size in zip(begins.tolist(), lengths):
        kept[begin : begin + size] = False
    places = np.concatenate([np.flatnonzero(kept), begins - 0.5])
    merged = np.concatenate([pieces[kept], np.full(len(begins), mask)])
    return merged[np.argsort(places, kind="stable")].astype(pieces.dtype)
