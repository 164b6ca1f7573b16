r"""A language model that counts words, interpolated modified Kneser–Ney, compared with a run on the same predictions.

  python -m experiments.benchmarks.kneser_ney --data=corpora/novels_words
  python -m experiments.benchmarks.kneser_ney --data=corpora/novels_words --run=runs/elmo_novels
  python -m experiments.benchmarks.kneser_ney --data=corpora/novels_words --run=runs/gpt_novels
  python -m experiments.benchmarks.kneser_ney --data=corpora/novels_words --run=runs/awd_lstm_novels \
      --text=wikitext-2/wiki.valid.tokens

It counts the n-grams of the training part (as Chen and Goodman describe: three discounts per order, lower orders by the
number of preceding words) and prints the perplexity of the held-out part, forwards, and backwards by reversing both.
It predicts the same words as a biLM: each word of a sentence and its end, and `<UNK>` for every word outside the
vocabulary. The counts stop at the beginning of a sentence and see `<UNK>`, while a biLM sees the letters of such a word
and the previous sentences. `--run` adds the last held-out perplexities of a run, of one direction or of both. With
`--text`, both score another text instead, whose words are separated by spaces, as in WikiText: it is split into
sentences, and words outside the vocabulary of --data are `<UNK>`. A run that writes pieces, such as a GPT's, must have
read the same text, prepared with a tokenizer. It is compared per word: each model's loss on the whole text, divided by
the number of words without the ends of sentences, which a GPT does not see. It must spell the words that the others
score as `<UNK>`. All counts are arrays in memory: 14 million words take half a minute and 2 GB.
"""

import tempfile
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from absl import flags
from jaxtyping import Bool, Float, Int, Int64, Integer

from bert_elmo_jax.data.corpora.prepare import Request, prepare
from bert_elmo_jax.data.corpora.reading import Reading
from bert_elmo_jax.data.corpora.store import Store, open_store
from bert_elmo_jax.data.pipeline.batches import eval_batches
from bert_elmo_jax.families import get_family
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.text import WordVocabulary
from bert_elmo_jax.train.metrics import read_metrics

from ..command_line.start import start
from ..studies.ceilings.held_out import build_means, read_asked, read_held_out

FLAGS = flags.FLAGS

DIRECTIONS = ("forward", "backward")
# For a corpus that is too small to estimate discounts (no n-gram occurs once, twice, …).
DISCOUNTS = (0.5, 1.0, 1.5)


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("data", None, "A folder of prepare_data --tokenizer=words.", required=True)
    flags.DEFINE_integer("order", 5, "Words of the longest n-gram.")
    flags.DEFINE_string("run", None, "A run of pretrain on the same folder, to compare with.")
    flags.DEFINE_string("text", None, "A text to score instead of the held-out part; spaces separate its words.")


class Order(NamedTuple):
    """The n-grams of one order n, sorted by `key` = (number of its first n − 1 words as an n-gram) · V + last word.

    `shares` is the discounted count over the sum of its context's. `back_off` and `seen` belong to contexts, by their
    number among the n-grams of order n − 1: the weight of the order below, and True for a context that occurs.
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
    """Return all sentences as one array: `<S>` w₁ … wₙ `</S>`, or backward `</S>` wₙ … w₁ `<S>`."""
    step, first, last = (-1, marks.eos_id, marks.bos_id) if backward else (1, marks.bos_id, marks.eos_id)
    parts = [[[first], np.asarray(sentence)[::step], [last]] for document in store for sentence in document]
    words = np.concatenate([np.empty(0, np.int64), *chain(*parts)]).astype(np.int64)
    return np.where(words < store.vocab_size, words, marks.unk_id)


def since_begin(words: Int[np.ndarray, "N"], begin: int) -> Int64[np.ndarray, "N"]:
    """Return the number of words from the beginning of its sentence to each word, itself included."""
    at = np.arange(len(words))
    return at - np.maximum.accumulate(np.where(words == begin, at, 0))


def fit(words: Int64[np.ndarray, "N"], vocabulary: int, begin: int, order: int = 5) -> Counts:
    """Count the n-grams of sentences that each begin with `begin`.

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
    sizes = [1, vocabulary]  # the number of contexts of each order: n-grams of the order below
    keys, raw = np.arange(vocabulary), np.bincount(words, minlength=vocabulary)
    starts = np.arange(vocabulary) == begin  # n-grams at the beginning of a sentence
    for n in range(1, order + 1):
        ends = np.flatnonzero(depth >= n)  # where an n-gram one longer ends
        if n == order or not len(ends):  # there may be no sentence that long
            tables.append((keys, raw))
            break
        longer, where, inverse, longer_raw = np.unique(
            number[ends - 1] * vocabulary + words[ends], return_index=True, return_inverse=True, return_counts=True
        )
        # Below the top order, an n-gram counts as often as different words precede it.
        before = np.bincount(number[ends[where]], minlength=sizes[-1])
        tables.append((keys, np.where(starts, raw, before)))
        starts = depth[ends[where]] == n
        following = np.full(len(words), -1, np.int64)
        following[ends] = inverse.ravel()
        number, keys, raw = following, longer, longer_raw
        sizes.append(len(longer))
    tables[0][1][begin] = 0  # never predicted
    orders = [_smooth(*table, contexts, vocabulary) for table, contexts in zip(tables, sizes)]
    return Counts(orders, vocabulary, begin)


def _smooth(keys: Int64[np.ndarray, "N"], counts: Int64[np.ndarray, "N"], contexts: int, vocabulary: int) -> Order:
    discount = np.array([0.0, *discounts(counts)])[np.minimum(counts, 3)]
    context = keys // vocabulary
    total = np.bincount(context, counts, minlength=contexts)
    left = np.bincount(context, discount, minlength=contexts)
    follows = total > 0
    denominator = np.where(follows, total, 1.0)
    return Order(keys, (counts - discount) / denominator[context], np.where(follows, left / denominator, 1.0), follows)


def discounts(counts: Int64[np.ndarray, "N"]) -> tuple[float, float, float]:
    """Return the discounts of n-grams with counts of 1, 2, and 3 or more, from the numbers with counts of 1 to 4."""
    n = np.bincount(np.minimum(counts, 5), minlength=5).tolist()
    if not all(n[1:5]):
        return DISCOUNTS
    y = n[1] / (n[1] + 2 * n[2])
    one, two, three = (k - (k + 1) * y * n[k + 1] / n[k] for k in (1, 2, 3))
    return (one, two, three) if 0 < one <= 1 and 0 < two <= 2 and 0 < three <= 3 else DISCOUNTS


def log_probabilities(model: Counts, words: Integer[np.ndarray, "N"]) -> Float[np.ndarray, "_"]:
    """Return the log-probability of every word except the marks that begin a sentence, in the order of the text."""
    words = words.astype(np.int64)
    depth = since_begin(words, model.begin)
    # Below all orders, all words that can be predicted are equally likely.
    probabilities = np.full(len(words), 1 / (model.words - 1))
    number = np.zeros(len(words), np.int64)  # of the n-gram that ends at each place; -1 if it never occurred
    for n, order in enumerate(model.orders, 1):
        context = np.zeros(len(words), np.int64) if n == 1 else np.append(-1, number[:-1])
        context[depth < n - 1] = -1
        key = context * model.words + words
        place = np.minimum(np.searchsorted(order.keys, key), len(order.keys) - 1)
        met = (context >= 0) & (order.keys[place] == key)
        usable = (context >= 0) & order.seen[context]
        share = np.where(met, order.shares[place], 0.0)
        probabilities = np.where(usable, share + order.back_off[context] * probabilities, probabilities)
        number = np.where(met, place, -1)
    return np.log(probabilities[depth > 0])


def held_out_perplexity(
    folder: str, order: int, *, backward: bool = False, text: Store | None = None
) -> tuple[float, int]:
    """Return the perplexity of the held-out part, or of a text, under the training part's counts; and its words."""
    marks = WordVocabulary.load(Path(folder) / "tokenizer")
    scored = open_store(folder, "heldout") if text is None else text
    train, held_out = (flatten(store, marks, backward=backward) for store in (open_store(folder), scored))
    model = fit(train, len(marks), marks.eos_id if backward else marks.bos_id, order)
    logs = log_probabilities(model, held_out)
    if not len(logs):
        raise ValueError(f"{folder} has no held-out text; prepare it with a higher --heldout")
    return float(np.exp(-logs.mean())), len(logs)


def prepare_text(text: str, folder: str, data: str) -> Store:
    """Prepare a text of words between spaces in a folder, in the vocabulary of a corpus; all of it is one part."""
    reading = Reading(documents="file", split="sentences")
    request = Request((text,), folder, str(Path(data) / "tokenizer"), word_rule="whitespace", heldout=0.0, shards=1,
                      reading=reading)  # fmt: skip
    prepare(request)
    return open_store(folder)


def unknown_share(store: Store, marks: WordVocabulary) -> float:
    """Return the share of the words of a text that are not in a vocabulary."""
    words = np.concatenate([np.asarray(sentence) for document in store for sentence in document])
    return float(np.mean((words >= len(marks)) | (words == marks.unk_id)))


def score_text(run: str, store: Store) -> dict[str, float]:
    """Return the perplexities of a text under a run's model, as the run's own evaluation has them."""
    config, model = read_asked(Path(run)), read_model(run)
    objective = get_family(model.kind).objective(config, model.config)
    if not isinstance(model.tokenizer, WordVocabulary):
        raise ValueError(f"{run} writes pieces; --text is for runs that read the words of --data: leave it out")
    open_store(store.folder, fingerprint=model.tokenizer.fingerprint)
    examples = objective.held_out_examples
    batches = [*eval_batches(str(store.folder), examples, config.batch_size, part="train")]
    means = build_means(objective.held_out_loss, model.params, objective.carry(config.batch_size))(batches)
    perplexities = by_direction(objective.figures(means), model.config)
    return {"step": read_metrics(run)[-1]["step"], **perplexities}


def by_direction(figures: Mapping[str, float], model: Any = None) -> dict[str, float]:
    """Return the perplexities of an evaluation by direction; `model` has the direction if there is only one."""
    both = {d: figures[f"held_out/{d}_perplexity"] for d in DIRECTIONS if f"held_out/{d}_perplexity" in figures}
    one = figures.get("held_out/perplexity")
    return both or ({} if one is None else {getattr(model, "direction", "forward"): one})


def read_run(run: str) -> dict[str, float]:
    """Return the last held-out perplexities of a run that was evaluated on all of the held-out part."""
    config = read_asked(Path(run))
    if config.get("eval_batches", 0) is not None:
        raise ValueError(f"{run}: expected a language model's run with eval_batches empty, for the same words as here")
    lines = [(line["step"], by_direction(line, config.get("model"))) for line in read_metrics(run)]
    lines = [(step, figures) for step, figures in lines if figures]
    if not lines:
        raise ValueError(f"{run} has no held-out perplexity yet: continue the run, or give another")
    return {"step": lines[-1][0], **lines[-1][1]}


def read_decoder(run: str) -> tuple[float, int]:
    """Return the log-probability of a decoder's whole held-out text, and its number of pieces without ends of rows."""
    config = read_asked(Path(run))
    if config.objective != "sentences":
        raise ValueError(f"{run}: expected objective=sentences, whose rows hold the whole text once")
    model, objective, batches = read_held_out(Path(run), config, config.data)
    end = model.tokenizer.sep_id
    without_ends = [{**b, "mlm_weights": np.where(b["mlm_targets"] == end, 0, b["mlm_weights"])} for b in batches]
    count = int(sum(batch["mlm_weights"].sum() for batch in without_ends))
    return -build_means(objective.held_out_loss, model.params)(without_ends)["lm"] * count, count


def print_per_word(run: str, folder: str, order: int) -> None:
    """Print what the text costs per word, by counting and by a decoder."""
    words = sum(len(sentence) for document in open_store(folder, "heldout") for sentence in document)
    figure, count = held_out_perplexity(folder, order)
    total, pieces = read_decoder(run)
    counted, ours = (float(np.exp(cost / words)) for cost in (np.log(figure) * count, -total))
    print(f"per word of {words:,}, without the ends of sentences: {order}-gram Kneser-Ney {counted:.2f}, ", end="")
    print(f"{run} {ours:.2f} ({ours / counted:.3f} of it; {pieces:,} pieces)")


def main() -> None:
    """Print the table."""
    store = open_store(FLAGS.data)
    if store.manifest["tokenizer"]["kind"] != "words":
        raise ValueError(f"{FLAGS.data} holds pieces; prepare it with --tokenizer=words")
    family = read_asked(Path(FLAGS.run)).get("family") if FLAGS.run else None
    if family and get_family(family).decoder is not None:
        if FLAGS.text:
            raise ValueError(f"--text is for runs that read words, and {FLAGS.run} writes pieces: leave it out")
        print_per_word(FLAGS.run, FLAGS.data, FLAGS.order)
        return
    with tempfile.TemporaryDirectory() as folder:
        text = prepare_text(FLAGS.text, folder, FLAGS.data) if FLAGS.text else None
        print_table(FLAGS.data, FLAGS.order, FLAGS.run, text)


def print_table(data: str, order: int, run: str | None, text: Store | None) -> None:
    """Print the perplexities of the held-out part, or of a text, in each direction that the run has."""
    part = "the held-out part"
    if text is not None:
        part = f"the text ({100 * unknown_share(text, WordVocabulary.load(Path(data) / 'tokenizer')):.1f}% <UNK>)"
    ours = None if run is None else read_run(run) if text is None else score_text(run, text)
    heading = f"   {run}, step {ours['step']:,}" if ours else ""
    print(f"perplexity of {part}   {order}-gram Kneser-Ney{heading}")
    for direction in DIRECTIONS:
        if ours is None or direction in ours:
            figure, count = held_out_perplexity(data, order, backward=direction == "backward", text=text)
            more = f"   {ours[direction]:18.2f}  ({ours[direction] / figure:.3f} of it)" if ours else ""
            print(f"{direction:9} {count:>10,} words   {figure:20.2f}{more}", flush=True)


if __name__ == "__main__":
    start("benchmarks.kneser_ney", define, main, stopped="stopped")
