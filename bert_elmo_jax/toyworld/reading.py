"""Text encoding and one automaton per reading.

A *text* consists of whitespace-separated words and one or more sentences: punctuation is a word, line breaks are
spaces, and `[MASK]` hides a word. There are three readings:

- `sentence`: a single sentence, drawn uniformly from all sentences (for language models without context);
- `document`: a whole document from its first word to its last;
- `passage`: consecutive sentences from anywhere in a document (for masked language models).
"""

import functools
from collections.abc import Iterator, Sequence, Sized
from dataclasses import replace
from typing import Literal

import numpy as np
from jaxtyping import Int

from bert_elmo_jax.toyworld.automaton import MASKED, Automaton, Lattice, infer, reverse
from bert_elmo_jax.toyworld.world import ToyWorld

MASK = "[MASK]"
Reading = Literal["sentence", "document", "passage"]
Direction = Literal["forward", "backward"]
_BATCH_WORDS = 20_000


@functools.lru_cache(maxsize=16)
def automaton(world: ToyWorld, reading: Reading, direction: Direction = "forward") -> Automaton:
    """Return the automaton of a reading."""
    network = world.network
    document, finals = network.document, network.finals
    if reading == "sentence":
        source = np.repeat(np.arange(len(finals)), np.diff(document.arc_offsets))
        weights = np.where(finals[source], 0.0, document.arc_weights)
        document = replace(document, start=network.sentence_start, arc_weights=weights, end=finals.astype(np.float64))
    elif reading == "passage":
        document = replace(document, start=network.sentence_start, end=finals.astype(np.float64))
    if direction == "forward":
        return document
    if reading == "passage":
        raise ValueError('direction="backward" needs reading="sentence" or "document": a passage may begin anywhere')
    return reverse(document, network.visits / (world.sentences if reading == "sentence" else 1))


@functools.lru_cache(maxsize=4)
def _word_ids(world: ToyWorld) -> dict[str, int]:
    return {MASK: MASKED, **{word: number for number, word in enumerate(world.network.words)}}


def encode(world: ToyWorld, text: str, masks: bool = True) -> Int[np.ndarray, "T"]:
    """Return the word ids of a text, `MASKED` for `[MASK]`.

    >>> encode(ToyWorld(topics=2, words=2), "[MASK] .")
    array([-1,  0])
    """
    ids = _word_ids(world)
    words = text.split()
    if not masks and MASK in words:
        raise ValueError(f"{text!r} contains {MASK}: give a text without masks here")
    unknown = sorted({word for word in words if word not in ids})
    if unknown:
        raise ValueError(
            f"not words of this toy world ({world.language}, {len(ids) - 1} words): {', '.join(unknown[:5])}; "
            f"give its own sentences, with a space before punctuation, and {MASK} for a hidden word"
        )
    if not words:
        raise ValueError("an empty text: give at least one sentence of the toy world")
    return np.array([ids[word] for word in words], dtype=np.int64)


def infer_texts(chain: Automaton, texts: Sequence[str], ids: Sequence[Int[np.ndarray, "_"]]) -> Lattice:
    """Run inference on texts, and raise on the first word that is impossible."""
    lattice = infer(chain, ids)
    for row in np.flatnonzero(np.isneginf(lattice.log_likelihood)).tolist():
        word = np.flatnonzero(np.isneginf(lattice.forward[row]))
        where = f"{texts[row].split()[word[0]]!r} (word {word[0] + 1})" if len(word) else "the end"
        raise ValueError(f"not a text of this toy world: {where} cannot occur there in {texts[row]!r}")
    return lattice


def batches(items: Sequence[Sized]) -> Iterator[list[int]]:
    """Yield the indices of the items in batches of bounded total length, similar lengths together."""
    batch: list[int] = []
    total = 0
    for index in sorted(range(len(items)), key=lambda i: len(items[i])):
        batch.append(index)
        total += len(items[index])
        if total >= _BATCH_WORDS:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch
