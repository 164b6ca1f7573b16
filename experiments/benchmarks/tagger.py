r"""A BiLSTM-CRF tagger with cached encoder vectors: words per second in training and prediction, compared with PyTorch.

  python -m experiments.benchmarks.tagger                            # ours alone
  python -m experiments.benchmarks.tagger --peers=/path/to/python    # and a model of the same shape in PyTorch

Random sentences of 4 to 60 words, in batches of similar length, with layers [L, T, D] as from a cache; word vectors of
100, a mixture of the layers at the input, two BiLSTMs of 200, a conditional random field over the tags. Both sides have
the same weights (their losses are compared first) and the same batches as numpy arrays. Training is forward, backward,
clip and Adam, with one dropout mask per sentence. Prediction is the best path, two batches at a time as in `predict`;
ours with the probability of each tag is compared with the same. A pass over all batches of one, then of the other;
medians, and the median of the pairs' ratios. Aim: 1.5 times PyTorch's words per second. The interpreter given to
--peers holds torch. Both sides use all the cores of this process (bind it with taskset to give them fewer).
"""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import numpy as np
from absl import flags

from bert_elmo_jax import optim, train
from bert_elmo_jax.data.tasks.word_rows import word_width
from bert_elmo_jax.inference.row_outputs import two_at_a_time
from bert_elmo_jax.losses import viterbi
from bert_elmo_jax.networks import TaggerConfig, best_tags, init_tagger, tagger_coefficients, tagger_loss
from bert_elmo_jax.networks.tagger import scores_of
from bert_elmo_jax.weights.parameter_tree import flatten
from experiments.benchmarks._paired import in_turn, median_seconds, peer
from experiments.command_line.start import start

FLAGS = flags.FLAGS
VOCABULARY = 20_000

Batches = list[dict[str, np.ndarray]]
Passes = dict[str, Callable[[], object]]


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("peers", None, "A Python interpreter with PyTorch; without it ours runs alone.")
    flags.DEFINE_integer("batches", 20, "Batches per pass.")
    flags.DEFINE_integer("batch_size", 32, "Sentences per batch.")
    flags.DEFINE_integer("longest", 60, "Words of the longest sentence.")
    flags.DEFINE_integer("lstm_size", 200, "Cells of a BiLSTM in each direction.")
    flags.DEFINE_string("layers", "3x256", "Of the encoder: layers x width; 0x0 for none.")
    flags.DEFINE_integer("tags", 17, "The number of tags.")
    flags.DEFINE_integer("repeats", 5, "Timed passes of each side.")


def make_batches(config: TaggerConfig) -> Batches:
    """Return batches of sentences of similar length, padded as in training."""
    draw = np.random.default_rng(0)
    lengths = np.sort(draw.integers(4, FLAGS.longest + 1, FLAGS.batches * FLAGS.batch_size)).astype(np.int32)
    made = []
    for part in lengths.reshape(FLAGS.batches, FLAGS.batch_size):
        shape = (len(part), word_width(int(part.max())))
        batch = {"words": draw.integers(1, VOCABULARY, shape, np.int32), "lengths": part}
        batch["tags"] = draw.integers(0, config.num_tags, shape, np.int32)
        if config.encoder_layers:
            size = (shape[0], config.encoder_layers, shape[1], config.encoder_width)
            batch["layers"] = draw.standard_normal(size, np.float32)
        made.append(batch)
    return made


def make_passes(config: TaggerConfig, params: dict, batches: Batches) -> Passes:
    """Return both passes over all batches, compiled."""
    method = optim.adamw(1e-3, decay=0.0, clip=5.0)
    step = jax.jit(train.make_step(tagger_loss(config), method, tagger_coefficients(config)), donate_argnums=0)
    state = train.new_state(jax.tree.map(jax.numpy.array, params), method, jax.random.key(0))
    legal = np.ones((config.num_tags + 1,) * 2, bool)

    @jax.jit
    def path(params: dict, batch: dict) -> tuple[jax.Array, jax.Array]:
        scores, transitions, _ = scores_of(config, params, batch)
        return viterbi(scores, transitions, batch["lengths"], legal)

    best = jax.jit(partial(best_tags, config, legal))

    def training() -> None:
        nonlocal state
        for batch in batches:
            state, metrics = step(state, batch)
        jax.block_until_ready((state.params, metrics))

    def prediction(tags_of: Callable) -> None:
        read = ({name: batch[name] for name in batch if name != "tags"} for batch in batches)
        for _ in two_at_a_time(partial(tags_of, params), read):
            pass

    passes: Passes = {
        "training": training,
        "prediction": partial(prediction, path),
        "prediction, each tag with its probability": partial(prediction, best),
    }
    for run in passes.values():
        run()
    return passes


def compare(config: TaggerConfig) -> None:
    """Print the words per second of both sides, and the ratios of the pairs."""
    batches = make_batches(config)
    words = sum(int(batch["lengths"].sum()) for batch in batches)
    draw = np.random.default_rng(1)
    tables = (0.1 * draw.standard_normal((rows, config.word_size), np.float32) for rows in (1, config.num_words))
    params = init_tagger(config, jax.random.key(0), *tables)
    terms, _, _ = jax.jit(lambda batch: tagger_loss(config)(params, batch, None, None))(batches[0])
    loss = float(terms["crf"][0] / terms["crf"][1])
    ours = make_passes(config, params, batches)
    print(f"{words:,} words in {len(batches)} batches of {FLAGS.batch_size} sentences, layers {FLAGS.layers}")
    if not FLAGS.peers:
        for name, run in ours.items():
            print(f"  {name}: ours {words / median_seconds(run, FLAGS.repeats):,.0f} words/s")
        return
    with tempfile.TemporaryDirectory() as folder:
        weights: dict = {name: np.asarray(part) for name, part in flatten(params).items()}
        np.savez(Path(folder) / "weights.npz", **weights)
        for n, batch in enumerate(batches):
            arrays: dict = dict(batch)
            np.savez(Path(folder) / f"batch_{n:04}.npz", **arrays)
        with peer(FLAGS.peers, "tagger", "PyTorch", folder) as (theirs, about):
            assert abs(about["loss"] - loss) < 1e-3 * max(1, loss), f"losses differ: {about['loss']} and {loss}"
            for name, run in ours.items():
                found = in_turn(partial(theirs, name.partition(",")[0]), run, FLAGS.repeats)
                speeds = f"PyTorch {words / found.theirs:,.0f} words/s, ours {words / found.ours:,.0f}"
                print(f"  {name}: {speeds}: {1 / found.ratio:.2f} times", flush=True)
        print(f"  losses differ by {abs(about['loss'] - loss):.1e}; {about['about']}")


def main() -> None:
    """Run the comparison."""
    layers, width = map(int, FLAGS.layers.split("x"))
    sizes = {"lstm_size": FLAGS.lstm_size, "encoder_layers": layers, "encoder_width": width}
    compare(TaggerConfig(num_tags=FLAGS.tags, num_words=VOCABULARY, **sizes))


if __name__ == "__main__":
    start("benchmarks.tagger", define, main, stopped="stopped")
