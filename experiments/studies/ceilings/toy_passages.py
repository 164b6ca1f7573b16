"""Whole sentences of the toy world in held-out rows of pieces, with their masked words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int

from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.toyworld import MASK, ToyWorld

from .held_out import Batch

STOPS = (".", "?")  # the last word of every sentence of the toy world, and no other


@dataclass(frozen=True)
class Passage:
    """Whole sentences of one language: their words, and the places to guess."""

    language: str
    words: Sequence[str]
    hidden: Sequence[int]

    @property
    def text(self) -> str:
        """The text that the ideal reader gets."""
        return " ".join(MASK if n in self.hidden else word for n, word in enumerate(self.words))


class Sentences:
    """The held-out sentences, to recognise whole ones, and their languages."""

    def __init__(self, corpus: Path, worlds: Mapping[str, ToyWorld], words: Sequence[str]):
        self.words, self.worlds = words, worlds
        vocabularies = {language: {*world.network.words} for language, world in worlds.items()}
        self.language: dict[tuple[str, ...], str] = {}
        for document in open_store(corpus, "heldout"):
            for sentence in document:
                text = tuple(words[n] for n in sentence.tolist())
                languages = [language for language, vocabulary in vocabularies.items() if vocabulary.issuperset(text)]
                if languages:
                    self.language[text] = languages[0]

    def passage(self, ids: Int[np.ndarray, "T"], hidden: Sequence[int]) -> Passage | None:
        """Return the passage of some tokens, None unless they are whole sentences of one language."""
        words = [self.words[n] for n in ids.tolist()]
        ends = [n + 1 for n, word in enumerate(words) if word in STOPS]
        cuts = list(zip([0, *ends], [*ends, len(words)]))
        languages = {self.language.get(tuple(words[a:b])) for a, b in cuts if b > a}
        return None if None in languages or len(languages) != 1 else Passage(languages.pop(), words, hidden)  # type: ignore[arg-type]


def list_examples(batch: Batch, sentences: Sentences) -> Iterator[tuple[int, int, list[Passage], list[list[int]]]]:
    """Yield row, slot, passages and the predictions in each passage, for examples that were not truncated."""
    for row in range(len(batch["tokens"])):
        tokens = batch["tokens"][row].copy()
        real = np.flatnonzero(batch["mlm_weights"][row])
        at = batch["mlm_positions"][row][real]
        wrong = set(at[tokens[at] != batch["mlm_targets"][row][real]].tolist())
        tokens[at] = batch["mlm_targets"][row][real]
        for slot in range(batch["nsp_positions"].shape[1]):
            columns = np.flatnonzero(batch["segments"][row] == slot + 1)
            passages, predictions = [], []
            for kind in (0, 1):
                inside = columns[batch["types"][row][columns] == kind][1 - kind : -1]  # without [CLS] and [SEP]
                if len(inside):
                    hidden = [n for n, place in enumerate(inside.tolist()) if place in wrong]
                    passages.append(sentences.passage(tokens[inside], hidden))
                    predictions.append([n for n, place in zip(real.tolist(), at.tolist()) if place in inside])
            if passages and None not in passages:
                yield row, slot, passages, predictions  # type: ignore[misc]


def list_hidden(passage: Passage) -> list[str]:
    """Return the words to guess, in order."""
    return [passage.words[n] for n in sorted(passage.hidden)]
