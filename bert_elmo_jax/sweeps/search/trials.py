"""The space of a search, and its trials: drawn values, runs, scores, and when a run is not worth finishing."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from bert_elmo_jax import train
from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.files import is_locked, read_json
from bert_elmo_jax.runs.config_files import list_fields, parse_value, parse_values, show_value
from bert_elmo_jax.runs.field_ranges import check_field
from bert_elmo_jax.sweeps.folders import CALLS, DONE
from bert_elmo_jax.sweeps.runners import LOG, Job, Runner
from bert_elmo_jax.sweeps.schedule import TICK, explain_status, read_last_lines
from bert_elmo_jax.train.metrics import read_metrics
from bert_elmo_jax.train.run_guard import REFUSED

SUCH_AS = "such as 'optimizer.learning_rate=1e-5..1e-3,log;dropout=0.0..0.5;batch_size=16,32'"
NAME, JOURNAL = "search", "search.journal"
SAMPLERS = ("bayesian", "random")
FIRST = 3  # trials; if all of them are refused, the command is wrong
STATUS, BEFORE = "exit status", "of another wish"  # attributes of a trial; the second is an earlier command's


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included; with `log`, every power of ten is equally likely."""

    low: int | float
    high: int | float
    log: bool = False
    integers: bool = False

    def draw(self, trial: Any, name: str) -> float:
        """Return a trial's value."""
        if self.integers:
            return trial.suggest_int(name, int(self.low), int(self.high), log=self.log)
        return trial.suggest_float(name, self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Values:
    """A few values without an order."""

    values: tuple[Any, ...]

    def draw(self, trial: Any, name: str) -> Any:
        """Return a trial's value."""
        return trial.suggest_categorical(name, self.values)


Space = dict[str, Range | Values]


def read_space(over: str, config: ConfigDict) -> Space:
    """Return the search space that --over describes.

    >>> repr(read_space("epochs=2..4;optimizer.clip=1", ConfigDict({"epochs": 3.0, "optimizer": {"clip": 1.0}})))
    "{'epochs': Range(low=2.0, high=4.0, log=False, integers=False), 'optimizer.clip': Values(values=(1.0,))}"
    >>> repr(
    ...     read_space("masking.split=(0.8,0.1,0.1),(1,0,0)", ConfigDict({"masking": {"split": (0.8, 0.1, 0.1)}}))
    ... )
    "{'masking.split': Values(values=('(0.8, 0.1, 0.1)', '(1, 0, 0)'))}"
    """
    space: Space = {}
    fields = dict(list_fields(config))
    for part in filter(None, map(str.strip, over.split(";"))):
        name, equals, text = part.partition("=")
        if not equals or not text:
            raise ValueError(f"--over: {part!r} has no range and no values; expected text {SUCH_AS}")
        if name not in fields:
            raise ValueError(f"--over names {name!r}, but the config has no such field{did_you_mean(name, fields)}")
        if name in space:
            raise ValueError(f"--over names {name} twice")
        try:
            space[name] = _read_values(config, name, text)
        except ValueError as error:
            raise ValueError(f"--over: {error}") from None
    if not space:
        raise ValueError(f"--over=… is needed: the fields to search, {SUCH_AS}")
    return space


def _read_values(config: ConfigDict, name: str, text: str) -> Range | Values:
    first, *more = text.split(",")
    low, dots, high = first.partition("..")
    if not dots or low[:1] in ("'", '"', "("):
        values = parse_values(config, name, text)
        if not all(math.isfinite(value) for value in values if isinstance(value, float)):
            raise ValueError(f"{name}={text}: expected finite numbers")
        for value in values:
            check_field(name, value, "")
        simple = (bool, int, float, str)  # optuna stores no tuples, so these are kept as text
        return Values(tuple(value if isinstance(value, simple) else show_value(value) for value in values))
    bounds = [parse_value(config, name, bound) for bound in (low, high)]
    if not all(type(bound) in (int, float) for bound in bounds) or more not in ([], ["log"]):
        raise ValueError(f"{name}={text}: expected values as a,b, or numbers as low..high or low..high,log")
    if not all(map(math.isfinite, bounds)) or not bounds[0] < bounds[1] or (more and bounds[0] <= 0):
        raise ValueError(f"{name}={text}: expected {'positive' if more else 'finite'} numbers, the lower one first")
    for bound in bounds:
        check_field(name, bound, "")
    return Range(bounds[0], bounds[1], log=bool(more), integers=type(bounds[0]) is int)


def import_optuna() -> Any:
    """Import optuna, which only searches need."""
    try:
        import optuna
    except ImportError as error:
        raise ImportError("a search needs optuna: pip install 'bert_elmo_jax[search]'") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def open_study(workdir: Path, lowest: bool, bad: bool) -> Any:
    """Open the journal of a search. With `bad`, trials end early if they are worse than the median of the others."""
    optuna = import_optuna()
    storages = optuna.storages
    journal = storages.journal.JournalFileBackend(str(workdir / JOURNAL))
    pruner = optuna.pruners.MedianPruner(n_startup_trials=3) if bad else optuna.pruners.NopPruner()
    return optuna.create_study(
        study_name=NAME, storage=storages.JournalStorage(journal), load_if_exists=True, pruner=pruner,
        direction="minimize" if lowest else "maximize",
    )  # fmt: skip


def find_study(workdir: Path, settings: Mapping[str, Any], trials: int) -> Any:
    """Open or create the study of a search; `asked` may change as long as no trial has a score.

    If all trials were refused, the study restarts, because the cause may have been fixed. An earlier version recorded
    no `data`, so its searches continue on any.
    """
    how = workdir, settings["lowest"], settings["end_bad"]
    try:
        free = () if "data" in read_json(workdir / "run.json", default={"data": {}}) else ("data",)
        train.same_run(workdir, settings, free)
    except ValueError:
        if not (workdir / JOURNAL).is_file() or has_scores(open_study(*how)):
            raise
        study = _restart(*how)  # before run.json goes: a kill in between is repaired next time
        (workdir / "run.json").unlink()
        train.same_run(workdir, settings)
        return study
    study = open_study(*how)
    return _restart(*how) if all_refused(study, trials) else study


def _restart(workdir: Path, lowest: bool, bad: bool) -> Any:
    """Create an empty study that numbers its trials after all existing run directories.

    optuna allows neither another direction nor other values of a field in an existing study.
    """
    optuna = import_optuna()
    optuna.delete_study(study_name=NAME, storage=open_study(workdir, lowest, bad)._storage)
    study = open_study(workdir, lowest, bad)
    numbers = [int(run.name) for run in (workdir / "trials").glob("*") if run.name.isdigit()]
    for _ in range(max(numbers, default=-1) + 1):
        study.add_trial(optuna.trial.create_trial(state=optuna.trial.TrialState.FAIL, user_attrs={BEFORE: True}))
    return study


def list_trials(study: Any) -> list[Any]:
    """Return the trials of the present command."""
    return [trial for trial in study.get_trials(deepcopy=False) if BEFORE not in trial.user_attrs]


def has_scores(study: Any) -> bool:
    """Return whether a trial has a score, or ended early because of one."""
    return any(trial.state.name in ("COMPLETE", "PRUNED") for trial in list_trials(study))


def all_refused(study: Any, trials: int) -> bool:
    """Return whether so many trials were refused, and no other, that the command must be wrong."""
    ended = [trial for trial in list_trials(study) if trial.state.is_finished()]
    return len(ended) >= min(FIRST, trials) and all(trial.user_attrs.get(STATUS) == REFUSED for trial in ended)


def take_trial(study: Any, sampler: str, seed: int) -> Any:
    """Return the trial that was running when the search ended, or a new one."""
    optuna = import_optuna()
    begun = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,))
    number = begun[0].number if begun else len(study.get_trials(deepcopy=False))
    kinds = {"bayesian": optuna.samplers.TPESampler, "random": optuna.samplers.RandomSampler}
    mixed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])  # so seeds 0 and 1 have no draws in common
    study.sampler = kinds[sampler](seed=mixed)
    return optuna.trial.Trial(study, begun[0]._trial_id) if begun else study.ask()


@dataclass(frozen=True)
class Search:
    """A search: a program with its config, fields and options, the space, and the score to raise (or lower)."""

    program: str
    config: str
    space: Space
    score: str
    lowest: bool
    workdir: Path
    fields: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def run(self, number: int) -> Path:
        """Return the run directory of a trial."""
        return self.workdir / "trials" / f"{number:03d}"

    def is_done(self, number: int) -> bool:
        """Return whether a trial's run has finished."""
        return (self.run(number) / DONE[self.program]).is_file()

    def job(self, number: int, values: Mapping[str, Any]) -> Job:
        """Return the job of a trial with some values."""
        fields = {**self.fields, **{name: show_value(value) for name, value in values.items()}}
        return Job(str(number), CALLS[self.program], self.config, fields, str(self.run(number)), self.options)

    def lines(self, number: int) -> list[dict[str, Any]]:
        """Return the metrics of a trial so far."""
        started = (self.run(number) / "metrics.jsonl").is_file()
        return read_metrics(self.run(number)) if started else []

    def steps(self, number: int) -> list[int]:
        """Return the steps at which a trial was evaluated."""
        return [line["step"] for line in self.lines(number) if self.score in line]

    def readings(self, number: int) -> dict[int, float]:
        """Return the finite scores by evaluation, 1, 2, …: an epoch's last step depends on the batch size."""
        values = [line[self.score] for line in self.lines(number) if self.score in line]
        return {at: value for at, value in enumerate(values, 1) if value is not None and math.isfinite(value)}

    def other_figures(self, number: int) -> list[str]:
        """Return the names of a trial's figures if the score is not among them."""
        names = {name for line in self.lines(number) for name in line}
        return [] if self.score in names else sorted(name for name in names if "/" in name)

    def final_score(self, number: int) -> float | None:
        """Return the score of a finished trial: the best of a fine-tuning, the last of a pretraining."""
        readings = list(self.readings(number).values())
        if not readings or not self.is_done(number):
            return None
        if self.program == "finetune":
            return min(readings) if self.lowest else max(readings)
        return readings[-1]

    def explain_failure(self, number: int, status: int) -> str:
        """Return why a trial has no score."""
        if figures := self.other_figures(number):
            return f"{self.run(number)} has no figure {self.score!r}: --score=… may be one of {', '.join(figures)}"
        if self.is_done(number):
            return f"its {self.score} was never a finite number" if self.steps(number) else "it was never evaluated"
        log = self.run(number) / LOG
        return f"{explain_status(status)}. The last lines of {log}:\n{read_last_lines(log)}"


def run_trials(
    search: Search,
    study: Any,
    runner: Runner,
    *,
    trials: int,
    sampler: str,
    seed: int,
    say: Callable[[str], object],
    changed: Callable[[], object],
    stop: Callable[[], int],
) -> bool:
    """Run trials until there are `trials`; return False if it was asked to stop before."""
    state = import_optuna().trial.TrialState
    last = trials + len(study.get_trials(deepcopy=False)) - len(list_trials(study))
    while len([trial for trial in list_trials(study) if trial.state.is_finished()]) < trials and not stop():
        trial = take_trial(study, sampler, seed)
        number = trial.number
        values = {name: space.draw(trial, name) for name, space in search.space.items()}
        drawn = " ".join(f"{name}={show_value(value)}" for name, value in values.items())
        say(f"trial {number + 1} of {last}: {drawn}")
        status, pruned = run_trial(search, study, trial, values, runner, stop)
        misnamed = bool(search.other_figures(number))
        if misnamed and not has_scores(study):
            raise ValueError(search.explain_failure(number, status))
        if not (search.is_done(number) or pruned or misnamed) and stop():
            return False
        score = search.final_score(number)
        if pruned:
            study.tell(trial, state=state.PRUNED)
            say(f"trial {number + 1}: ended early, worse than the median of the earlier trials at this evaluation")
        elif score is not None:
            study.tell(trial, score)
            say(f"trial {number + 1}: {search.score} {score:.4f}")
        else:
            trial.set_user_attr(STATUS, status)
            study.tell(trial, state=state.FAIL)
            say(f"trial {number + 1}: {search.explain_failure(number, status)}")
        changed()
        if all_refused(study, trials):
            log = search.run(number) / LOG
            how = "change the command, --workdir may stay the same; the last lines of"
            raise ValueError(f"the program refused every trial so far: {how} {log}:\n{read_last_lines(log)}")
    return not stop()


def run_trial(
    search: Search, study: Any, trial: Any, values: dict[str, Any], runner: Runner, stop: Callable[[], int]
) -> tuple[int, bool]:
    """Run a trial until it ends or is worse than the others; return its exit status and whether it was pruned."""
    number, pruned, ending, stops = trial.number, False, False, 0
    run = search.run(number)
    run.mkdir(parents=True, exist_ok=True)
    reported = set(study.trials[number].intermediate_values)
    status = 0

    def look() -> bool:
        for at, value in search.readings(number).items():
            if at not in reported:
                reported.add(at)
                trial.report(value, at)
                if trial.should_prune():
                    return True
        return False

    if reported and trial.should_prune():  # the search was killed between the decision and the end of the run
        return status, True
    if not search.is_done(number) and not search.other_figures(number):
        while is_locked(run / "lock") and not stop():  # by the run of a killed search, which is saving
            time.sleep(TICK)
        runner.start(search.job(number, values))
        running = True
        while running:
            for ended in runner.wait(TICK):
                status, running = ended.status, False
            pruned = pruned or look()
            if running and not ending and (pruned or (not reported and search.other_figures(number))):
                runner.stop()
                ending = True
            if (times := stop()) > stops and running:
                stops = times
                runner.stop(hard=times > 1)
    return status, pruned or look()
