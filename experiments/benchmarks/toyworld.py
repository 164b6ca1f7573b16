r"""A run on the toy world beside the best that anyone could do: the same held-out text, the same predictions.

  python -m experiments.benchmarks.toyworld --run=runs/bert_toy
  python -m experiments.benchmarks.toyworld --run=runs/elmo_toy

The toy world is finite-state, so what an ideal reader expects is computed exactly (`bert_elmo_jax.data.toyworld`).

BERT: the run's own held-out rows with its own masks. The ideal reader is told which of the words that stand in place of
[MASK] are true and which are random, so that what it reaches is no less than the best possible, and exactly that where
all are [MASK]; that of two passages one follows the other is as likely to it as not. It reads whole sentences: examples
that were cut to fit, and words in several pieces, are left out, and the model is scored on what is left, too.

ELMo: all of the run's held-out rows. The ideal reader knows the document so far; where a row begins, some sentence
begins for it; after a document comes another, in any of the languages; and the end of a sentence is certain to it. The
probability of a text is the same read from either end, and so is the true perplexity.
"""

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from absl import app, flags, logging
from jaxtyping import Bool, Float, Int
from ml_collections import ConfigDict

from bert_elmo_jax.api.read_model import read_model
from bert_elmo_jax.data.pipeline import eval_batches
from bert_elmo_jax.data.store import open_store
from bert_elmo_jax.data.toyworld import MASK, ToyWorld, masked_posteriors, next_sentence_probabilities
from bert_elmo_jax.data.toyworld.automaton import infer
from bert_elmo_jax.data.toyworld.reading import automaton, encode
from bert_elmo_jax.heads.elmo_loss import DIRECTIONS
from bert_elmo_jax.text.words import UNK_WORD
from bert_elmo_jax.train import make_evaluate
from bert_elmo_jax.train.state import State
from experiments.objectives import bert_objective, elmo_objective
from experiments.toy_worlds import worlds_of

flags.DEFINE_string("run", None, "A run directory of pretrain_bert or pretrain_elmo with data=toyworld.", required=True)
FLAGS = flags.FLAGS

Batch = Mapping[str, np.ndarray]
STOPS = (".", "?")  # a sentence of the toy world ends with one of these, and has none before


@dataclass(frozen=True)
class Passage:
    """Whole sentences of one language: their words, and where the ideal reader has to guess."""

    language: str
    words: Sequence[str]
    hidden: Sequence[int]

    @property
    def text(self) -> str:
        """As the ideal reader is given it."""
        return " ".join(MASK if n in self.hidden else word for n, word in enumerate(self.words))


@dataclass
class Scores:
    """Right guesses of the ideal reader, how many it expected, of how many: by language, and for next sentences."""

    right: dict[str, float]
    expected: dict[str, float]
    count: dict[str, int]

    def add(self, name: str, right: Iterable[bool], expected: Iterable[float]) -> None:
        """Count some guesses."""
        guesses = list(right)
        self.right[name] = self.right.get(name, 0.0) + sum(guesses)
        self.expected[name] = self.expected.get(name, 0.0) + sum(expected)
        self.count[name] = self.count.get(name, 0) + len(guesses)


class Sentences:
    """The held-out sentences, to know a whole one by, and the languages."""

    def __init__(self, corpus: Path, worlds: Mapping[str, ToyWorld], words: Sequence[str]):
        self.words, self.worlds = words, worlds
        vocabularies = {language: {*world.network.words} for language, world in worlds.items()}
        self.language: dict[tuple[str, ...], str] = {}
        for document in open_store(corpus, "heldout"):
            for sentence in document:
                text = tuple(words[n] for n in sentence.tolist())
                found = [language for language, known in vocabularies.items() if known.issuperset(text)]
                if found:
                    self.language[text] = found[0]

    def passage(self, ids: Int[np.ndarray, "T"], hidden: Sequence[int]) -> Passage | None:
        """What a stretch of tokens says, if it is whole sentences."""
        words = [self.words[n] for n in ids.tolist()]
        ends = [n + 1 for n, word in enumerate(words) if word in STOPS]
        cuts = list(zip([0, *ends], [*ends, len(words)]))
        languages = {self.language.get(tuple(words[a:b])) for a, b in cuts if b > a}
        return None if None in languages or len(languages) != 1 else Passage(languages.pop(), words, hidden)  # type: ignore[arg-type]


def examples_of(batch: Batch, sentences: Sentences) -> Iterator[tuple[int, int, list[Passage], list[list[int]]]]:
    """Row, place in it, passages, and for each passage its predictions, of the examples that were not cut."""
    for row in range(len(batch["tokens"])):
        tokens = batch["tokens"][row].copy()
        real = np.flatnonzero(batch["mlm_weights"][row])
        at = batch["mlm_positions"][row][real]
        wrong = set(at[tokens[at] != batch["mlm_targets"][row][real]].tolist())
        tokens[at] = batch["mlm_targets"][row][real]
        for slot in range(batch["nsp_positions"].shape[1]):
            here = np.flatnonzero(batch["segments"][row] == slot + 1)
            passages, predictions = [], []
            for kind in (0, 1):
                inside = here[batch["types"][row][here] == kind][1 - kind : -1]  # without [CLS] and [SEP]
                if len(inside):
                    hidden = [n for n, place in enumerate(inside.tolist()) if place in wrong]
                    passages.append(sentences.passage(tokens[inside], hidden))
                    predictions.append([n for n, place in zip(real.tolist(), at.tolist()) if place in inside])
            if passages and None not in passages:
                yield row, slot, passages, predictions  # type: ignore[misc]


def best_bert(batches: Sequence[Batch], sentences: Sentences, pairs: bool) -> tuple[Scores, dict[str, list[Batch]]]:
    """What the ideal reader guesses right, and for each name the batches with the weights of what it was asked."""
    scores = Scores({}, {}, {})
    names = sorted({*sentences.language.values()})
    asked: dict[str, list[Batch]] = {name: [] for name in names}
    together: dict[str, list[tuple[Passage, Passage, bool]]] = {name: [] for name in names}
    alone: dict[str, list[Passage]] = {name: [] for name in names}
    for batch in batches:
        weights = {name: np.zeros_like(batch["mlm_weights"]) for name in names}
        counts = np.zeros_like(batch["nsp_weights"])
        for row, slot, passages, predictions in examples_of(batch, sentences):
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
                alone[passage.language].append(passage)
            if pairs:
                scores.add("next", [label], [1.0])  # two languages are two documents
        for name in names:
            asked[name].append({**batch, "mlm_weights": weights[name], "nsp_weights": counts})
    for name in names:
        world = sentences.worlds[name]
        texts = [(a.text, b.text) for a, b, _ in together[name]]
        following = next_sentence_probabilities(world, texts)
        right = [(p < 0.5) == label for p, (*_, label) in zip(following.tolist(), together[name])]
        scores.add("next", right, np.maximum(following, 1 - following).tolist())
        rows: list[Any] = [*texts, *(passage.text for passage in alone[name])]
        truths = [hidden_words(a) + hidden_words(b) for a, b, _ in together[name]] + [*map(hidden_words, alone[name])]
        for first in range(0, len(rows), 256):
            for posterior, truth in zip(masked_posteriors(world, rows[first : first + 256]), truths[first:]):
                guesses = [world.network.words[n] for n in posterior.argmax(1)]
                scores.add(name, [g == t for g, t in zip(guesses, truth)], posterior.max(1).tolist())
    return scores, asked


def hidden_words(passage: Passage) -> list[str]:
    """The words that are to be guessed, in order."""
    return [passage.words[n] for n in sorted(passage.hidden)]


def bert(run: Path, asked: ConfigDict, corpus: Path) -> None:
    """Print a BERT's table."""
    if asked.objective not in ("nsp", "documents"):
        raise app.UsageError(f"objective={asked.objective!r}: the ideal reader knows nsp and documents")
    pairs = asked.objective == "nsp"
    model = read_model(run)
    objective = bert_objective(asked, model.config)  # type: ignore[arg-type]
    batches = list(eval_batches(corpus, objective.phases[0].examples, asked.batch_size, limit=asked.eval_batches))
    sentences = Sentences(corpus, worlds_of(asked), model.tokenizer.tokens)  # type: ignore[union-attr]
    scores, parts = best_bert(batches, sentences, pairs)
    means = means_of(objective.held_out_loss, model.params)
    of_all, of_part = means(batches), {name: means(part) for name, part in parts.items()}
    print(f"{model.report.source}: {len(batches)} held-out batches")
    print(f"{'':24}{'model':>8}{'best':>8}{'expected':>10}{'share':>8}{'of':>10}")
    found = {name: of_part[name]["mlm_accuracy"] for name in parts if scores.count.get(name)}
    total = sum(scores.count[name] for name in found)
    mean = sum(found[name] * scores.count[name] for name in found) / total
    for name in found:
        line(f"masked words, {name}", found[name], scores, [name])
    line("masked words", mean, scores, list(found))
    if pairs:
        line("next sentence", next(iter(of_part.values()))["nsp_accuracy"], scores, ["next"])
    masked = int(sum(batch["mlm_weights"].sum() for batch in batches))
    print(f"\nall {masked:,} predictions, cut examples and pieces of words among them: ", end="")
    print(", ".join(f"{name} {of_all[name]:.4f}" for name in ("mlm_accuracy", "nsp_accuracy") if name in of_all))


def line(title: str, model: float, scores: Scores, names: Sequence[str]) -> None:
    """One line of the table."""
    count = sum(scores.count[name] for name in names)
    best, expected = (sum(table[name] for name in names) / count for table in (scores.right, scores.expected))
    print(f"{title:24}{model:8.4f}{best:8.4f}{expected:10.4f}{model / best:8.1%}{count:10,}")


def best_stream(
    words: Sequence[str], ends: Bool[np.ndarray, "T"], worlds: Mapping[str, ToyWorld]
) -> tuple[Float[np.ndarray, "T"], list[str]]:
    """What the ideal reader of a row gives each target, as a log-probability, and the language of each.

    `words` are the forward targets, `ends` says which of them are `</S>`. A document's end is told by the next one's
    beginning, so its probability goes with that word. A word that the vocabulary lacks is `<UNK>`: it is not scored,
    and has no language.
    """
    found, language = np.zeros(len(words)), [""] * len(words)
    after = np.append(0, np.flatnonzero(ends) + 1)
    starts = after[after < len(words)]
    opening = {name: openers(world) for name, world in worlds.items()}
    first = [n for n in starts.tolist() if n == 0 or any(words[n] in known for known in opening.values())]
    closing = 0.0  # log-probability of the end of the document before
    for begin, end in zip(first, [*first[1:], len(words)]):
        places = begin + np.flatnonzero(~ends[begin:end])
        text = [words[n] if words[n] != UNK_WORD else MASK for n in places.tolist()]
        name = next(name for name, world in worlds.items() if {MASK, *world.network.words}.issuperset(text))
        chain = automaton(worlds[name], "document" if begin else "passage")
        chain = replace(chain, end=automaton(worlds[name], "document").end)
        lattice = infer(chain, [encode(worlds[name], " ".join(text))])
        found[places] = lattice.forward[0]
        found[begin] += closing - np.log(len(worlds))
        closing = float(lattice.ending[0])
        language[begin:end] = ["" if words[n] == UNK_WORD else name for n in range(begin, end)]
    return found, language


@functools.cache
def openers(world: ToyWorld) -> set[str]:
    """The words that a document begins with; no other sentence does."""
    chain = automaton(world, "document")
    rows = np.unique(chain.rows[np.flatnonzero(chain.start)])
    cuts = chain.emission_offsets
    return {world.network.words[n] for row in rows for n in chain.emission_words[cuts[row] : cuts[row + 1]]}


def rows_of(batches: Sequence[Batch]) -> Iterator[tuple[int, int, int]]:
    """The stretches that a biLM reads with one state: row, first batch, and the batch after the last."""
    for row in range(len(batches[0]["lengths"])):
        fresh = [n for n, batch in enumerate(batches) if batch["fresh"][row]]
        yield from ((row, first, end) for first, end in zip(fresh, [*fresh[1:], len(batches)]))


def best_elmo(
    batches: Sequence[Batch], words: Sequence[str], end: int, worlds: Mapping[str, ToyWorld]
) -> tuple[dict[str, tuple[float, int]], dict[str, list[Batch]]]:
    """By language the true log-probability and the number of targets, and the batches with weights on these alone."""
    sums = dict.fromkeys(worlds, (0.0, 0))
    asked: dict[str, list[Batch]] = {
        name: [{**b, **{f"{d}_weights": np.zeros_like(b[f"{d}_weights"]) for d in DIRECTIONS}} for b in batches]
        for name in worlds
    }
    for row, first, last in rows_of(batches):
        sizes = [int(batch["lengths"][row]) for batch in batches[first:last]]
        ids = np.concatenate([b["forward_targets"][row, :size] for b, size in zip(batches[first:last], sizes)])
        if not len(ids):
            continue
        found, language = best_stream([words[n] for n in ids.tolist()], ids == end, worlds)
        for name, (total, count) in sums.items():
            mine = np.array([own == name for own in language])
            sums[name] = total + float(found[mine].sum()), count + int(mine.sum())
            # Backwards a row is read from its end, but the input of a place belongs to the sentence of its target.
            for direction, part in (("forward", mine), ("backward", mine[::-1])):
                cuts = np.cumsum([0, *sizes])
                for batch, a, b in zip(asked[name][first:last], cuts, cuts[1:]):
                    batch[f"{direction}_weights"][row, : b - a] = part[a:b]
    return sums, asked


def elmo(run: Path, asked: ConfigDict, corpus: Path) -> None:
    """Print a biLM's table."""
    model = read_model(run)
    worlds = worlds_of(asked)
    objective = elmo_objective(asked, model.config)  # type: ignore[arg-type]
    # All of it, whatever the run took: only whole rows say the same text forwards and backwards.
    batches = list(eval_batches(corpus, objective.phases[0].examples, asked.batch_size))
    sums, parts = best_elmo(batches, model.tokenizer.words, model.tokenizer.eos_id, worlds)  # type: ignore[union-attr]
    means = means_of(objective.held_out_loss, model.params, objective.carry(asked.batch_size))
    print(f"{model.report.source}: perplexity of the held-out text, {len(batches)} batches")
    print(f"{'':12}{'forward':>10}{'backward':>10}{'mean':>10}{'true':>10}{'mean/true':>11}{'of':>10}")
    if len(parts) > 1:
        sums["all"] = tuple(np.sum([*sums.values()], axis=0))
        parts["all"] = [
            {**one[0], **{f"{d}_weights": np.sum([b[f"{d}_weights"] for b in one], axis=0) for d in DIRECTIONS}}
            for one in zip(*parts.values())
        ]
    for name, part in parts.items():
        found = means(part)
        each = [float(np.exp(found[direction])) for direction in DIRECTIONS]
        true = float(np.exp(-sums[name][0] / sums[name][1]))
        mean = sum(each) / len(each)
        count = int(sums[name][1])
        print(f"{name:12}{each[0]:10.3f}{each[1]:10.3f}{mean:10.3f}{true:10.3f}{mean / true:11.3f}{count:10,}")


def means_of(loss: Any, params: Any, carry: Any = None) -> Callable[[Sequence[Batch]], dict[str, float]]:
    """The means of a loss over batches, as a run's own evaluation takes them; compiled once for all of them."""
    now: list[Sequence[Batch]] = []
    evaluate = make_evaluate(loss, lambda: now[-1], carry=carry)
    state: Any = State(None, None, jax.tree.map(jax.numpy.asarray, dict(params)), None, None, None)  # type: ignore[arg-type]

    def means(batches: Sequence[Batch]) -> dict[str, float]:
        now.append(batches)
        return evaluate(state)

    return means


def main(_: list[str]) -> None:
    """Print the table of a run."""
    logging.set_verbosity(logging.WARNING)  # the checkpointing library tells every file it reads
    run = Path(FLAGS.run)
    if not (run / "run.json").is_file():
        raise app.UsageError(f"{run} is no run directory: it has no run.json")
    asked = ConfigDict(json.loads((run / "run.json").read_text(encoding="utf-8")))
    if asked.data != "toyworld":
        raise app.UsageError(f"{run} was trained on {asked.data}; the best possible is known of data=toyworld alone")
    tables = {"pretrain_bert": bert, "pretrain_elmo": elmo}
    tables[asked.program](run, asked, run / "toyworld")


if __name__ == "__main__":
    app.run(main)
