r"""ELMo beside AllenNLP on PyTorch, on a CPU; and training's words a second, on any device.

  python -m experiments.benchmarks.elmo                                       # ours alone
  python -m experiments.benchmarks.elmo --peers=/path/to/python               # beside AllenNLP
  python -m experiments.benchmarks.elmo --what=train --dtype=bfloat16         # words a second

Side by side: the same random weights (written to a folder that both load), the same character ids of 32 sentences of 20
words that repeat as in running text, and one sentence alone; float32. A pass of one, then a pass of the other; medians,
and the median of the pairs' ratios. `forward` ends with the mean of the layers, `both` adds all gradients of its sum.
Ours starts from the same ids: finding the distinct words is part of its time. Aims, as shares of AllenNLP's time:
original 0.5 forward and 0.6 both, small 0.35 and 0.5, one sentence alone 0.3 forward. The interpreter given to --peers
holds allennlp 2.10; both sides use all the cores that this process may (bind it with taskset to give them fewer).

Training: forward, backward with dropout and carried state, no softmax and no update.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from absl import flags

from bert_elmo_jax.families.elmo import hdf5_weights as elmo_hdf5
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.init_params import init_elmo_params
from bert_elmo_jax.families.elmo.model import Elmo, ElmoOutput, zero_state
from bert_elmo_jax.nn import scalar_mix
from bert_elmo_jax.text import boundary_characters, character_table
from experiments.benchmarks._paired import in_turn, peer, seconds
from experiments.command_line.start import start

flags.DEFINE_enum("what", "compare", ["compare", "train"], "Beside AllenNLP, or words a second of training.")
flags.DEFINE_string("peers", None, "A Python interpreter with AllenNLP; without it ours runs alone.")
flags.DEFINE_list("presets", None, "Sizes of ELMo. Default: original and small (compare), original (train).")
flags.DEFINE_list("batches", ["32x20", "1x20"], "For compare: sentences x words.")
flags.DEFINE_string("window", "128x20", "For train: rows x words.")
flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16"], "For train.")
flags.DEFINE_integer("repeats", 7, "Timed passes of each side.")
FLAGS = flags.FLAGS

MIX = jnp.zeros(3), jnp.ones(())
WIDTHS = (16, 24, 32, 50)  # to which the characters of a batch's words are cut


def make_ids(rows: int, words: int) -> np.ndarray:
    """Character ids [rows, words, 50] of words of 2 to 9 letters, the n-th of 2,000 as often as 1/n."""
    random = np.random.default_rng(0)
    vocabulary = ["".join(map(chr, random.integers(97, 123, random.integers(2, 10)))) for _ in range(2000)]
    frequency = 1 / np.arange(1, 2001)
    return character_table(vocabulary)[random.choice(2000, (rows, words), p=frequency / frequency.sum())]


def prepare(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places of words among the distinct ones, lengths, the distinct words: with begin and end, in few shapes."""
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


def mixture(config: ElmoConfig, params: dict, words: np.ndarray, lengths: np.ndarray, table: np.ndarray) -> jax.Array:
    """The mean of the layers at the words, as a task reads it."""
    output: ElmoOutput = Elmo(config).apply({"params": params}, words, lengths, characters=table)  # type: ignore[assignment]
    assert output.layers is not None
    return scalar_mix(output.layers, *MIX)[:, 1:-1]


def make_passes(config: ElmoConfig, params: dict, ids: np.ndarray) -> dict[str, Callable[[], jax.Array]]:
    """Both passes from ids to results, compiled."""
    forward = jax.jit(partial(mixture, config))
    gradient = jax.jit(jax.grad(lambda params, batch: mixture(config, params, *batch).sum()))
    passes = {
        "forward": lambda: jax.block_until_ready(forward(params, *prepare(ids))),
        "both": lambda: jax.block_until_ready(gradient(params, prepare(ids))),
    }
    for run in passes.values():
        run()
    return passes


def compare(preset: str, rows: int, words: int) -> None:
    """Print the medians of both sides and the ratios of the pairs."""
    config, ids = ElmoConfig.preset(preset), make_ids(rows, words)
    params = init_elmo_params(config, jax.random.key(0))
    ours = make_passes(config, params["encoder"], ids)
    print(f"{preset}, {rows} x {words} words, {len(prepare(ids)[2][0])} distinct (rounded up)")
    if not FLAGS.peers:
        for name, run in ours.items():
            print(f"  {name:7} ours {statistics.median(seconds(run) for _ in range(FLAGS.repeats)):.3f} s")
        return
    with tempfile.TemporaryDirectory() as folder:
        elmo_hdf5.write(folder, params, config)
        np.save(Path(folder) / "ids.npy", ids)
        with peer(FLAGS.peers, "_elmo_peer.py", "AllenNLP", folder) as (theirs, about):
            furthest = np.abs(np.array(about["vectors"]) - ours["forward"]()[0]).max()
            assert furthest < 1e-4, f"the two sides do not compute the same: vectors differ by {furthest}"
            for name, run in ours.items():
                found = in_turn(partial(theirs, name), partial(seconds, run), FLAGS.repeats)
                print(
                    f"  {name:7} AllenNLP {found.theirs:.3f} s, ours {found.ours:.3f} s, ratio {found.ratio:.3f}",
                    flush=True,
                )
        print(f"  vectors differ by {furthest:.1e}; {about['about']}")


def train(preset: str, rows: int, words: int) -> None:
    """Print the words a second of forward and backward passes in a row, the state carried on."""
    config = ElmoConfig.preset(preset, dtype=FLAGS.dtype)
    params, batch = init_elmo_params(config, jax.random.key(0))["encoder"], prepare(make_ids(rows, words - 2))

    def loss(params: dict, state: object, key: jax.Array) -> tuple[jax.Array, object]:
        output = Elmo(config).apply(
            {"params": params}, batch[0], batch[1], characters=batch[2], words_backward=batch[0][:, ::-1], state=state,
            deterministic=False, rngs={"dropout": key},
        )  # fmt: skip
        return jnp.square(output.forward).sum() + jnp.square(output.backward).sum(), output.state  # type: ignore[union-attr]

    step = jax.jit(jax.grad(loss, has_aux=True))
    state, times = zero_state(config, rows), []
    for number in range(FLAGS.repeats + 1):
        key = jax.block_until_ready(jax.random.key(number))
        start = time.perf_counter()
        _, state = jax.block_until_ready(step(params, state, key))
        times.append(time.perf_counter() - start)
    median = statistics.median(times[1:])
    print(
        f"{preset}, {FLAGS.dtype}, {rows} x {words}: {1000 * median:.1f} ms, {rows * words / median:.0f} words/s "
        f"on {jax.devices()[0].device_kind}"
    )


def main(_: list[str]) -> None:
    """Run what was asked for."""
    if FLAGS.what == "train":
        for preset in FLAGS.presets or ["original"]:
            train(preset, *map(int, FLAGS.window.split("x")))
        return
    for preset in FLAGS.presets or ["original", "small"]:
        for batch in FLAGS.batches:
            compare(preset, *map(int, batch.split("x")))


if __name__ == "__main__":
    start(main, "benchmarks.elmo")
