r"""A large softmax, updated as a whole or only in the rows of a batch: time by the size of the vocabulary.

  python -m experiments.benchmarks.sampled_softmax
  python -m experiments.benchmarks.sampled_softmax --words=10000,800000 --dense_up_to=100000

Two figures, each for the whole table (dense) and for its touched rows. `update` begins with the gradients of the rows
looked up: sum by row, norm, clip, Adagrad on table and bias. `step` adds the drawing of negatives, the sampled softmax
of some random positions, and its gradient. Both ways compute the same from the same numbers, on donated buffers;
medians. Aim: the time for touched rows is flat from 10,000 to 800,000 words. At 800,000 the dense way holds 7 GB.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from absl import flags

from bert_elmo_jax.losses import draw_negatives, sampled_softmax
from bert_elmo_jax.optim import adagrad, as_rows, find_rows, places, put_rows, take_rows, values

from ..command_line.start import start
from ._timing import median_seconds

FLAGS = flags.FLAGS

Tree = Any
Gradient = Callable[[Tree, Tree, Tree], Tree]
OPTIMIZER = adagrad(0.2, clip=10.0)


def define() -> None:
    """Define the flags."""
    flags.DEFINE_list("words", ["10000", "50000", "200000", "800000"], "Sizes of the vocabulary.")
    flags.DEFINE_integer("width", 512, "Width of a row.")
    flags.DEFINE_integer("positions", 640, "Predictions per step: 32 rows of 20 words.")
    flags.DEFINE_integer("negatives", 8192, "Drawn words per step.")
    flags.DEFINE_integer("repeats", 7, "Timed runs of each way.")
    flags.DEFINE_integer("dense_up_to", 800_000, "Larger vocabularies are updated by touched rows only.")


def new_state(words: int) -> tuple[Tree, Tree]:
    """Return a softmax and its accumulators."""
    table = jax.random.normal(jax.random.key(0), (words, FLAGS.width)) / FLAGS.width**0.5
    params = {"embedding": table, "bias": jnp.zeros(words)}
    return params, OPTIMIZER.init(params)


def new_batch(words: int) -> dict[str, Any]:
    """Return random positions; their words have the frequencies of a text."""
    hidden = jax.random.normal(jax.random.key(1), (FLAGS.positions, FLAGS.width))
    ranks = jax.random.uniform(jax.random.key(2), (FLAGS.positions,), maxval=jnp.log(words))
    looked_up = FLAGS.positions + FLAGS.negatives
    rows = {"embedding": jnp.full((looked_up, FLAGS.width), 0.01), "bias": jnp.full(looked_up, 0.01)}
    return {"hidden": hidden, "targets": jnp.exp(ranks).astype(jnp.int32), "given": rows}


def loss(params: Tree, batch: Tree) -> jax.Array:
    """Return the mean loss of the positions, times 20 as in the original recipe."""
    table, targets, drawn = params["embedding"], batch["targets"], batch["negatives"]
    total, weight = sampled_softmax(
        batch["hidden"], values(table), values(params["bias"]), places(table, targets), places(table, drawn.ids),
        drawn.expected(targets), drawn.expected(drawn.ids), jnp.ones(len(targets)),
    )  # fmt: skip
    return 20 * total / weight


def of_loss(params: Tree, batch: Tree, rows: Tree) -> Tree:
    """Return the gradients of the sampled softmax."""
    return jax.grad(lambda params: loss(as_rows(params, rows), batch))(params)


def gradients(params: Tree, batch: Tree, rows: Tree) -> Tree:
    """Return the given gradients of the rows looked up, summed by row."""
    ids = jnp.concatenate([batch["targets"], batch["negatives"].ids])
    at = {name: places(table, ids) for name, table in as_rows(params, rows).items()}
    return {name: jnp.zeros_like(param).at[at[name]].add(batch["given"][name]) for name, param in params.items()}


def dense(gradient: Gradient, params: Tree, state: Tree, batch: Tree) -> tuple[Tree, Tree]:
    """Return the update of the whole table."""
    updates, state = OPTIMIZER.update(gradient(params, batch, {}), state, params)
    return optax.apply_updates(params, updates), state


def touched(gradient: Gradient, params: Tree, state: Tree, batch: Tree) -> tuple[Tree, Tree]:
    """Return the update of the rows that the batch uses."""
    ids = jnp.concatenate([batch["targets"], batch["negatives"].ids])
    rows = find_rows(params, {"embedding": ids, "bias": ids})
    small, small_state = take_rows(params, rows), take_rows(state, rows)
    updates, small_state = OPTIMIZER.update(gradient(small, batch, rows), small_state, small)
    return put_rows(params, optax.apply_updates(small, updates), rows), put_rows(state, small_state, rows)


def make_update(way: Callable[..., tuple[Tree, Tree]], draws: bool, words: int) -> Callable[[], None]:
    """Return a function that makes one update; the first update is made here."""
    batch = new_batch(words)
    if not draws:
        batch["negatives"] = draw_negatives(jax.random.key(3), FLAGS.negatives, words)

    def step(params: Tree, state: Tree, batch: Tree, key: jax.Array) -> tuple[Tree, Tree]:
        if draws:
            batch = {**batch, "negatives": draw_negatives(key, FLAGS.negatives, words)}
        return way(of_loss if draws else gradients, params, state, batch)

    compiled = jax.jit(step, donate_argnums=(0, 1))
    training = list(new_state(words))
    keys = iter(jax.block_until_ready([*jax.random.split(jax.random.key(4), FLAGS.repeats + 1)]))

    def once() -> None:
        training[:] = jax.block_until_ready(compiled(*training, batch, next(keys)))

    once()
    return once


def main() -> None:
    """Print the table."""
    device = jax.devices()[0].device_kind
    print(f"{device}, {FLAGS.positions} positions, {FLAGS.negatives} negatives, rows of {FLAGS.width}; milliseconds")
    print("   words   update: dense  touched    step: dense  touched")
    flat: dict[bool, list[float]] = {False: [], True: []}
    for words in map(int, FLAGS.words):
        line = f"{words:8}"
        for draws, space in ((False, 7), (True, 5)):
            # One way after the other, not in turn: at 800,000 words both do not fit into the memory of a laptop.
            figures = {}
            for way in (dense, touched):
                if way is touched or words <= FLAGS.dense_up_to:
                    figures[way] = 1000 * median_seconds(make_update(way, draws, words), FLAGS.repeats)
            flat[draws].append(figures[touched])
            line += f"{figures.get(dense, float('nan')):{space + 9}.1f}{figures[touched]:9.1f}"
        print(line, flush=True)
    for draws, name in ((False, "update"), (True, "step")):
        print(f"{name} by touched rows: the slowest size takes {max(flat[draws]) / min(flat[draws]):.2f} × the fastest")


if __name__ == "__main__":
    start("benchmarks.sampled_softmax", define, main, stopped="stopped")
