"""Dependency trees as rows of words with the transitions that build them, and rows as batches."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int32

from bert_elmo_jax.data.tasks.examples import ParsedSentence
from bert_elmo_jax.data.tasks.files import BadRow
from bert_elmo_jax.data.tasks.word_rows import Batch, Layers, WordRow, collate_words, words_of_sentences
from bert_elmo_jax.text import Lexicon

SHIFT = 0
STEP = 16  # batch widths in words are multiples of this, because the loop over transitions takes long to compile
UNKNOWN_TAG = 0  # the ids of known tags begin with 1


@dataclass(frozen=True, eq=False)
class TreeRow(WordRow):
    """The input of a sentence, whose `tags` are read, and its transitions if its tree is known."""

    actions: Int32[np.ndarray, "A"] | None = None

    def content(self) -> bytes:
        """Return the row as bytes, for fingerprints."""
        return super().content() + b"\0t" + (b"" if self.actions is None else self.actions.tobytes())


def find_actions(heads: Sequence[int], relations: Sequence[int]) -> list[int] | None:
    """Return the arc-standard transitions that build a tree, or None if it is not projective.

    Nivre 2004. The stack begins with the root. `SHIFT` moves the next word to the stack; 1 + 2r makes the second word
    of the stack a dependent of the first one with relation r; 2 + 2r makes the first a dependent of the second. A word
    becomes a dependent as soon as it has all its own. A sentence of n words takes 2n transitions.

    >>> find_actions((2, 0, 2), (0, 1, 2))  # he <- sleeps -> well
    [0, 0, 1, 0, 6, 4]
    >>> find_actions((3, 4, 0, 3), (0, 0, 1, 0)) is None  # arcs cross
    True
    """
    missing = [0] * (len(heads) + 1)  # dependents that a word has not yet
    for head in heads:
        missing[head] += 1
    stack, word, actions = [0], 1, list[int]()
    while word <= len(heads) or len(stack) > 1:
        first, second = stack[-1], stack[-2] if len(stack) > 1 else 0
        if second and heads[second - 1] == first and not missing[second]:
            actions.append(1 + 2 * relations[second - 1])
            del stack[-2]
            missing[first] -= 1
        elif first and heads[first - 1] == second and not missing[first]:
            actions.append(2 + 2 * relations[first - 1])
            del stack[-1]
            missing[second] -= 1
        elif word <= len(heads):
            actions.append(SHIFT)
            stack.append(word)
            word += 1
        else:
            return None
    return actions


def find_root_relation(sentences: Sequence[ParsedSentence], labels: Sequence[str]) -> int:
    """Return the place in `labels` of the relation that all roots have, and no other word; -1 if there is none.

    >>> sentence = ParsedSentence(("배가", "온다"), None, (2, 0), ("nsubj", "root"), "train.conllu", (1, 2), None)
    >>> find_root_relation([sentence], ["nsubj", "root"])
    1
    """
    arcs = [arc for one in sentences for arc in zip(one.heads or (), one.relations or ())]
    of_roots, of_words = ({name for head, name in arcs if (head == 0) == root} for root in (True, False))
    return labels.index(of_roots.pop()) if len(of_roots) == 1 and of_words and not of_roots & of_words else -1


def make_tree_rows(sentences: Sequence[ParsedSentence], lexicon: Lexicon, tags: Sequence[str] = ()) -> list[TreeRow]:
    """Return one row per sentence, without its tree; unknown tags share an id."""
    numbers = {tag: number for number, tag in enumerate(tags, start=UNKNOWN_TAG + 1)}
    rows = []
    for n, (sentence, words) in enumerate(zip(sentences, words_of_sentences(sentences))):
        ids = None
        if tags:
            ids = np.array([numbers.get(tag, UNKNOWN_TAG) for tag in sentence.tags or ()], np.int32)
        rows.append(TreeRow(n, words, lexicon.ids(words), ids))
    return rows


def make_training_rows(
    sentences: Sequence[ParsedSentence], lexicon: Lexicon, labels: Sequence[str], tags: Sequence[str] = ()
) -> tuple[list[TreeRow], list[str]]:
    """Return the rows of projective sentences with their transitions, and notes on the sentences that are left out."""
    numbers = {label: number for number, label in enumerate(labels)}
    rows = []
    for row, sentence in zip(make_tree_rows(sentences, lexicon, tags), sentences):
        assert sentence.heads is not None and sentence.relations is not None
        actions = find_actions(sentence.heads, [numbers[relation] for relation in sentence.relations])
        if actions is not None:
            rows.append(dataclasses.replace(row, actions=np.array(actions, np.int32)))
    left_out = len(sentences) - len(rows)
    if not rows:
        problem = f"none of the {left_out:,} sentences has a projective tree, and the parser learns from no other"
        raise BadRow(sentences[0].file, sentences[0].line, problem, "give more sentences")
    share = f"{left_out:,} of {len(sentences):,} sentences"
    verb = "is" if left_out == 1 else "are"
    note = f"{share} {verb} not projective (arcs cross), which this parser cannot build: left out of the training"
    return rows, [note] if left_out else []


def collate_trees(
    rows: Sequence[TreeRow], height: int, lexicon: Lexicon, layers: Layers | None = None, *, targets: bool = True
) -> Batch:
    """Return rows as arrays: the entries of `collate_words` and two actions for each word, -1 where there is none."""
    batch = collate_words(rows, height, lexicon, layers, tags=rows[0].tags is not None, step=STEP)
    if targets:
        batch["actions"] = np.full((height, 2 * batch["words"].shape[1]), -1, np.int32)
        for n, row in enumerate(rows):
            assert row.actions is not None
            batch["actions"][n, : len(row.actions)] = row.actions
    return batch
