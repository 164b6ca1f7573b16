"""Build examples from sentences: next-sentence pairs by the reference's rules, sentence order, or plain text.

Examples are stretches of a text's tokens. Each example of a document depends on the one before it (sentences displaced
by a random next are used again), but documents are independent: all documents advance together, as arrays.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Int64

from bert_elmo_jax.data.pipeline.windows import Text
from bert_elmo_jax.data.rows.widths import enumerate_runs

# Longer documents are split into parts of this many sentences: a single document would take many small steps.
LONG = 4096
SHORTEST = 5  # positions of the shortest pair: three special tokens and two others
Numbers = Int64[np.ndarray, "N"]  # one for each example, part or document


class Sequences(NamedTuple):
    """Examples: token stretches A and B (B is empty in examples of one stretch), labels, and weights of the labels."""

    a: Numbers  # start in the tokens
    a_length: Numbers
    b: Numbers
    b_length: Numbers
    label: Numbers
    weight: Numbers

    @property
    def lengths(self) -> Numbers:
        """Return the number of positions of each example, with special tokens."""
        return self.a_length + self.b_length + 2 + (self.b_length > 0)


def sentence_pairs(
    text: Text,
    length: int,
    rng: np.random.Generator,
    *,
    objective: Literal["nsp", "sop"] = "nsp",
    short_share: float = 0.1,
    short_per: Literal["document", "chunk"] = "document",
) -> Sequences:
    """Return all pairs of a text, each of at most `length` positions.

    With `nsp`, B follows A (label 0); with probability 0.5, and always if A is its whole chunk, B is a stretch of
    another document (label 1). With `sop`, B always follows A, but half of the pairs are swapped (label 1); a chunk of
    one sentence becomes an example without B, and its label has weight 0. With probability `short_share`, a document
    (or each chunk) aims at a random shorter length.
    """
    capacity = length - 3
    cuts, documents = text.sentences, text.documents
    pieces = []
    for owner, place, a_end, stop, target, coin in _chunks(text, capacity, rng, short_share, short_per):
        single = stop - place == 1
        a_size = cuts[a_end] - cuts[place]
        if objective == "nsp":
            random_next = single | (coin < 0.5)
            other = _another(owner, len(documents) - 1, rng)
            u = rng.random(len(owner))
            start = documents[other] + (u * (documents[other + 1] - documents[other])).astype(np.int64)
            b_target = np.maximum(target - a_size, 1)
            start_stop = np.minimum(np.searchsorted(cuts, cuts[start] + b_target), documents[other + 1])
            b, b_end = np.where(random_next, start, a_end), np.where(random_next, start_stop, stop)
            pieces.append((cuts[place], a_size, cuts[b], cuts[b_end] - cuts[b], random_next, np.ones_like(a_size)))
            place[:] = np.where(random_next, a_end, stop)
        else:
            swapped = ~single & (coin < 0.5)
            a, b, b_size = cuts[place], cuts[a_end], cuts[stop] - cuts[a_end]
            pair = np.where(swapped, (b, b_size, a, a_size), (a, a_size, b, b_size))
            pieces.append((*pair, swapped, ~single))
            place[:] = stop
    a, a_length, b, b_length, label, weight = (
        np.concatenate([np.empty(0, np.int64), *column]) for column in (zip(*pieces) if pieces else [()] * 6)
    )
    a, a_length, b, b_length = truncate(a, a_length, b, b_length, capacity, rng)
    return Sequences(a, a_length, b, b_length, label, weight)


def _chunks(
    text: Text, capacity: int, rng: np.random.Generator, short_share: float, short_per: str
) -> Iterator[tuple[Numbers, ...]]:
    """Yield the next chunk of every unfinished document: document, first sentence, end of A, end, target and a coin.

    The caller must set the first sentences, in place, to the start of each document's next chunk.
    """
    cuts = text.sentences
    owner, place, end = _parts(text.documents)
    target = _targets(int(text.documents.size - 1), capacity, rng, short_share)[owner]
    while len(owner):
        if short_per == "chunk":
            target = _targets(len(owner), capacity, rng, short_share)
        stop = np.minimum(np.searchsorted(cuts, cuts[place] + target), end)
        split, coin = rng.random((2, len(owner)))
        a_end = place + 1 + (split * (stop - place - 1)).astype(np.int64)
        yield owner, place, a_end, stop, target, coin
        unfinished = place < end
        owner, place, end, target = owner[unfinished], place[unfinished], end[unfinished], target[unfinished]


def _parts(documents: Int64[np.ndarray, "documents_plus_one"]) -> tuple[Numbers, Numbers, Numbers]:
    """Split documents into parts of at most `LONG` sentences; return document, first sentence and end of each."""
    owner, number = enumerate_runs(-(-np.diff(documents) // LONG))
    first = documents[owner] + number * LONG
    return owner, first, np.minimum(first + LONG, documents[owner + 1])


def _targets(count: int, capacity: int, rng: np.random.Generator, short_share: float) -> Numbers:
    """Draw the number of tokens to aim at: all the room, or with probability `short_share` a random number from 2."""
    short, size = rng.random((2, count))
    return np.where(short < short_share, 2 + (size * (capacity - 1)).astype(np.int64), capacity)


def _another(owner: Numbers, count: int, rng: np.random.Generator) -> Numbers:
    """Draw another document for each, or return the same if there is only one."""
    if count == 1:
        return owner
    other = (rng.random(len(owner)) * (count - 1)).astype(np.int64)
    return other + (other >= owner)


def truncate(
    a: Numbers, a_length: Numbers, b: Numbers, b_length: Numbers, capacity: int, rng: np.random.Generator
) -> tuple[Numbers, ...]:
    """Shorten pairs to `capacity` tokens: the longer side (B if equal) loses a random end token until the pair fits."""
    excess = np.maximum(a_length + b_length - capacity, 0)
    uneven = np.minimum(excess, np.abs(a_length - b_length))  # lost by the longer side alone; then both alternate
    from_a = np.where(a_length > b_length, uneven, 0) + (excess - uneven) // 2
    from_b = excess - from_a
    return a + rng.binomial(from_a, 0.5), a_length - from_a, b + rng.binomial(from_b, 0.5), b_length - from_b


def plain_text(text: Text, length: int, *, whole_documents: bool, closing: int = 0) -> Sequences:
    """Return consecutive stretches of as many whole sentences as fit, within one document or across documents.

    A sentence longer than a row is cut at the end of the row. If a row ends with a document, the document's last
    `closing` tokens (its separator) are dropped.
    """
    capacity = length - 2
    sizes = np.diff(text.sentences)
    sizes[text.documents[1:] - 1] -= closing
    owner, number = enumerate_runs(-(-sizes // capacity))
    cuts = np.append(text.sentences[:-1][owner] + number * capacity, text.sentences[-1])
    closings = np.searchsorted(cuts, text.sentences[text.documents[1:]])  # the cuts that end a document
    stops = cuts.copy()
    stops[closings] -= closing
    following = np.searchsorted(stops, cuts[:-1] + capacity, side="right") - 1
    if whole_documents:
        document = np.searchsorted(closings, np.arange(len(following)), side="right")
        following = np.minimum(following, closings[document])
    chain, at, jumps = [], 0, following.tolist()
    while at < len(jumps):
        chain.append(at)
        at = jumps[at]
    starts = np.array(chain, np.int64)
    nothing = np.zeros_like(starts)
    return Sequences(cuts[starts], stops[following[starts]] - cuts[starts], nothing, nothing, nothing, nothing)


def with_separators(text: Text, separator: int) -> Text:
    """Insert a separator token after each document, for examples that cross documents."""
    ends = text.sentences[text.documents[1:]]
    shifts = np.searchsorted(text.documents[1:], np.arange(len(text.sentences)), side="right")
    return Text(np.insert(text.tokens, ends, separator), text.sentences + shifts, text.documents)
