"""The config of a run, its held-out batches, and the means of its loss over some of them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from bert_elmo_jax.data.pipeline.batches import eval_batches
from bert_elmo_jax.families import get_family
from bert_elmo_jax.files import read_json
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.train import make_evaluate
from bert_elmo_jax.train.step import State

Batch = Mapping[str, np.ndarray]


def read_asked(run: Path) -> ConfigDict:
    """Return the config of a run directory."""
    if not (run / "run.json").is_file():
        raise ValueError(f"{run} is not a run directory: it has no run.json")
    return ConfigDict(read_json(run / "run.json"))


def read_held_out(run: Path, config: ConfigDict, corpus: Any, limit: int | None = None) -> tuple[Any, Any, list[Batch]]:
    """Return the model of a run, its objective, and the batches of held-out text that it is evaluated on."""
    model = read_model(run)
    objective = get_family(model.kind).objective(config, model.config)
    return model, objective, [*eval_batches(corpus, objective.held_out_examples, config.batch_size, limit=limit)]


def build_means(loss: Any, params: Any, carry: Any = None) -> Callable[[Sequence[Batch]], dict[str, float]]:
    """Return a function from batches to the means of a loss, as a run's own evaluation has them; compiled once."""
    now: list[Sequence[Batch]] = []
    evaluate = make_evaluate(loss, lambda: now[-1], carry=carry)
    state: Any = State(None, None, jax.tree.map(jax.numpy.asarray, dict(params)), None, None, None)  # type: ignore[arg-type]

    def means(batches: Sequence[Batch]) -> dict[str, float]:
        now.append(batches)
        return evaluate(state)

    return means
