r"""Two baselines that count tokens, compared with a masked language model on the same held-out predictions.

  python -m experiments.benchmarks.masked_baselines --run=runs/bert_novels

`unigram` always guesses the most frequent token of the training part. `two neighbours` guesses the token most often
seen between the left and the right neighbour; if there was none, the token that most often followed the left or
preceded the right one, the surer of the two; otherwise the most frequent token. Both see the rows of the model, with
[MASK] and random tokens among the neighbours. If a place to be predicted shows a token (one in five by the usual split,
and every second one of these is true), that token is their guess. The accuracy at places that show [MASK] is printed,
too. Neighbours are counted within documents. All counts are arrays in memory: 16 million tokens take half a minute and
2 GB.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from absl import flags
from jaxtyping import Bool, Float, Int64

from bert_elmo_jax.data.corpora.store import Store, open_store
from bert_elmo_jax.data.pipeline.windows import plan_windows, read_window
from bert_elmo_jax.families.pieces import Pieces
from bert_elmo_jax.runs.pretraining import load_corpora

from ..command_line.start import start
from ..studies.ceilings.held_out import Batch, build_means, read_asked, read_held_out

FLAGS = flags.FLAGS


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("run", None, "A run directory of pretrain.", required=True)
    flags.DEFINE_string("data", None, "Its corpora, if they have been moved.")


class Guesses(NamedTuple):
    """The contexts that occur, in order; for each the most frequent token and its share."""

    contexts: Int64[np.ndarray, "C"]
    tokens: Int64[np.ndarray, "C"]
    shares: Float[np.ndarray, "C"]

    def look_up(self, contexts: Int64[np.ndarray, "N"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return True for each context that occurs, and its guess and share."""
        place = np.minimum(np.searchsorted(self.contexts, contexts), len(self.contexts) - 1)
        met = self.contexts[place] == contexts
        return met, self.tokens[place], np.where(met, self.shares[place], 0.0)


class Counted(NamedTuple):
    """The most frequent tokens: anywhere, after a token, before a token, and between two."""

    unigram: int
    after: Guesses
    before: Guesses
    between: Guesses
    size: int


def most_frequent(contexts: Int64[np.ndarray, "N"], tokens: Int64[np.ndarray, "N"], size: int) -> Guesses:
    """Return the most frequent token of each context; of equals, the lowest id.

    >>> most_frequent(np.array([7, 7, 7, 4]), np.array([2, 1, 2, 3]), size=10).tokens.tolist()
    [3, 2]
    """
    pairs, counts = np.unique(contexts * size + tokens, return_counts=True)
    context = pairs // size
    first = np.flatnonzero(np.diff(context, prepend=-1))
    total, most = np.add.reduceat(counts, first), np.maximum.reduceat(counts, first)
    owner = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(pairs))))
    winners = np.flatnonzero(counts == most[owner])
    best = winners[np.flatnonzero(np.diff(owner[winners], prepend=-1))]
    return Guesses(context[first], pairs[best] % size, most / total)


def count(stores: Sequence[Store]) -> Counted:
    """Count the tokens of all documents and their neighbours."""
    size = stores[0].vocab_size
    texts = [read_window(store, window) for store in stores for window in plan_windows(store, (0,))]
    tokens = np.concatenate([text.tokens for text in texts]).astype(np.int64)
    if not len(tokens):
        raise ValueError("there is nothing to count: the training part is empty")
    sizes = np.concatenate([np.diff(text.sentences[text.documents]) for text in texts])
    second = 1 + np.flatnonzero(np.diff(np.repeat(np.arange(len(sizes)), sizes)) == 0)  # not the first of a document
    middle = second[:-1][np.diff(second) == 1]
    left, right = tokens[middle - 1], tokens[middle + 1]
    return Counted(
        int(np.bincount(tokens).argmax()),
        most_frequent(tokens[second - 1], tokens[second], size),
        most_frequent(tokens[second], tokens[second - 1], size),
        most_frequent(left * size + right, tokens[middle], size),
        size,
    )


def two_neighbours(counted: Counted, left: np.ndarray, right: np.ndarray) -> Int64[np.ndarray, "N"]:
    """Return the guess between each left and right neighbour."""
    left, right = left.astype(np.int64), right.astype(np.int64)
    both, guess, _ = counted.between.look_up(left * counted.size + right)
    _, following, sure = counted.after.look_up(left)
    _, preceding, surer = counted.before.look_up(right)
    single = np.where(surer > sure, preceding, following)
    return np.where(both, guess, np.where(np.maximum(sure, surer) > 0, single, counted.unigram))


def right_guesses(
    counted: Counted, batches: Iterable[Batch], mask: int
) -> tuple[dict[str, Bool[np.ndarray, "N"]], Bool[np.ndarray, "N"]]:
    """Return for each baseline the predictions of all batches that it has right, and those that show [MASK]."""
    hits: dict[str, list[np.ndarray]] = {"unigram": [], "two neighbours": []}
    hidden = []
    for batch in batches:
        tokens, (row, number) = batch["tokens"], np.nonzero(batch["mlm_weights"])
        at, target = (batch[name][row, number] for name in ("mlm_positions", "mlm_targets"))
        shown = tokens[row, at]
        # A row begins with [CLS] and ends with [SEP], so every place has neighbours.
        guesses = {
            "unigram": np.full(len(at), counted.unigram),
            "two neighbours": two_neighbours(counted, tokens[row, at - 1], tokens[row, at + 1]),
        }
        for name, guess in guesses.items():
            hits[name].append(np.where(shown == mask, guess, shown) == target)
        hidden.append(shown == mask)
    return {name: np.concatenate(parts) for name, parts in hits.items()}, np.concatenate(hidden)


def only_hidden(batch: Batch, mask: int) -> Batch:
    """Return the batch with only the predictions whose place shows [MASK]."""
    shown = np.take_along_axis(batch["tokens"], batch["mlm_positions"], axis=1)
    return {**batch, "mlm_weights": batch["mlm_weights"] * (shown == mask)}


def main() -> None:
    """Print the table of a run."""
    run = Path(FLAGS.run)
    config = read_asked(run)
    if config.get("masking", {}).get("kind", "next") == "next":
        raise ValueError(f"{run} has no masked words: give a run with masking, not with masking.kind=next")
    config.data = FLAGS.data or config.data
    corpora = load_corpora(config, run, Pieces())
    model, objective, batches = read_held_out(run, config, corpora, config.eval_batches)
    mask = model.tokenizer.mask_id
    right, hidden = right_guesses(count([open_store(folder) for folder in corpora]), batches, mask)
    table = {name: (float(hits.mean()), float(hits[hidden].mean())) for name, hits in right.items()}
    means = build_means(objective.held_out_loss, model.params)
    masked = [only_hidden(batch, mask) for batch in batches]
    table[model.report.source] = means(batches)["mlm_accuracy"], means(masked)["mlm_accuracy"]
    width = max(map(len, table)) + 2
    print(f"{'accuracy of':{width}}{f'{len(hidden):,} predictions':>22}{f'{hidden.sum():,} at [MASK]':>22}")
    for name, figures in table.items():
        print(f"{name:{width}}{figures[0]:22.4f}{figures[1]:22.4f}")


if __name__ == "__main__":
    start("benchmarks.masked_baselines", define, main, stopped="stopped")
