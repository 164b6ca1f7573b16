"""An epoch of our fine-tuning: `finetune` with its own batches and loop, stopped between the epochs."""

import dataclasses
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bert_elmo_jax import train
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.runs import finetuning
from bert_elmo_jax.runs.config_files import read_config

from .._inputs import read_settings
from . import about


class Captured(Exception):
    """Carries the arguments of the loop out of `finetune`."""


class NoCheckpoints(train.Checkpoints):
    """Takes the place of checkpoints, which the peer does not write either."""

    def __init__(self) -> None:
        pass

    def save(self, *arguments: Any, **named: Any) -> None:
        """Do nothing."""

    def wait(self) -> None:
        """Do nothing."""


@contextmanager
def loop_replaced(by: Any) -> Iterator[None]:
    """Replace the training loop that `finetune` calls."""
    loop = train.train
    vars(train)["train"] = by
    try:
        yield
    finally:
        vars(train)["train"] = loop


def capture(folder: Path, precision: str) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Return the state, step, batches and options that `finetune` gives to its loop."""
    settings = read_settings(folder)
    config, _ = read_config("finetune")
    config.update({"task": "sst2", "train": str(folder / "train.tsv"), "dev": str(folder / "dev.tsv")})
    config.update({"epochs": 1.0, "batch_size": settings["batch_size"], "max_length": settings["max_length"]})
    config.update({"dtype": precision, "mesh": {"data": 1}})
    config.optimizer.update({"learning_rate": settings["learning_rate"], "name": "adamw"})

    def loop(state: Any, parallel: Any, batches: Any, **options: Any) -> Any:
        raise Captured(state, parallel, batches, options)

    try:
        with loop_replaced(loop):
            finetuning.finetune(config, Path(tempfile.mkdtemp(dir=folder)), init=str(folder))
    except Captured as found:
        state, parallel, batches, options = found.args
        return state, parallel, batches, options
    raise AssertionError("finetune has not called its loop")


def make_passes(folder: Path, precision: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return an epoch over all examples, without evaluation and checkpoints."""
    state, parallel, batches, options = capture(folder, precision)
    epoch, done = options["schedule"].steps, 0
    options |= {"checkpoints": NoCheckpoints(), "evaluate": None, "score": None, "progress": False}

    def run() -> None:
        nonlocal state, done
        done += epoch
        schedule = dataclasses.replace(options["schedule"], steps=done, eval_every=0, checkpoint_every=0)
        state, _ = train.train(state, parallel, batches, **{**options, "schedule": schedule})
        jax.block_until_ready(state)

    run()  # an epoch has batches of all widths
    tokenizer: Any = read_model(folder).tokenizer
    limit = read_settings(folder)["max_length"]
    pieces = int(np.sum([min(limit, len(tokenizer.encode(text).ids)) for text in read_settings(folder)["texts"]]))
    return {"epoch": run}, {**about(), "check": [], "pieces": pieces}
