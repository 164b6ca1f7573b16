"""How the ideal reader takes in a text: words to ids, and one automaton for each way of reading.

A *text* is whitespace-separated words, one sentence or several: punctuation is a word, line breaks are spaces, and
`[MASK]` hides a word. Three ways of reading it:

- `sentence`: a single sentence, drawn from all sentences alike (what a language model reads that starts afresh);
- `document`: a whole document from its first word to its last;
- `passage`: consecutive sentences from anywhere in a document (what a masked language model reads).
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

import numpy as np
from jaxtyping import Int

from bert_elmo_jax.toyworld.automaton import MASKED, Automaton, Lattice, infer, reverse
from bert_elmo_jax.toyworld.world import ToyWorld

__all__ = ["MASK", "Direction", "Reading", "automaton", "batches", "encode", "infer_texts"]

MASK = "[MASK]"
Reading = Literal["sentence", "document", "passage"]
Direction = Literal["forward", "backward"]
_BATCH_WORDS = 20_000
_T = TypeVar("_T")


@functools.lru_cache(maxsize=16)
def automaton(world: ToyWorld, reading: Reading, direction: Direction = "forward") -> Automaton:
    """The automaton of a way of reading.

    >>> automaton(ToyWorld(topics=2, words=2), "sentence").end.max()
    np.float64(1.0)
    """
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
        raise ValueError("a passage has no beginning to read towards: read backward a sentence or a document")
    return reverse(document, network.visits / (world.sentences if reading == "sentence" else 1))


@functools.lru_cache(maxsize=4)
def _word_ids(world: ToyWorld) -> dict[str, int]:
    return {MASK: MASKED, **{word: number for number, word in enumerate(world.network.words)}}


def encode(world: ToyWorld, text: str, masks: bool = True) -> Int[np.ndarray, "T"]:
    """The word ids of a text, `MASKED` for `[MASK]`.

    >>> encode(ToyWorld(topics=2, words=2), "[MASK] .")
    array([-1,  0])
    """
    ids = _word_ids(world)
    words = text.split()
    if not masks and MASK in words:
        raise ValueError(f"this asks about words that are seen: there is a {MASK} in {text!r}")
    unknown = sorted({word for word in words if word not in ids})
    if unknown:
        raise ValueError(
            f"not words of this toy world ({world.language}, {len(ids) - 1} words): {', '.join(unknown[:5])}; "
            f"give its own sentences, with a space before punctuation, and {MASK} for a hidden word"
        )
    if not words:
        raise ValueError("an empty text: give a sentence of the toy world at least")
    return np.array([ids[word] for word in words], dtype=np.int64)


def infer_texts(chain: Automaton, texts: Sequence[str], ids: Sequence[Int[np.ndarray, "_"]]) -> Lattice:
    """Inference for texts that must be possible; the error says which word is not.

    >>> world = ToyWorld(topics=2, words=2)
    >>> infer_texts(automaton(world, "sentence"), [". ."], [encode(world, ". .")])
    Traceback (most recent call last):
    ValueError: the toy world never says this: '.' (word 1) cannot come where it does in '. .'
    """
    lattice = infer(chain, ids)
    for row in np.flatnonzero(np.isneginf(lattice.log_likelihood)).tolist():
        word = np.flatnonzero(np.isneginf(lattice.forward[row]))
        where = f"{texts[row].split()[word[0]]!r} (word {word[0] + 1})" if len(word) else "the end"
        raise ValueError(f"the toy world never says this: {where} cannot come where it does in {texts[row]!r}")
    return lattice


def batches(items: Sequence[_T], size: Callable[[_T], int]) -> Iterator[list[int]]:
    """Indices in batches of bounded size, similar lengths together.

    >>> list(batches(["a b", "a"], len))
    [[1, 0]]
    """
    batch: list[int] = []
    total = 0
    for index in sorted(range(len(items)), key=lambda i: size(items[i])):
        batch.append(index)
        total += size(items[index])
        if total >= _BATCH_WORDS:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch
