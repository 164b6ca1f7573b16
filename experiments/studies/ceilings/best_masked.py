"""The guesses of the ideal reader of the toy world on a run's held-out rows of pieces, compared with the model's.

The rows and masks are the run's own. The ideal reader knows which of the predicted words that are not [MASK] are true
and which are random, so its score is at least the best possible one, and equal to it if all are [MASK]. A second
passage continues the first with a prior probability of one half. The reader reads whole sentences: truncated examples
and words of several pieces are left out of its score and of the model's.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict

from bert_elmo_jax.inference.toy_worlds import load_worlds
from bert_elmo_jax.toyworld import masked_posteriors, next_sentence_probabilities

from .held_out import Batch, build_means, read_held_out
from .toy_passages import Passage, Sentences, list_examples, list_hidden


class Scores:
    """Right guesses of the ideal reader, their expected number, and all guesses: by language, and for "next"."""

    def __init__(self) -> None:
        self.right, self.expected, self.count = Counter[str](), Counter[str](), Counter[str]()

    def add(self, name: str, right: Sequence[bool], expected: Sequence[float]) -> None:
        """Add guesses."""
        for table, value in ((self.right, sum(right)), (self.expected, sum(expected)), (self.count, len(right))):
            table[name] += value  # type: ignore[assignment]


def best_masked_rows(
    batches: Sequence[Batch], sentences: Sentences, pairs: bool
) -> tuple[Scores, dict[str, list[Batch]]]:
    """Return the scores of the ideal reader, and for each language the batches with the weights of its guesses."""
    scores = Scores()
    names = sorted({*sentences.language.values()})
    scored: dict[str, list[Batch]] = {name: [] for name in names}
    together: dict[str, list[tuple[Passage, Passage, bool]]] = {name: [] for name in names}
    single: dict[str, list[Passage]] = {name: [] for name in names}
    for batch in batches:
        weights = {name: np.zeros_like(batch["mlm_weights"]) for name in names}
        counts = np.zeros_like(batch["nsp_weights"])
        for row, slot, passages, predictions in list_examples(batch, sentences):
            counts[row, slot] = batch["nsp_weights"][row, slot]
            for passage, places in zip(passages, predictions):
                weights[passage.language][row, places] = 1
                shown = len(places) - len(passage.hidden)
                scores.add(passage.language, [True] * shown, [1.0] * shown)
            one_language = len({passage.language for passage in passages}) == 1
            label = bool(batch["nsp_targets"][row, slot])
            if pairs and len(passages) == 2 and one_language:
                together[passages[0].language].append((passages[0], passages[1], label))
                continue
            for passage in passages:
                single[passage.language].append(passage)
            if pairs:
                scores.add("next", [label], [1.0])  # a continuation has the same language
        for name in names:
            scored[name].append({**batch, "mlm_weights": weights[name], "nsp_weights": counts})
    for name in names:
        world = sentences.worlds[name]
        texts = [(a.text, b.text) for a, b, _ in together[name]]
        following = next_sentence_probabilities(world, texts)
        right = [(p < 0.5) == label for p, (*_, label) in zip(following.tolist(), together[name])]
        scores.add("next", right, np.maximum(following, 1 - following).tolist())
        rows: list[Any] = [*texts, *(passage.text for passage in single[name])]
        truths = [list_hidden(a) + list_hidden(b) for a, b, _ in together[name]] + [*map(list_hidden, single[name])]
        for first in range(0, len(rows), 256):
            for posterior, truth in zip(masked_posteriors(world, rows[first : first + 256]), truths[first:]):
                guesses = [world.network.words[n] for n in posterior.argmax(1)]
                scores.add(name, [g == t for g, t in zip(guesses, truth)], posterior.max(1).tolist())
    return scores, scored


class MaskedScore(NamedTuple):
    """The accuracies of a model and of the ideal reader, the expected one of the latter, and the guesses' number."""

    name: str
    model: float
    best: float
    expected: float
    of: int


class MaskedScores(NamedTuple):
    """Scores of each language, of all, and of next sentences; `of_all` includes the predictions left out above."""

    lines: list[MaskedScore]
    batches: int
    source: str
    predictions: int
    of_all: dict[str, float]


def masked_scores(run: Path, config: ConfigDict, corpus: Path) -> MaskedScores:
    """Return the held-out scores of a run and of the ideal reader."""
    if config.objective not in ("nsp", "documents"):
        raise ValueError(f"objective={config.objective!r}: the ideal reader knows nsp and documents")
    pairs = config.objective == "nsp"
    model, objective, batches = read_held_out(run, config, corpus, config.eval_batches)
    sentences = Sentences(corpus, load_worlds(config.to_dict()), model.tokenizer.tokens)
    scores, parts = best_masked_rows(batches, sentences, pairs)
    means = build_means(objective.held_out_loss, model.params)
    of_all, of_part = means(batches), {name: means(part) for name, part in parts.items()}

    def line(title: str, value: float, names: Sequence[str]) -> MaskedScore:
        count = sum(scores.count[name] for name in names)
        best, expected = (sum(table[name] for name in names) / count for table in (scores.right, scores.expected))
        return MaskedScore(title, value, best, expected, count)

    accuracies = {name: of_part[name]["mlm_accuracy"] for name in parts if scores.count[name]}
    total = sum(scores.count[name] for name in accuracies)
    mean = sum(accuracies[name] * scores.count[name] for name in accuracies) / total
    lines = [line(f"masked words, {name}", accuracies[name], [name]) for name in accuracies]
    lines.append(line("masked words", mean, list(accuracies)))
    if pairs:
        lines.append(line("next sentence", next(iter(of_part.values()))["nsp_accuracy"], ["next"]))
    predictions = int(sum(batch["mlm_weights"].sum() for batch in batches))
    return MaskedScores(lines, len(batches), model.report.source, predictions, of_all)
