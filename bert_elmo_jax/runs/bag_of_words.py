"""A linear model on word counts, fitted within a second: the baseline of a task on texts."""

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.text.words import split_words

ROWS, WORDS, PART = 1_500, 5_000, 1_000  # of the training data, of the vocabulary, and predicted at a time
RIDGE = 1.0  # the penalty on squared weights
Texts = Sequence[str]  # of one example: a text, or a pair


def count_words(texts: Texts) -> Counter[str]:
    """Return the counts of an example's words in lower case, and of the pairs of syllables in Korean words.

    A pair of texts has the words of each, and the number of words that they share.

    >>> sorted(count_words(["The sea"])), sorted(count_words(["바다가"]))
    (['0 sea', '0 the'], ['0 다가', '0 바다', '0 바다가'])
    >>> count_words(["the sea", "the ship"])["shared"]
    1
    """
    words = [split_words(unicodedata.normalize("NFC", text).lower()) for text in texts]
    parts = [
        f"{place} {part}" for place, text_words in enumerate(words) for word in text_words for part in _split(word)
    ]
    counts = Counter(parts)
    if len(words) == 2:
        counts["shared"] = len({*words[0]} & {*words[1]})
    return counts


def _split(word: str) -> Iterable[str]:
    if not "가" <= word[0] <= "힣":
        return (word,)
    return {word, *(word[at : at + 2] for at in range(len(word) - 1))}


def fit_and_predict(
    train: Sequence[Texts], targets: Float32[np.ndarray, "N C"], held_out: Sequence[Texts]
) -> Float32[np.ndarray, "M C"]:
    """Return the targets that a ridge regression on the word counts of at most `ROWS` examples predicts.

    >>> targets = np.array([[1, 0], [0, 1]], np.float32)
    >>> fit_and_predict([["good"], ["bad"]], targets, [["good"], ["bad"], ["?"]]).tolist()
    [[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]]
    """
    chosen = np.linspace(0, len(train) - 1, min(ROWS, len(train))).round().astype(int)
    counts, targets = [count_words(train[n]) for n in chosen], targets[chosen]
    documents = Counter(word for one in counts for word in one)
    columns = {word: n for n, (word, _) in enumerate(documents.most_common(WORDS))}
    rarity = np.array([1 + math.log(len(counts) / documents[word]) for word in columns], np.float32)

    def weigh(examples: Sequence[Counter[str]]) -> Float32[np.ndarray, "N V"]:
        values = np.zeros((len(examples), len(columns)), np.float32)
        for row, example in enumerate(examples):
            for word in example.keys() & columns.keys():
                values[row, columns[word]] = math.sqrt(example[word])
        values *= rarity
        return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-9)

    rows, mean = weigh(counts), targets.mean(axis=0)
    weights = rows.T @ np.linalg.solve(rows @ rows.T + RIDGE * np.eye(len(rows), dtype=np.float32), targets - mean)
    parts = [held_out[at : at + PART] for at in range(0, len(held_out), PART)]
    return np.concatenate([weigh([count_words(texts) for texts in part]) @ weights + mean for part in parts])


def compare_words(one: str, other: str) -> float:
    """Return the cosine of the word counts of two texts.

    >>> round(compare_words("the sea", "the ship"), 3)
    0.5
    """
    counts = [count_words([text]) for text in (one, other)]
    shared = sum(count * counts[1][word] for word, count in counts[0].items())
    norms = [math.sqrt(sum(count**2 for count in each.values())) for each in counts]
    return shared / (norms[0] * norms[1]) if all(norms) else 0.0
