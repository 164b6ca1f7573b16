r"""ELMo compared with AllenNLP on PyTorch, on a CPU; and words per second in training, on any device.

  python -m experiments.benchmarks.elmo                                       # ours alone
  python -m experiments.benchmarks.elmo --peers=/path/to/python               # and AllenNLP
  python -m experiments.benchmarks.elmo --what=train --dtype=bfloat16         # words per second

Comparison: the same random weights (written to a folder that both load), the same character ids of 32 sentences of 20
words that repeat as in running text, and of a single sentence; float32. A pass of one, then a pass of the other;
medians, and the median of the pairs' ratios. `forward` ends with the mean of the layers, `both` adds all gradients of
its sum. Ours starts from the same ids, so finding the distinct words is part of its time. Aims, as shares of AllenNLP's
time: original 0.5 forward and 0.6 both, small 0.35 and 0.5, a single sentence 0.3 forward. The interpreter given to
--peers holds allennlp 2.10. Both sides use all the cores of this process (bind it with taskset to give them fewer).

Training: forward, backward with dropout and carried state, no softmax and no update.
"""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import flags

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.nn import scalar_mix
from bert_elmo_jax.text import boundary_characters, character_table
from experiments.benchmarks._paired import in_turn, median_seconds, peer
from experiments.command_line.start import start

FLAGS = flags.FLAGS
FAMILY = get_family(Path(__file__).stem)
make_config = FAMILY.config.preset
MIX = jnp.zeros(3), jnp.ones(())
WIDTHS = (16, 24, 32, 50)  # to which the characters of a batch's words are cut


def define() -> None:
    """Define the flags."""
    flags.DEFINE_enum("what", "compare", ["compare", "train"], "Compare with AllenNLP, or measure training.")
    flags.DEFINE_string("peers", None, "A Python interpreter with AllenNLP; without it ours runs alone.")
    flags.DEFINE_list("presets", None, "Sizes of ELMo. Default: original and small (compare), original (train).")
    flags.DEFINE_list("batches", ["32x20", "1x20"], "For compare: sentences x words.")
    flags.DEFINE_string("window", "128x20", "For train: rows x words.")
    flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16"], "For train.")
    flags.DEFINE_integer("repeats", 7, "Timed passes of each side.")


def make_ids(rows: int, words: int) -> np.ndarray:
    """Return character ids [rows, words, 50] of words of 2 to 9 letters; the n-th of 2,000 is as frequent as 1/n."""
    random = np.random.default_rng(0)
    vocabulary = ["".join(map(chr, random.integers(97, 123, random.integers(2, 10)))) for _ in range(2000)]
    frequency = 1 / np.arange(1, 2001)
    return character_table(vocabulary)[random.choice(2000, (rows, words), p=frequency / frequency.sum())]


def prepare(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the words' places among the distinct words, lengths, and the distinct words, padded to few shapes."""
    rows, words, size = ids.shape
    keys = np.ascontiguousarray(ids.astype(np.int16)).reshape(rows * words, size).view(f"V{2 * size}")[:, 0]
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    distinct = ids.reshape(rows * words, size)[first]
    longest = int((distinct != 261).sum(1).max())
    step = 8 if len(distinct) < 64 else 32
    table = np.full((1, -(-(len(distinct) + 2) // step) * step, min(w for w in WIDTHS if w >= longest)), 261, np.int32)
    table[0, :2] = boundary_characters()[:, : table.shape[2]]
    table[0, 2 : len(distinct) + 2] = distinct[:, : table.shape[2]]
    framed = np.ones((rows, words + 2), np.int32)
    framed[:, 0] = 0
    framed[:, 1:-1] = places.reshape(rows, words) + 2
    return framed, np.full(rows, words + 2, np.int32), table


def mean_of_layers(config: Any, params: Any, words: np.ndarray, lengths: np.ndarray, table: np.ndarray) -> jax.Array:
    """Return the mean of the layers at the words, as a task reads it."""
    output: Any = FAMILY.build(config).apply({"params": params}, words, lengths, characters=table)
    return scalar_mix(output.layers, *MIX)[:, 1:-1]


def make_passes(config: Any, params: Any, ids: np.ndarray) -> dict[str, Callable[[], jax.Array]]:
    """Return both passes from ids to results, compiled."""
    forward = jax.jit(partial(mean_of_layers, config))
    gradient = jax.jit(jax.grad(lambda params, batch: mean_of_layers(config, params, *batch).sum()))
    passes = {
        "forward": lambda: jax.block_until_ready(forward(params, *prepare(ids))),
        "both": lambda: jax.block_until_ready(gradient(params, prepare(ids))),
    }
    for run in passes.values():
        run()
    return passes


def compare(preset: str, rows: int, words: int) -> None:
    """Print the medians of both sides and the ratios of the pairs."""
    config, ids = make_config(preset), make_ids(rows, words)
    params = init_params(FAMILY, config, jax.random.key(0))
    ours = make_passes(config, params["encoder"], ids)
    print(f"{preset}, {rows} x {words} words, {len(prepare(ids)[2][0])} distinct (rounded up)")
    if not FLAGS.peers:
        for name, run in ours.items():
            print(f"  {name:7} ours {median_seconds(run, FLAGS.repeats):.3f} s")
        return
    write: Any = next(iter(FAMILY.formats.values())).write
    with tempfile.TemporaryDirectory() as folder:
        write(folder, params, config)
        np.save(Path(folder) / "ids.npy", ids)
        with peer(FLAGS.peers, "allennlp", "AllenNLP", folder) as (theirs, about):
            furthest = np.abs(np.array(about["vectors"]) - ours["forward"]()[0]).max()
            assert furthest < 1e-4, f"the two sides do not compute the same: vectors differ by {furthest}"
            for name, run in ours.items():
                found = in_turn(partial(theirs, name), run, FLAGS.repeats)
                print(f"  {name:7} AllenNLP {found.theirs:.3f} s, ours {found.ours:.3f} s, ratio {found.ratio:.3f}")
        print(f"  vectors differ by {furthest:.1e}; {about['about']}")


def train(preset: str, rows: int, words: int) -> None:
    """Print the words per second of forward and backward passes that carry their state on."""
    config = make_config(preset, dtype=FLAGS.dtype)
    params, batch = init_params(FAMILY, config, jax.random.key(0))["encoder"], prepare(make_ids(rows, words - 2))
    module = FAMILY.build(config)

    def loss(params: Any, state: Any, key: jax.Array) -> tuple[jax.Array, Any]:
        output: Any = module.apply(
            {"params": params}, batch[0], batch[1], characters=batch[2], words_backward=batch[0][:, ::-1], state=state,
            deterministic=False, rngs={"dropout": key},
        )  # fmt: skip
        return jnp.square(output.forward).sum() + jnp.square(output.backward).sum(), output.state

    step = jax.jit(jax.grad(loss, has_aux=True))
    shapes = jax.eval_shape(loss, params, None, jax.random.key(0))[1]
    state = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)
    keys = iter(jax.random.split(jax.random.key(0), FLAGS.repeats + 1))

    def run() -> None:
        nonlocal state
        _, state = jax.block_until_ready(step(params, state, next(keys)))

    run()
    median, device = median_seconds(run, FLAGS.repeats), jax.devices()[0].device_kind
    speed = f"{1000 * median:.1f} ms, {rows * words / median:.0f} words/s on {device}"
    print(f"{preset}, {FLAGS.dtype}, {rows} x {words}: {speed}")


def main() -> None:
    """Run the chosen benchmark."""
    if FLAGS.what == "train":
        for preset in FLAGS.presets or ["original"]:
            train(preset, *map(int, FLAGS.window.split("x")))
        return
    for preset in FLAGS.presets or ["original", "small"]:
        for batch in FLAGS.batches:
            compare(preset, *map(int, batch.split("x")))


if __name__ == "__main__":
    start("benchmarks.elmo", define, main, stopped="stopped")
