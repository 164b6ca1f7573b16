"""One cell of the quickstart's table: the seeds of a task, trained side by side."""

import copy
import itertools
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from bert_elmo_jax import train
from bert_elmo_jax.data.tasks.batches import Batch, Collate, plan_epoch
from bert_elmo_jax.data.tasks.packed_batches import PackedBatches
from bert_elmo_jax.files import write_json
from bert_elmo_jax.progress_bars import progress_bar
from bert_elmo_jax.runs.start_run import cost_kept, keep_freed_memory
from bert_elmo_jax.runs.task_data import Data, read_data
from bert_elmo_jax.runs.task_kinds import find_kind
from bert_elmo_jax.runs.task_scores import figures_of, score_name
from bert_elmo_jax.runs.train_run import RESULT
from bert_elmo_jax.train.checkpoint import save_params


def compare_seeds(
    config: ConfigDict,
    workdir: Path,
    *,
    init: str | None = None,
    tokenizer: str | None = None,
    seeds: Sequence[str] = ("0",),
) -> None:
    """Fine-tune several seeds at once; keep the best model, and write the scores of all to `result.json`.

    Except for rounding, `finetune` gets the same scores with the same seeds. A run that was stopped restarts.
    """
    keep_freed_memory()
    with cost_kept(workdir):
        shutil.rmtree(workdir / "checkpoints", ignore_errors=True)  # of a run that was stopped
        data = read_data(config)
        start = find_kind(config).start(config, init, tokenizer)
        trained = train_seeds(config, workdir, data, start, [int(seed) for seed in seeds], workdir.name)
        score = score_name(data.task)
        scores = {str(one.seed): dict(one.figures) for one in trained}
        if data.task.kind == "tags":
            # Most words have one sense only, which is no test.
            score = "accuracy, words of several senses"
            for one in trained:
                scores[str(one.seed)][score] = measure_tagged_accuracy(data.dev, one.predictions)
        best = max(trained, key=lambda one: scores[str(one.seed)][score])
        save_params(workdir, best.step, best.params)
    write_json(workdir / RESULT, {"score": score, "seeds": scores, "best": best.seed})


def measure_tagged_accuracy(sentences: Sequence[Any], predictions: Sequence[Any]) -> float:
    """Return the share of right tags among the words that have a tag."""
    pairs = [(a, b) for s, p in zip(sentences, predictions) for a, b in zip(s.tags, p.tags) if a != "O"]
    return sum(a == b for a, b in pairs) / len(pairs)


class Trained(NamedTuple):
    """The result of one seed after its last step."""

    seed: int
    step: int
    params: Any
    figures: dict[str, float]
    predictions: list[Any]


def train_seeds(
    config: ConfigDict, workdir: Any, data: Data, start: Any, seeds: Sequence[int], name: str = ""
) -> list[Trained]:
    """Train all seeds, and score each on the dev data at the end; the model is described in `workdir`."""
    ready = []
    for seed in seeds:
        seed_config = copy.deepcopy(config)
        seed_config.seed = seed
        ready.append(find_kind(config).prepare(seed_config, data, start))
    first = ready[0]
    steps, method = first.length.steps, first.method
    states = [train.new_state(r.params, method, jax.random.key(seed)) for r, seed in zip(ready, seeds)]
    state = jax.tree.map(lambda *parts: jnp.stack(parts), *states)
    one_step = train.make_step(first.loss, method, first.coefficients, accumulate=config.accumulate)
    step = jax.jit(jax.vmap(one_step), donate_argnums=0)
    collate, predict = first.begin(workdir)
    batches = join_batches(first.rows, config.batch_size, seeds, collate)
    with progress_bar(steps, name, "step") as bar:
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
    """Yield the batches of each seed: packed ones, or [seeds, batch_size, …] as wide as the longest row.

    So few shapes are compiled.
    """
    packed = collate if isinstance(collate, PackedBatches) else None
    longest = max(rows, key=lambda row: row.width)
    padding = len(seeds) * batch_size + 1  # the number of an empty row
    for epoch in itertools.count():
        plans = [plan_epoch(rows, batch_size, seed, epoch, even=packed is not None) for seed in seeds]
        for chosen in zip(*plans):
            if packed is not None:
                batches = packed.together([[rows[n] for n in part] for part in chosen])
                yield {name: np.stack([batch[name] for batch in batches]) for name in batches[0]}
                continue
            together = collate([*(rows[n] for part in chosen for n in part), longest], padding + 1)
            places = np.full((len(seeds), batch_size), padding)
            at = 0
            for part, seed_places in zip(chosen, places):
                seed_places[: len(part)] = np.arange(at, at + len(part))
                at += len(part)
            yield {name: values[places] for name, values in together.items()}
