"""Senses of words by the nearest mean vector, layer by layer, compared with the first sense."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from bert_elmo_jax.data.tasks.annotated import Sense, SenseSentence
from bert_elmo_jax.evals.probing import first_senses, nearest_senses
from bert_elmo_jax.inference.kept_vectors import VectorFolder
from bert_elmo_jax.inference.word_layers import Source
from bert_elmo_jax.report.language import Phrase
from bert_elmo_jax.report.results import SENSES, Result

SEVERAL = Phrase("senses, of words with several in training")


def split_documents(
    sentences: Sequence[SenseSentence], *, seed: int = 0
) -> tuple[list[SenseSentence], list[SenseSentence]]:
    """Return training and test sentences; a fifth of the documents, drawn by the seed, is for the test."""
    documents = sorted({sentence.document for sentence in sentences})
    if len(documents) < 2:
        needed = "two or more are needed to train on some and test on others (a line `# newdoc id = …` begins one)"
        raise ValueError(f"{len(documents)} document{'s'[: len(documents) != 1]}: {needed}")
    order = np.random.default_rng(seed).permutation(len(documents))
    chosen = {documents[n] for n in order[: max(1, round(0.2 * len(documents)))]}
    parts: tuple[list[SenseSentence], list[SenseSentence]] = ([], [])
    for sentence in sentences:
        parts[sentence.document in chosen].append(sentence)
    return parts


def find_senses(
    sources: Mapping[str, Source],
    train: Sequence[SenseSentence],
    test: Sequence[SenseSentence],
    folder: VectorFolder,
    *,
    report: Callable[[str], object] = lambda text: None,
) -> list[Result]:
    """Return the accuracy of the nearest sense vector, and of the first sense (F1 too, as every word gets an answer).

    The vector of a sense is the mean over its occurrences in `train`; the first sense is the most frequent one there.
    A word that does not occur there gets WordNet's first sense from every method. A second set of results is
    restricted to words with several senses in training, the only ones with a choice.
    """
    train_senses, test_senses = ([sense for sentence in part for sense in sentence.senses] for part in (train, test))
    if not train_senses or not test_senses:
        raise ValueError(
            f"{len(train_senses)} words with senses to train on, {len(test_senses)} to test on: give more documents"
        )
    items, senses, test_items = (
        [s.item for s in train_senses],
        [s.keys[0] for s in train_senses],
        [s.item for s in test_senses],
    )
    first = first_senses(items, senses, test_items)
    unseen = sum(guess is None for guess in first)
    counts = {"count": f"{len(train_senses):,}", "unseen": f"{unseen:,}"}
    note = Phrase("{count} of training; {unseen} words not in it have WordNet's first sense", **counts)
    answers: list[tuple[str, str, str, np.ndarray]] = [(Phrase("first sense"), "", note, _check(test_senses, first))]
    texts = [
        ([sentence.words for sentence in part], [[(s.first, s.end) for s in sentence.senses] for sentence in part])
        for part in (train, test)
    ]
    for name, source in sources.items():
        train_vectors, test_vectors = (folder.compute(source, words, spans) for words, spans in texts)
        for layer in train_vectors.layers:
            report(f"senses, {name}, layer {layer}")
            nearest = nearest_senses(train_vectors.layer(layer), items, senses, test_vectors.layer(layer), test_items)
            answers.append((name, str(layer), "", _check(test_senses, nearest)))
    results = [Result(SENSES, name, layer, float(right.mean()), len(right), n) for name, layer, n, right in answers]
    kinds = Counter(item for item, _ in set(zip(items, senses)))
    several = [n for n, item in enumerate(test_items) if kinds[item] > 1]
    for name, number, _, right in answers if several else ():
        results.append(Result(SEVERAL, name, number, float(right[several].mean()), len(several)))
    return results


def _check(senses: Sequence[Sense], answers: Sequence[str | None]) -> np.ndarray:
    """Return for each word whether the sense is right; None is WordNet's first sense."""
    pairs = zip(senses, answers)
    return np.array([1 in sense.numbers if guess is None else guess in sense.keys for sense, guess in pairs])
