r"""A BERT pretraining step: compared with other projects on a CPU, and with the card's own speed on a GPU.

  python -m experiments.benchmarks.bert                                       # ours alone
  python -m experiments.benchmarks.bert --peers=/path/to/python               # and transformers on PyTorch
  python -m experiments.benchmarks.bert --peers=/path/to/python --kinds=flax  # and transformers' last Flax BERT
  python -m experiments.benchmarks.bert --peers=/path/to/python --what=encode --sentences=sentences.txt
  python -m experiments.benchmarks.bert --what=utilisation                    # the default where there is a GPU

Step: the same weights and batch (8 rows of 128 tokens, 20 predictions each), float32, dropout, clipping and AdamW on
both sides. A step of one, then a step of the other; medians, and the median of the pairs' ratios (aim: 0.9 of PyTorch's
time). The interpreter given to --peers holds the `peers` extra. Both sides use all the cores of this process (bind it
with taskset to give them fewer).

Utilisation: the step's floating-point operations (6 · weights · tokens and attention; recomputation and element-wise
work are not counted) per second, divided by the rate of a large bfloat16 matrix product measured just before.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from absl import flags

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.families.piece_objective import piece_loss
from bert_elmo_jax.train import matmul_rate
from experiments.benchmarks._paired import in_turn, median_seconds, peer
from experiments.command_line.start import start

FLAGS = flags.FLAGS
FAMILY = get_family(Path(__file__).stem)
make_config = FAMILY.config.preset
write_huggingface: Any = FAMILY.formats["huggingface"].write

Batch = dict[str, np.ndarray]


def define() -> None:
    """Define the flags."""
    flags.DEFINE_enum(
        "what", None, ["step", "encode", "utilisation"], "Default: utilisation on a GPU, else both others."
    )
    flags.DEFINE_string("sentences", None, "For encode: a file of sentences, one per line (see bert_encode).")
    flags.DEFINE_integer("count", 1000, "For encode: the number of sentences.")
    flags.DEFINE_string("peers", None, "A Python interpreter with torch and transformers; without it ours runs alone.")
    flags.DEFINE_list("kinds", ["pytorch"], "The peers that this interpreter has: pytorch, flax.")
    flags.DEFINE_list("presets", None, "Sizes of BERT. Default: base (step), base and large (utilisation).")
    flags.DEFINE_list("lengths", None, "Tokens per row. Default: 128 (step), 128 and 512 (utilisation).")
    flags.DEFINE_integer("tokens", None, "Tokens per batch. Default: 1024 (step), 32768 (utilisation).")
    flags.DEFINE_integer("repeats", 7, "Timed steps of each side.")
    flags.DEFINE_integer("product", 8192, "Edge of the matrices whose product is the card's own speed.")


def make_params(config: Any) -> Any:
    """Return random weights of an encoder with all heads."""
    return init_params(FAMILY, config, jax.random.key(0), tuple(FAMILY.heads))


def make_batch(config: Any, rows: int, length: int) -> Batch:
    """Return random full rows with the paper's number of predictions: 20 of 128."""
    random = np.random.default_rng(0)
    tokens = random.integers(min(1000, config.vocab_size // 2), config.vocab_size, (rows, length), dtype=np.int32)
    places = np.sort(np.argsort(random.random((rows, length)))[:, : max(1, length * 20 // 128)]).astype(np.int32)
    return {
        "tokens": tokens,
        "types": np.zeros_like(tokens),
        "positions": np.broadcast_to(np.arange(length, dtype=np.int32), tokens.shape),
        "segments": np.ones_like(tokens),
        "mlm_positions": places,
        "mlm_targets": np.take_along_axis(tokens, places, 1),
        "mlm_weights": np.ones(places.shape, np.float32),
        "nsp_positions": np.zeros((rows, 1), np.int32),
        "nsp_targets": random.integers(0, 2, (rows, 1), dtype=np.int32),
        "nsp_weights": np.ones((rows, 1), np.float32),
    }


def loss(params: Any, batch: Batch, key: jax.Array | None, config: Any) -> jax.Array:
    """Return the mean loss of the predictions plus the mean loss of the pairs."""
    terms, _, _ = piece_loss(FAMILY, config, pairs=True)(params, batch, key, None)
    return sum((total / weight for total, weight in terms.values()), jnp.zeros(()))


def make_step(config: Any, params: Any, batch: Batch) -> Callable[[], None]:
    """Return a function that takes one training step; the first step is taken here."""
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-4, weight_decay=0.01))

    def update(params: Any, state: optax.OptState, batch: Batch, key: jax.Array) -> tuple[Any, optax.OptState]:
        gradients = jax.grad(loss)(params, batch, key, config)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    compiled = jax.jit(update, donate_argnums=(0, 1))
    batch = jax.device_put(batch)
    training = [jax.tree.map(jnp.copy, params), optimizer.init(params)]
    keys = iter(jax.random.split(jax.random.key(0), 1000))

    def step() -> None:
        training[:] = jax.block_until_ready(compiled(*training, batch, next(keys)))

    step()
    return step


def compare_steps(config: Any, rows: int, length: int) -> None:
    """Print the median step of ours and of each peer, and the ratios of the pairs."""
    params, batch = make_params(config), make_batch(config, rows, length)
    ours, our_loss = make_step(config, params, batch), float(loss(params, batch, None, config))
    print(f"{rows} x {length} tokens, {batch['mlm_positions'].shape[1]} predictions per row, {os.cpu_count()} cores")
    if not FLAGS.peers:
        print(f"ours {median_seconds(ours, FLAGS.repeats):.3f} s (no --peers to compare with)")
        return
    labels = np.full(batch["tokens"].shape, -100)
    np.put_along_axis(labels, batch["mlm_positions"], batch["mlm_targets"], 1)
    theirs: dict[str, Any] = {
        "input_ids": batch["tokens"], "attention_mask": batch["segments"], "token_type_ids": batch["types"],
        "labels": labels, "next_sentence_label": batch["nsp_targets"][:, 0],
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        write_huggingface(folder, params, config)
        np.savez(Path(folder) / "batch.npz", **theirs)
        for kind in FLAGS.kinds:
            with peer(FLAGS.peers, kind, kind, folder) as (their_step, about):
                found = in_turn(partial(their_step, "step"), ours, FLAGS.repeats)
            print(f"{kind} {found.theirs:.3f} s, ours {found.ours:.3f} s, ratio {found.ratio:.3f}   ({about['about']})")
            print(f"  loss without dropout {about['loss']:.5f} and {our_loss:.5f}; load {os.getloadavg()[0]:.1f}")


def operations(config: Any, batch: Batch) -> float:
    """Return the floating-point operations of a step: forward, and twice that backward."""
    c, (rows, length), predictions = config, batch["tokens"].shape, batch["mlm_positions"].shape[1]
    per_token = c.num_layers * c.hidden_size * (4 * c.hidden_size + 2 * c.feed_forward_size + 2 * length)
    return 6 * rows * (length * per_token + predictions * c.hidden_size * (c.hidden_size + c.vocab_size))


def utilisation(presets: list[str], lengths: list[int], tokens: int) -> None:
    """Print rows per second and utilisation for every size, length and kind of attention."""
    rate = matmul_rate(jnp.bfloat16, FLAGS.product)
    print(f"{jax.devices()[0].device_kind}: {rate / 1e12:.1f} TFLOP/s in a bfloat16 product of edge {FLAGS.product}")
    for preset in presets:
        for length in lengths:
            for implementation, attention_dropout in (("fused", 0.0), ("reference", 0.1)):
                options = {"max_positions": max(512, length), "attention_dropout": attention_dropout}
                config = make_config(preset, dtype="bfloat16", implementation=implementation, **options)
                batch = make_batch(config, max(1, tokens // length), length)
                median = median_seconds(make_step(config, make_params(config), batch), FLAGS.repeats)
                rows = len(batch["tokens"])
                print(
                    f"{preset:6} {rows:4} x {length:3}  {implementation:9} attention dropout {attention_dropout}: "
                    f"{1000 * median:8.1f} ms, {rows / median:8.1f} rows/s, "
                    f"utilisation {operations(config, batch) / median / rate:6.1%}",
                    flush=True,
                )


def main() -> int:
    """Run the chosen benchmarks; return 0, or the status of one that ended in an error."""
    what = [FLAGS.what] if FLAGS.what else ["utilisation"] if jax.default_backend() == "gpu" else ["step", "encode"]
    if "utilisation" in what:
        lengths = [int(length) for length in FLAGS.lengths or (128, 512)]
        utilisation(FLAGS.presets or ["base", "large"], lengths, FLAGS.tokens or 32768)
    if "step" in what:
        for preset in FLAGS.presets or ["base"]:
            for length in [int(length) for length in FLAGS.lengths or (128,)]:
                compare_steps(make_config(preset), max(1, (FLAGS.tokens or 1024) // length), length)
    if "encode" in what:  # in its own process, so that neither holds the other's memory
        asked = {"peers": FLAGS.peers, "sentences": FLAGS.sentences, "count": FLAGS.count}
        given = [f"--{name}={value}" for name, value in asked.items() if value is not None]
        for preset in FLAGS.presets or ["base"]:
            command = [sys.executable, "-m", "experiments.benchmarks.bert_encode", f"--preset={preset}", *given]
            if status := subprocess.run(command).returncode:
                return status
    return 0


if __name__ == "__main__":
    start("benchmarks.bert", define, main, stopped="stopped")
