"""Everything that a run trains, as one record: a pretraining, a head, a network, a reader of documents."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optax

from bert_elmo_jax import optim, train
from bert_elmo_jax.report.language import Translate

BEFORE = "before.json"  # in a run directory: the held-out figures of given weights, before the first step
Figures = Mapping[str, float]
Evaluate = Callable[[train.State], Figures]
Section = tuple[str, str]  # heading and HTML


class Feed(NamedTuple):
    """The batches of a run, which have a position that a checkpoint holds, and its held-out evaluation."""

    batches: Any
    evaluate: Evaluate


class Ending(NamedTuple):
    """The outcome of a run that has ended: title, sections and remarks of its report, and `result.json`."""

    sections: Sequence[Section] = ()
    remarks: Sequence[str] = ()
    result: Mapping[str, Any] | None = None
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class Trainable:
    """A model with all that its training needs, before the first step; see `train_run`.

    `describe` writes what `load` needs into the run directory. `open` then makes the batches and the evaluation, for
    the devices of a compiled step. `finish` gets the state after the last step,
    and translates the phrases of the report.
    """

    summary: str  # the task or objective, and the number of steps
    params: dict[str, Any]
    seed: int
    loss: Any  # see `train.make_step`
    coefficients: Mapping[str, float]  # of the terms of the loss
    optimizer: optax.GradientTransformation
    rate: optim.Schedule
    schedule: train.Schedule  # the length of the run, and what happens when
    score: str  # the figure that chooses the best checkpoint
    size: Callable[[Mapping[str, np.ndarray]], int]  # tokens in a batch
    describe: Callable[[Path], None]
    open: Callable[[Path, train.Parallel], Feed]
    finish: Callable[[Path, train.State, Evaluate, Translate], Ending]
    report_holds: str  # for the last line that is printed
    step_options: Mapping[str, Any]  # further arguments of `train.make_step`
    change_step: Callable[[train.Step], train.Step] = lambda step: step
    carry: Any = None  # of the loss, before the first step
    carry_axis: int | None = None  # of the rows in the carry; None if it belongs to the whole batch
    constants: Mapping[str, Any] = field(default_factory=dict)  # entries of every batch that no step changes
    sharding: Sequence[Any] = ()  # rules of the encoder's family
    keep: int = 1  # newest checkpoints
    patience: int = 0  # evaluations without a better score that end the run; 0: it does not end early
    evaluate_first: bool = False  # also measure the parameters before the first step
    top_speed: Callable[[], float] | None = None  # measures the largest possible number of tokens per second
    remarks: Sequence[str] = ()  # on the settings, for the report
