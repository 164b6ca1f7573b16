"""One cell of the quickstart's table: the seeds of a task, trained side by side."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from bert_elmo_jax.files import write_json
from bert_elmo_jax.runs.grid import RESULT
from bert_elmo_jax.runs.side_by_side import train_seeds
from bert_elmo_jax.runs.start_cost import cost_kept
from bert_elmo_jax.runs.start_run import keep_freed_memory
from bert_elmo_jax.runs.task_data import read_data
from bert_elmo_jax.runs.task_scores import score_name
from bert_elmo_jax.runs.with_head import start_head
from bert_elmo_jax.runs.with_network import start_network
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
        start = (start_network if "network" in config else start_head)(config, init, tokenizer)
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
