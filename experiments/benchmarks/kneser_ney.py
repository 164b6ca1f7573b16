r"""What counting words can do: an interpolated modified Kneser–Ney model beside a biLM, on the same predictions.

  python -m experiments.benchmarks.kneser_ney --data=corpora/novels_words
  python -m experiments.benchmarks.kneser_ney --data=corpora/novels_words --run=runs/elmo_novels

Counts the n-grams of the training part (as Chen and Goodman describe: three discounts an order, lower orders by how
many words come before) and prints the perplexity of the held-out part, forwards, and backwards by turning both around.
The words are those that a biLM predicts: each word of a sentence and its end, every word outside the vocabulary
`<UNK>`. The counts know nothing beyond a sentence's beginning, and see a word outside the vocabulary as `<UNK>` where a
biLM sees its letters and what went before. `--run` prints the last held-out perplexities of such a run beside them. All
counts are arrays in memory: 14 million words take half a minute and 2 GB.
"""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from absl import app, flags
from jaxtyping import Bool, Float, Int, Int64, Integer

from bert_elmo_jax.data.corpora.store import Store, open_store
from bert_elmo_jax.text import WordVocabulary
from bert_elmo_jax.train.metrics import read_metrics
from experiments.command_line.start import start

flags.DEFINE_string("data", None, "A folder of prepare_data --tokenizer=words.", required=True)
flags.DEFINE_integer("order", 5, "Words of the longest n-gram.")
flags.DEFINE_string("run", None, "A run of pretrain_elmo on the same folder, whose perplexities are printed beside.")
FLAGS = flags.FLAGS

# Where a corpus is too small to estimate a discount from (no n-gram occurs once, twice, …), these stand in.
DISCOUNTS = (0.5, 1.0, 1.5)


class Order(NamedTuple):
    """The n-grams of one order n, sorted by `key` = (number of its first n − 1 words as an n-gram) · V + last word.

    `shares` is the discounted count over the sum of its context's. `back_off` and `seen` belong to contexts, by their
    number among the n-grams of order n − 1: the weight of the order below, and whether the context was ever met.
    """

    keys: Int64[np.ndarray, "N"]
    shares: Float[np.ndarray, "N"]
    back_off: Float[np.ndarray, "C"]
    seen: Bool[np.ndarray, "C"]


class Counts(NamedTuple):
    """A fitted model: its orders from 1 on, the size of the vocabulary, and the word that begins a sentence."""

    orders: list[Order]
    words: int
    begin: int


def flatten(store: Store, marks: WordVocabulary, *, backward: bool = False) -> Int64[np.ndarray, "N"]:
    """All sentences one after the other, as `<S>` w₁ … wₙ `</S>`; backward they run `</S>` wₙ … w₁ `<S>`."""
    step, first, last = (-1, marks.eos_id, marks.bos_id) if backward else (1, marks.bos_id, marks.eos_id)
    parts = []
    for document in store:
        for sentence in document:
            parts += [np.array([first]), np.asarray(sentence)[::step], np.array([last])]
    words = np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int64)
    return np.where(words < store.vocab_size, words, marks.unk_id)


def since_begin(words: Int[np.ndarray, "N"], begin: int) -> Int64[np.ndarray, "N"]:
    """How many words stand between each word and the beginning of its sentence, itself included.

    >>> since_begin(np.array([0, 5, 6, 1, 0, 1]), begin=0).tolist()
    [0, 1, 2, 3, 0, 1]
    """
    at = np.arange(len(words))
    return at - np.maximum.accumulate(np.where(words == begin, at, 0))


def fit(words: Int64[np.ndarray, "N"], vocabulary: int, begin: int, order: int = 5) -> Counts:
    """Counts the n-grams of sentences that each begin with `begin`.

    >>> model = fit(np.array([0, 5, 1, 0, 5, 1, 0, 6, 1]), vocabulary=7, begin=0, order=2)
    >>> np.exp(log_probabilities(model, np.array([0, 5, 1]))).round(3)  # after <S>: 5 twice, 6 once
    array([0.438, 0.667])
    """
    if order < 1:
        raise ValueError(f"order={order}: expected 1 (words alone) or more, such as 5")
    if not len(words):
        raise ValueError("there is nothing to count: the training part is empty")
    if words[0] != begin:
        raise ValueError(f"the text begins with word {words[0]}; every sentence must begin with {begin}")
    depth = since_begin(words, begin)
    number = words  # of the n-gram of the present order that ends at each place
    tables: list[tuple[Int64[np.ndarray, "_"], Int64[np.ndarray, "_"]]] = []  # keys, adjusted counts
    size = vocabulary
    sizes = [1, vocabulary]  # how many contexts each order has: n-grams of the order below
    keys, raw = np.arange(vocabulary), np.bincount(words, minlength=vocabulary)
    starts = np.arange(vocabulary) == begin  # n-grams that nothing can come before
    for n in range(1, order + 1):
        here = np.flatnonzero(depth >= n)  # where an n-gram one longer ends
        if n == order or not len(here):  # there may be no sentence that long
            tables.append((keys, raw))
            break
        longer_key = number[here - 1] * vocabulary + words[here]
        longer, where, inverse, longer_raw = np.unique(
            longer_key, return_index=True, return_inverse=True, return_counts=True
        )
        # What counts below the top is how many different words come before an n-gram, not how often it comes.
        before = np.bincount(number[here[where]], minlength=size)
        tables.append((keys, np.where(starts, raw, before)))
        starts = depth[here[where]] == n
        following = np.full(len(words), -1, np.int64)
        following[here] = inverse.ravel()
        number, keys, raw, size = following, longer, longer_raw, len(longer)
        sizes.append(size)
    tables[0][1][begin] = 0  # never predicted
    orders = [_smooth(*table, contexts, vocabulary) for table, contexts in zip(tables, sizes)]
    return Counts(orders, vocabulary, begin)


def _smooth(keys: Int64[np.ndarray, "N"], counts: Int64[np.ndarray, "N"], contexts: int, vocabulary: int) -> Order:
    taken = np.array([0.0, *discounts(counts)])[np.minimum(counts, 3)]
    context = keys // vocabulary
    total = np.bincount(context, counts, minlength=contexts)
    left = np.bincount(context, taken, minlength=contexts)
    seen = total > 0
    whole = np.where(seen, total, 1.0)
    return Order(keys, (counts - taken) / whole[context], np.where(seen, left / whole, 1.0), seen)


def discounts(counts: Int64[np.ndarray, "N"]) -> tuple[float, float, float]:
    """What is taken off n-grams that count 1, 2, and 3 or more, from how many there are of 1, 2, 3 and 4.

    >>> [round(d, 3) for d in discounts(np.array([1] * 10 + [2] * 4 + [3] * 2 + [4]))]
    [0.556, 1.167, 1.889]
    """
    n = np.bincount(np.minimum(counts, 5), minlength=5).tolist()
    if not all(n[1:5]):
        return DISCOUNTS
    y = n[1] / (n[1] + 2 * n[2])
    found = [k - (k + 1) * y * n[k + 1] / n[k] for k in (1, 2, 3)]
    fits = all(0 < discount <= k for k, discount in enumerate(found, 1))
    return (found[0], found[1], found[2]) if fits else DISCOUNTS


def log_probabilities(model: Counts, words: Integer[np.ndarray, "N"]) -> Float[np.ndarray, "_"]:
    """The log-probability of every word but those that begin a sentence, in the order of the text."""
    words = words.astype(np.int64)
    depth = since_begin(words, model.begin)
    # Below all orders, every word that can be predicted is as likely.
    found = np.full(len(words), 1 / (model.words - 1))
    number = np.zeros(len(words), np.int64)  # of the n-gram that ends at each place; -1 where it was never met
    for n, order in enumerate(model.orders, 1):
        context = np.zeros(len(words), np.int64) if n == 1 else np.append(-1, number[:-1])
        context[depth < n - 1] = -1
        key = context * model.words + words
        place = np.minimum(np.searchsorted(order.keys, key), len(order.keys) - 1)
        met = (context >= 0) & (order.keys[place] == key)
        usable = (context >= 0) & order.seen[context]
        share = np.where(met, order.shares[place], 0.0)
        found = np.where(usable, share + order.back_off[context] * found, found)
        number = np.where(met, place, -1)
    return np.log(found[depth > 0])


def held_out_perplexity(folder: str, order: int, *, backward: bool = False) -> tuple[float, int]:
    """The perplexity of a corpus's held-out part under the counts of its training part, and of how many words."""
    marks = WordVocabulary.load(Path(folder) / "tokenizer")
    train, held_out = (flatten(open_store(folder, part), marks, backward=backward) for part in ("train", "heldout"))
    model = fit(train, len(marks), marks.eos_id if backward else marks.bos_id, order)
    found = log_probabilities(model, held_out)
    if not len(found):
        raise ValueError(f"{folder} has no held-out text; prepare it with a higher --heldout")
    return float(np.exp(-found.mean())), len(found)


def of_run(run: str) -> dict[str, float]:
    """The last held-out perplexities of a run, which must have been evaluated on all of the held-out part."""
    asked = json.loads((Path(run) / "run.json").read_text(encoding="utf-8"))
    if asked["program"] != "pretrain_elmo" or asked["eval_batches"] is not None:
        raise ValueError(f"{run}: expected a run of pretrain_elmo with eval_batches empty, for the same words as here")
    lines = [line for line in read_metrics(run) if "held_out/perplexity" in line]
    if not lines:
        raise ValueError(f"{run} has not been evaluated yet: let it run on")
    return {"step": lines[-1]["step"], **{d: lines[-1][f"held_out/{d}_perplexity"] for d in ("forward", "backward")}}


def main(_: list[str]) -> None:
    """Print the table."""
    store = open_store(FLAGS.data)
    if store.manifest["tokenizer"]["kind"] != "words":
        raise app.UsageError(f"{FLAGS.data} holds pieces; prepare it with --tokenizer=words")
    run = of_run(FLAGS.run) if FLAGS.run else None
    beside = f"   {FLAGS.run}, step {run['step']:,}" if run else ""
    print(f"perplexity of the held-out part   {FLAGS.order}-gram Kneser-Ney{beside}")
    for direction in ("forward", "backward"):
        figure, count = held_out_perplexity(FLAGS.data, FLAGS.order, backward=direction == "backward")
        ours = f"   {run[direction]:18.2f}  ({run[direction] / figure:.3f} of it)" if run else ""
        print(f"{direction:9} {count:>10,} words   {figure:20.2f}{ours}", flush=True)


if __name__ == "__main__":
    start(main, "benchmarks.kneser_ney")
