r"""The gain of packing: real tokens per row and per second of BERT's training, with one example per row and several.

  python -m experiments.benchmarks.packing                                   # on a generated corpus of short documents
  python -m experiments.benchmarks.packing --data=corpora/reviews
  python -m experiments.benchmarks.packing --data=corpora/novels --preset=mini --lengths=128,512

Both ways train on whole documents (only masked words), with rows of the same length, the same optimiser and the same
batches as `pretrain`. A timed step takes its batch from the pipeline in this process, so it includes reading, planning
and masking. The two ways take turns. The plan of a window delays one batch, so its cost is measured separately and
added to every token.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import jax
from absl import flags

from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus
from bert_elmo_jax.data.pipeline.batches import train_batches
from bert_elmo_jax.data.rows.pieces import PieceExamples
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.families.piece_objective import piece_loss
from bert_elmo_jax.optim import adamw
from bert_elmo_jax.train import make_step, new_state

from ..command_line.start import start
from ._inputs import FAMILY, make_config
from ._timing import seconds

FLAGS = flags.FLAGS


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("data", None, "A corpus of pieces; without it one with short documents is generated.")
    flags.DEFINE_string("preset", "tiny", "Size of BERT.")
    flags.DEFINE_list("lengths", ["128", "512"], "Tokens per row.")
    flags.DEFINE_integer("positions", 4096, "Positions per batch.")
    flags.DEFINE_integer("repeats", 9, "Timed steps of each way.")


def make_way(corpus: str, length: int, sequences: int) -> Callable[[], tuple[float, int, int]]:
    """Return a function that takes one training step and returns its seconds, real tokens and predictions."""
    batches = train_batches(corpus, PieceExamples(length, "documents", sequences=sequences), FLAGS.positions // length)
    store = open_store(corpus)
    model = make_config(FLAGS.preset, vocab_size=store.vocab_size, max_positions=max(512, length))
    optimizer = adamw(1e-4)
    step = jax.jit(make_step(piece_loss(FAMILY, model), optimizer, {"mlm": 1.0}), donate_argnums=0)
    params = init_params(FAMILY, model, jax.random.key(0), ("mlm",), pooler=False)
    state = new_state(params, optimizer, jax.random.key(0))
    plan = seconds(batches.epoch_size) / store.counts["tokens"]  # plans every window once

    def take() -> tuple[float, int, int]:
        nonlocal state
        start = time.perf_counter()
        batch = next(batches)
        state, metrics = step(state, batch)
        jax.block_until_ready(metrics)
        seconds = time.perf_counter() - start
        tokens, predictions = int((batch["segments"] > 0).sum()), int((batch["mlm_weights"] > 0).sum())
        return seconds + plan * tokens, tokens, predictions

    take()  # compiles
    return take


def compare(corpus: str, length: int) -> None:
    """Print a line for each way, and the ratio of their tokens per second."""
    rows = FLAGS.positions // length
    ways = {"alone": make_way(corpus, length, 1), "packed": make_way(corpus, length, max(2, length // 8))}
    timings: dict[str, list[tuple[float, int, int]]] = {name: [] for name in ways}
    for _ in range(FLAGS.repeats):
        for name, take in ways.items():
            timings[name].append(take())
    rates = {}
    for name, steps in timings.items():
        median = statistics.median(step[0] for step in steps)
        tokens, predictions = (sum(step[part] for step in steps) / len(steps) for part in (1, 2))
        rates[name] = tokens / median
        print(
            f"{length:4} {name:6}  {tokens / rows:6.1f} real tokens per row, {tokens / median:9,.0f} per second; "
            f"{predictions / median:7,.0f} predictions per second; a step {1000 * median:7.1f} ms",
            flush=True,
        )
    print(f"{length:4} packed over alone: {rates['packed'] / rates['alone']:.2f} times the real tokens per second")


def main() -> None:
    """Compare at every length."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = FLAGS.data or str(toy_corpus(Path(folder, "corpus"), language="ko", documents=2000, vocab_size=2048))
        print(f"BERT-{FLAGS.preset} on {jax.devices()[0].device_kind}, {FLAGS.positions} positions per batch, {corpus}")
        for length in map(int, FLAGS.lengths):
            compare(corpus, length)


if __name__ == "__main__":
    start("benchmarks.packing", define, main, stopped="stopped")
