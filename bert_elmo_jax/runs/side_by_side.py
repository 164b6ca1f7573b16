"""Train several seeds of one fine-tuning run together: `vmap` over parameters, optimizers and batches.

This is faster than `finetune --seeds=` for models so small that most of a step is not arithmetic. Each seed has the
same rows as in a run of its own, padded to one width. The figures are therefore the same to rounding, except for
dropout, whose random numbers depend on the width. There are no checkpoints: a stopped run starts again.
"""

import copy
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict
from tqdm import tqdm

from bert_elmo_jax import train
from bert_elmo_jax.data.tasks.batches import Batch, Collate, plan
from bert_elmo_jax.runs.task_data import Data
from bert_elmo_jax.runs.task_scores import figures_of
from bert_elmo_jax.runs.with_head import Start, prepare_head
from bert_elmo_jax.runs.with_network import NetworkStart, prepare_network


class Trained(NamedTuple):
    """The result of one seed after its last step."""

    seed: int
    step: int
    params: Any
    figures: dict[str, float]
    predictions: list[Any]


def train_seeds(
    config: ConfigDict, workdir: Any, data: Data, start: Start | NetworkStart, seeds: Sequence[int], name: str = ""
) -> list[Trained]:
    """Train all seeds, and score each on the dev data at the end; the model is described in `workdir`."""
    ready = []
    for seed in seeds:
        own = copy.deepcopy(config)
        own.seed = seed
        ready.append(prepare_head(own, data, start) if isinstance(start, Start) else prepare_network(own, data, start))
    first = ready[0]
    steps, method = first.length.steps, first.method
    states = [train.new_state(r.params, method, jax.random.key(seed)) for r, seed in zip(ready, seeds)]
    state = jax.tree.map(lambda *parts: jnp.stack(parts), *states)
    step = jax.jit(
        jax.vmap(train.make_step(first.loss, method, first.coefficients, accumulate=config.accumulate)),
        donate_argnums=0,
    )
    collate, predict = first.begin(workdir)
    batches = join_batches(first.rows, config.batch_size, seeds, collate)
    with tqdm(total=steps, desc=name, unit="step") as bar:
        for n, batch in enumerate(itertools.islice(batches, steps)):
            state, metrics = step(state, batch)
            if n % 10 == 9:
                bar.update(10)
                bar.set_postfix_str(f"loss {float(metrics['loss'].mean()):.3f}", refresh=False)
        bar.update(steps - bar.n)
    if failed := np.flatnonzero(metrics["failed"]).tolist():
        raise train.Diverged(f"{name}: no finite loss with seed {', '.join(str(seeds[n]) for n in failed)}")
    done = []
    for n, seed in enumerate(seeds):
        params = jax.tree.map(lambda x, n=n: x[n], state.params)
        predictions = predict(params, dict)
        done.append(Trained(seed, steps, params, figures_of(first.task, data.dev, predictions), predictions))
    return done


def join_batches(rows: Sequence[Any], batch_size: int, seeds: Sequence[int], collate: Collate) -> Iterator[Batch]:
    """Yield the batches of `TaskBatches` for each seed, [seeds, batch_size, …], as wide as the longest row.

    All steps have one width, since compiling another takes longer than the padding.
    """
    lengths = np.array([row.width for row in rows])
    longest = rows[int(lengths.argmax())]
    padding = len(seeds) * batch_size + 1  # the number of an empty row
    for epoch in itertools.count():
        for chosen in zip(*(plan(lengths, batch_size, seed, epoch) for seed in seeds)):
            together = collate([*(rows[n] for part in chosen for n in part), longest], padding + 1)
            places = np.full((len(seeds), batch_size), padding)
            at = 0
            for part, own in zip(chosen, places):
                own[: len(part)] = np.arange(at, at + len(part))
                at += len(part)
            yield {name: values[places] for name, values in together.items()}
