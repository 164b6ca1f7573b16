"""Senses of words by the nearest mean vector, layer by layer, beside the first sense."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from bert_elmo_jax.data.tasks.semcor import Sense, SenseSentence
from bert_elmo_jax.evals.senses import first_senses, nearest_senses
from bert_elmo_jax.inference.kept_vectors import keep_apart
from bert_elmo_jax.inference.word_layers import Source
from bert_elmo_jax.report.results import Result

SEVERAL = "senses, of words with several in training"


def split_documents(
    sentences: Sequence[SenseSentence], *, share: float = 0.2, seed: int = 0
) -> tuple[list[SenseSentence], list[SenseSentence]]:
    """Sentences to train on and to test on: a share of the documents, drawn by the seed, is for the test.

    >>> sentences = [SenseSentence(("배",), (), f"d{n // 2}", "semcor.tsv", n) for n in range(10)]
    >>> train, test = split_documents(sentences)
    >>> len(train), len(test), {s.document for s in train} & {s.document for s in test}
    (8, 2, set())
    """
    documents = sorted({sentence.document for sentence in sentences})
    if len(documents) < 2:
        raise ValueError(
            f"{len(documents)} document{'s'[: len(documents) != 1]}: two or more are needed to train on some and test "
            "on others (a line `# newdoc id = …` begins one)"
        )
    if not 0 < share < 1:
        raise ValueError(f"share={share}: expected a part of the documents, above 0 and below 1")
    order = np.random.default_rng(seed).permutation(len(documents))
    count = min(max(1, round(share * len(documents))), len(documents) - 1)
    chosen = {documents[n] for n in order[:count]}
    parts: tuple[list[SenseSentence], list[SenseSentence]] = ([], [])
    for sentence in sentences:
        parts[sentence.document in chosen].append(sentence)
    return parts


def word_senses(
    sources: Mapping[str, Source],
    train: Sequence[SenseSentence],
    test: Sequence[SenseSentence],
    folder: str | Path,
    *,
    layers: Sequence[int] | None = None,
    batch_size: int = 32,
    report: Callable[[str], object] = lambda text: None,
) -> list[Result]:
    """Accuracy (every word gets an answer, so it is the F1 too) of the nearest sense vector, beside the first sense.

    A sense's vector is the mean over its occurrences in `train`; the first sense is the most frequent one there. Words
    that do not occur there have, for all alike, the sense that WordNet counts first. The second lot of lines is of the
    words that had several senses in training, where alone there is something to choose.

    >>> import tempfile
    >>> from bert_elmo_jax.inference.word_layers import StaticVectors
    >>> sense = Sense(0, 1, "bank%1", ("bank%1:14:00::",), (2,))
    >>> sentence = SenseSentence(("bank",), (sense,), "d", "semcor.tsv", 1)
    >>> sources = {"my vectors": StaticVectors({"bank": np.ones(2)})}
    >>> [result.percent for result in word_senses(sources, [sentence], [sentence], tempfile.mkdtemp())]
    ['100.0', '100.0']
    """
    known, asked = ([sense for sentence in part for sense in sentence.senses] for part in (train, test))
    if not known or not asked:
        raise ValueError(f"{len(known)} words with senses to train on, {len(asked)} to test on: give more documents")
    items, senses, test_items = [s.item for s in known], [s.keys[0] for s in known], [s.item for s in asked]
    ambiguous = _ambiguous(items, senses)
    several = [n for n, sense in enumerate(asked) if sense.item in ambiguous]
    given = first_senses(items, senses, test_items)
    unseen = sum(guess is None for guess in given)
    note = f"{len(known):,} of training; {unseen:,} words not in it have WordNet's first sense"
    answers = [("first sense", "", note, _right(asked, given))]
    for name, source in sources.items():
        train_kept, test_kept = (
            keep_apart(
                source,
                [sentence.words for sentence in part],
                folder,
                spans=[[(s.first, s.end) for s in sentence.senses] for sentence in part],
                layers=layers,
                batch_size=batch_size,
            )
            for part in (train, test)
        )
        for layer in train_kept.layers:
            report(f"senses, {name}, layer {layer}")
            found = nearest_senses(train_kept.layer(layer), items, senses, test_kept.layer(layer), test_items)
            answers.append((name, str(layer), "", _right(asked, found)))
    results = [Result("senses", name, layer, float(r.mean()), len(r), note) for name, layer, note, r in answers]
    if several:
        results += [
            Result(SEVERAL, name, layer, float(r[several].mean()), len(several)) for name, layer, _, r in answers
        ]
    return results


def _right(asked: Sequence[Sense], given: Sequence[str | None]) -> np.ndarray:
    pairs = zip(asked, given)
    return np.array([1 in sense.numbers if guess is None else guess in sense.keys for sense, guess in pairs])


def _ambiguous(items: Sequence[str], senses: Sequence[str]) -> set[str]:
    kinds: dict[str, set[str]] = {}
    for item, sense in zip(items, senses):
        kinds.setdefault(item, set()).add(sense)
    return {item for item, some in kinds.items() if len(some) > 1}
