"""The best possible scores on a sample, reached by the ideal reader in oracle.py."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bert_elmo_jax.toyworld.oracle import (
    Direction,
    Reading,
    Row,
    mask_words,
    masked_posteriors,
    next_sentence_probabilities,
    sense_posteriors,
    topic_posteriors,
    word_log_probabilities,
)
from bert_elmo_jax.toyworld.world import Sentence, ToyWorld


@dataclass(frozen=True)
class Best:
    """The ideal reader's `accuracy` on this sample, the accuracy it `expected`, and the `count` of predictions.

    Compare a model with `accuracy`, which is measured on the same sample; `expected` is a less noisy estimate of the
    ceiling in general.
    """

    accuracy: float
    expected: float
    count: int


def score_guesses(right: Sequence[bool], expected: Sequence[float]) -> Best:
    """Return the score of guesses: which are right, and the probability that each is.

    >>> score_guesses([True, False], [0.9, 0.5])
    Best(accuracy=0.5, expected=0.7, count=2)
    """
    if not right:
        raise ValueError("the sample is empty: give at least one prediction to score")
    return Best(float(np.mean(right)), float(np.mean(expected)), len(right))


def perplexity(
    world: ToyWorld, texts: Sequence[str], reading: Reading = "sentence", direction: Direction = "forward"
) -> float:
    """Return the true perplexity per target: words, punctuation, and the end (backward: the beginning) of every text.

    No language model has a lower perplexity in the long run.

    >>> 1 < perplexity(ToyWorld("en"), ["The bankers close the company ."]) < 100
    True
    """
    return float(np.exp(-np.mean(np.concatenate(word_log_probabilities(world, texts, reading, direction)))))


def best_masked(world: ToyWorld, rows: Sequence[Row], positions: Sequence[Sequence[int]]) -> Best:
    """Return the accuracy of the best guesses for the words at these positions, which are masked together.

    Positions count the words of a row, across both passages of a pair.

    >>> best_masked(ToyWorld("en"), ["The bankers close the company ."], [[3]]).accuracy
    1.0
    """
    words = world.network.words
    right: list[bool] = []
    expected: list[float] = []
    for first in range(0, len(rows), 256):
        chunk = list(zip(rows[first : first + 256], positions[first : first + 256], strict=True))
        for (row, hidden), posterior in zip(chunk, masked_posteriors(world, [_masked(*item) for item in chunk])):
            truth = (row if isinstance(row, str) else " ".join(row)).split()
            guesses = posterior.argmax(1)
            right += [words[guess] == truth[position] for guess, position in zip(guesses, sorted(set(hidden)))]
            expected += posterior.max(1).tolist()
    return score_guesses(right, expected)


def _masked(row: Row, positions: Sequence[int]) -> Row:
    if isinstance(row, str):
        return mask_words(row, positions)
    border = len(row[0].split())
    first = mask_words(row[0], [p for p in positions if p < border])
    return first, mask_words(row[1], [p - border for p in positions if p >= border])


def best_senses(world: ToyWorld, sentences: Sequence[Sentence]) -> Best:
    """Return the accuracy of sense tagging on ambiguous words, given one sentence at a time.

    >>> best_senses(ToyWorld("en"), [s for i in range(5) for s in ToyWorld("en").document(i).sentences]).count > 0
    True
    """
    posteriors = sense_posteriors(world, [sentence.text for sentence in sentences])
    tags = [tag for sentence in sentences for tag in sentence.tags]
    merged: Float[np.ndarray, "N S"] = np.concatenate(posteriors) if posteriors else np.zeros((0, 1))
    tagged = [i for i, tag in enumerate(tags) if tag != "O"]
    guesses = np.argmax(merged, axis=1)
    right = [world.network.senses[guesses[i]] == tags[i] for i in tagged]
    return score_guesses(right, [float(merged[i].max()) for i in tagged])


def best_topics(world: ToyWorld, texts: Sequence[str], topics: Sequence[str]) -> Best:
    """Return the accuracy of topic classification.

    >>> best_topics(ToyWorld("en"), ["The bankers close the company ."], ["money"]).accuracy
    1.0
    """
    posteriors = topic_posteriors(world, texts)
    right = [world.topic_names[row.argmax()] == topic for row, topic in zip(posteriors, topics, strict=True)]
    return score_guesses(right, posteriors.max(1).tolist())


def best_next(world: ToyWorld, pairs: Sequence[tuple[str, str]], labels: Sequence[int]) -> Best:
    """Return the accuracy of distinguishing next passages (0) from random ones (1).

    >>> best_next(ToyWorld("en"), [("The bankers close the company .", "The captain pulls the net .")], [1]).accuracy
    1.0
    """
    following = next_sentence_probabilities(world, pairs)
    right = [(p < 0.5) == bool(label) for p, label in zip(following.tolist(), labels, strict=True)]
    return score_guesses(right, np.maximum(following, 1 - following).tolist())
