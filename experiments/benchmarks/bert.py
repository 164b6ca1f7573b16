r"""A BERT pretraining step: beside other projects on a CPU, against the card's own speed on a GPU.

  python -m experiments.benchmarks.bert                                       # ours alone
  python -m experiments.benchmarks.bert --peers=/path/to/python               # beside transformers on PyTorch
  python -m experiments.benchmarks.bert --peers=/path/to/python --kinds=flax  # beside transformers' last Flax BERT
  python -m experiments.benchmarks.bert --peers=/path/to/python --what=encode --sentences=sentences.txt
  python -m experiments.benchmarks.bert --what=utilisation                    # the default where there is a GPU

Side by side: the same weights, the same batch (8 rows of 128 tokens, 20 predictions each), float32, dropout, clipping
and AdamW on both sides; a step of one, then a step of the other; medians, and the median of the pairs' ratios (aim: 0.9
of PyTorch's time). The interpreter given to --peers holds the `peers` extra; both sides use all the cores that this
process may (bind it with taskset to give them fewer).

Utilisation: the step's floating-point operations (counted as 6 · weights · tokens plus attention, recomputation and
element-wise work not counted) a second, over those of a large bfloat16 matrix product measured just before.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from absl import flags

from bert_elmo_jax.families.bert import huggingface as huggingface_bert
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.init_params import init_params
from bert_elmo_jax.families.bert.pretraining_logits import pretraining_logits
from experiments.benchmarks._paired import in_turn, peer
from experiments.command_line.start import start

flags.DEFINE_enum("what", None, ["step", "encode", "utilisation"], "Default: utilisation on a GPU, else step, encode.")
flags.DEFINE_string("sentences", None, "For encode: a file of sentences, one a line (see bert_encode).")
flags.DEFINE_integer("count", 1000, "For encode: how many sentences.")
flags.DEFINE_string("peers", None, "A Python interpreter with torch and transformers; without it ours runs alone.")
flags.DEFINE_list("kinds", ["pytorch"], "Which peers that interpreter has: pytorch, flax.")
flags.DEFINE_list("presets", None, "Sizes of BERT. Default: base (step), base and large (utilisation).")
flags.DEFINE_list("lengths", None, "Tokens a row. Default: 128 (step), 128 and 512 (utilisation).")
flags.DEFINE_integer("tokens", None, "Tokens a batch. Default: 1024 (step), 32768 (utilisation).")
flags.DEFINE_integer("repeats", 7, "Timed steps of each side.")
flags.DEFINE_integer("product", 8192, "Edge of the matrices whose product is the card's own speed.")
FLAGS = flags.FLAGS

Batch = dict[str, np.ndarray]


def make_batch(config: BertConfig, rows: int, length: int) -> Batch:
    """Random full rows with a sixth of their tokens to be predicted, as in the paper: 20 of 128."""
    random = np.random.default_rng(0)
    tokens = random.integers(min(1000, config.vocab_size // 2), config.vocab_size, (rows, length), dtype=np.int32)
    positions = np.argsort(random.random((rows, length)))[:, : max(1, length * 20 // 128)]
    return {
        "tokens": tokens,
        "mlm_positions": np.sort(positions).astype(np.int32),
        "nsp_targets": random.integers(0, 2, (rows, 1), dtype=np.int32),
    }


def loss(params: dict, batch: Batch, key: jax.Array | None, config: BertConfig) -> jax.Array:
    """The mean loss of the predictions plus that of the pairs."""
    first = jnp.zeros_like(batch["nsp_targets"])
    logits = pretraining_logits(
        config, params, batch["tokens"], mlm_positions=batch["mlm_positions"], nsp_positions=first, dropout_key=key
    )
    targets = jnp.take_along_axis(batch["tokens"], batch["mlm_positions"], axis=1)
    cross_entropy = optax.softmax_cross_entropy_with_integer_labels
    return cross_entropy(logits.mlm, targets).mean() + cross_entropy(logits.nsp, batch["nsp_targets"]).mean()


def make_step(config: BertConfig, params: dict, batch: Batch) -> Callable[[], float]:
    """A function that takes one training step (the first is taken here) and returns its seconds."""
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-4, weight_decay=0.01))

    def update(params: dict, state: optax.OptState, batch: Batch, key: jax.Array) -> tuple[dict, optax.OptState]:
        gradients = jax.grad(loss)(params, batch, key, config)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    compiled = jax.jit(update, donate_argnums=(0, 1))
    batch = jax.device_put(batch)
    training = [jax.tree.map(jnp.copy, params), optimizer.init(params)]
    keys = iter(jax.random.split(jax.random.key(0), 1000))

    def step() -> float:
        key = jax.block_until_ready(next(keys))
        start = time.perf_counter()
        training[:] = jax.block_until_ready(compiled(*training, batch, key))
        return time.perf_counter() - start

    step()
    return step


def side_by_side(config: BertConfig, rows: int, length: int) -> None:
    """Print the median step of ours and of each peer, and the ratios of the pairs."""
    params, batch = init_params(config, jax.random.key(0)), make_batch(config, rows, length)
    ours, our_loss = make_step(config, params, batch), float(loss(params, batch, None, config))
    print(f"{rows} x {length} tokens, {batch['mlm_positions'].shape[1]} predictions a row, {os.cpu_count()} cores")
    if not FLAGS.peers:
        times = [ours() for _ in range(FLAGS.repeats)]
        print(f"ours {statistics.median(times):.3f} s (no --peers to compare with)")
        return
    labels = np.full(batch["tokens"].shape, -100)
    np.put_along_axis(labels, batch["mlm_positions"], np.take_along_axis(batch["tokens"], batch["mlm_positions"], 1), 1)
    theirs = {
        "input_ids": batch["tokens"], "attention_mask": np.ones_like(labels), "token_type_ids": np.zeros_like(labels),
        "labels": labels, "next_sentence_label": batch["nsp_targets"][:, 0],
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        huggingface_bert.write(folder, params, config)
        np.savez(Path(folder) / "batch.npz", **theirs)  # type: ignore[arg-type]
        for kind in FLAGS.kinds:
            with peer(FLAGS.peers, "_bert_peers.py", kind, kind, folder) as (their_step, about):
                found = in_turn(partial(their_step, ""), ours, FLAGS.repeats)
            print(f"{kind} {found.theirs:.3f} s, ours {found.ours:.3f} s, ratio {found.ratio:.3f}   ({about['about']})")
            print(f"  loss without dropout {about['loss']:.5f} and {our_loss:.5f}; load {os.getloadavg()[0]:.1f}")


def operations(config: BertConfig, batch: Batch) -> float:
    """The floating-point operations of a step: forward, and twice that backward."""
    c, (rows, length), predictions = config, batch["tokens"].shape, batch["mlm_positions"].shape[1]
    a_token = c.num_layers * (4 * c.hidden_size**2 + 2 * c.hidden_size * c.feed_forward_size)
    attention = c.num_layers * 2 * length * c.hidden_size
    a_prediction = c.hidden_size**2 + c.hidden_size * c.vocab_size
    return 6 * rows * (length * (a_token + attention) + predictions * a_prediction)


def product_rate(edge: int) -> float:
    """Operations a second of a large bfloat16 matrix product, many in a row."""
    a = jax.random.normal(jax.random.key(0), (edge, edge), jnp.bfloat16)
    chain = jax.jit(lambda a, b: jax.lax.fori_loop(0, 20, lambda _, b: a @ b / edge**0.5, b))
    chain(a, a).block_until_ready()
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        chain(a, a).block_until_ready()
        seconds.append(time.perf_counter() - start)
    return 20 * 2 * edge**3 / min(seconds)


def utilisation(presets: list[str], lengths: list[int], tokens: int) -> None:
    """Print rows a second and utilisation for every size, length and kind of attention."""
    rate = product_rate(FLAGS.product)
    print(f"{jax.devices()[0].device_kind}: {rate / 1e12:.1f} TFLOP/s in a bfloat16 product of edge {FLAGS.product}")
    for preset in presets:
        for length in lengths:
            for implementation, attention_dropout in (("fused", 0.0), ("reference", 0.1)):
                options = {"implementation": implementation, "attention_dropout": attention_dropout}
                config = BertConfig.preset(preset, dtype="bfloat16", max_positions=max(512, length), **options)
                batch = make_batch(config, max(1, tokens // length), length)
                step = make_step(config, init_params(config, jax.random.key(0)), batch)
                seconds = statistics.median(step() for _ in range(FLAGS.repeats))
                rows = len(batch["tokens"])
                print(
                    f"{preset:6} {rows:4} x {length:3}  {implementation:9} attention dropout {attention_dropout}: "
                    f"{1000 * seconds:8.1f} ms, {rows / seconds:8.1f} rows/s, "
                    f"utilisation {operations(config, batch) / seconds / rate:6.1%}",
                    flush=True,
                )


def main(_: list[str]) -> None:
    """Run what was asked for."""
    what = [FLAGS.what] if FLAGS.what else ["utilisation"] if jax.default_backend() == "gpu" else ["step", "encode"]
    if "utilisation" in what:
        lengths = [int(length) for length in FLAGS.lengths or (128, 512)]
        utilisation(FLAGS.presets or ["base", "large"], lengths, FLAGS.tokens or 32768)
    if "step" in what:
        for preset in FLAGS.presets or ["base"]:
            for length in [int(length) for length in FLAGS.lengths or (128,)]:
                side_by_side(BertConfig.preset(preset), max(1, (FLAGS.tokens or 1024) // length), length)
    if "encode" in what:  # in a process of its own, so that neither holds the other's memory
        asked = {"peers": FLAGS.peers, "sentences": FLAGS.sentences, "count": FLAGS.count}
        given = [f"--{name}={value}" for name, value in asked.items() if value is not None]
        subprocess.run([sys.executable, "-m", "experiments.benchmarks.bert_encode", *given], check=True)


if __name__ == "__main__":
    start(main, "benchmarks.bert")
