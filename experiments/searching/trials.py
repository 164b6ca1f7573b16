"""The trials of a search: which values come next, what becomes of a run, and when it is not worth going on with.

optuna keeps them in `search.journal` of the working directory and draws the values. What it draws hangs on the seed, on
the trial's number and on what the trials before came to, and on nothing else: so a search that was killed and goes on
draws what it would have drawn.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bert_elmo_jax.train.metrics import read_metrics
from experiments.searching.space import Space, words_of
from experiments.sweeps.forks import Launch, Runner
from experiments.sweeps.points import DONE
from experiments.sweeps.schedule import is_held, last_lines, reason

TICK = 0.5  # seconds between two looks at a run
SAMPLERS = ("bayesian", "random")
REFUSED = 2


@dataclass(frozen=True)
class Search:
    """What is asked: a program's words, fields with what they may be, and the figure that is to be high (or low)."""

    program: str
    words: Sequence[str]
    space: Space
    score: str
    lowest: bool
    workdir: Path

    def run(self, number: int) -> Path:
        """The run directory of a trial."""
        return self.workdir / "trials" / f"{number:03d}"

    def words_of(self, number: int, values: dict[str, Any]) -> list[str]:
        """What stands behind the program in a trial's command."""
        return [*self.words, *words_of(values), f"--workdir={self.run(number)}"]

    def readings(self, number: int) -> dict[int, float]:
        """The score at each step at which a trial was evaluated."""
        run = self.run(number)
        if not (run / "metrics.jsonl").is_file():
            return {}
        lines = read_metrics(run)
        return {line["step"]: line[self.score] for line in lines if line.get(self.score) is not None}

    def figures(self, number: int) -> list[str]:
        """What the evaluations of a trial tell, besides its score."""
        lines = read_metrics(self.run(number))
        return sorted({name for line in lines for name in line if "/" in name})


def library() -> Any:
    """The library that searches; it is imported where a search is asked for, and nowhere else."""
    try:
        import optuna
    except ImportError as error:
        raise ImportError(
            "a search needs optuna, which is not installed: pip install -e '.[search]' in the repository, or "
            "pip install 'bert_elmo_jax[search]'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def open_study(search: Search, bad: bool) -> Any:
    """The trials so far; `bad` ones are ended early, which are below the median of the others at the same step."""
    optuna = library()
    storages = optuna.storages
    journal = storages.journal.JournalFileBackend(str(search.workdir / "search.journal"))
    pruner = optuna.pruners.MedianPruner(n_startup_trials=3) if bad else optuna.pruners.NopPruner()
    return optuna.create_study(
        study_name="search", storage=storages.JournalStorage(journal), load_if_exists=True, pruner=pruner,
        direction="minimize" if search.lowest else "maximize",
    )  # fmt: skip


def next_trial(study: Any, sampler: str, seed: int) -> Any:
    """The trial that was running when the search ended, or a new one."""
    optuna = library()
    begun = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,))
    number = begun[0].number if begun else len(study.get_trials(deepcopy=False))
    kinds = {"bayesian": optuna.samplers.TPESampler, "random": optuna.samplers.RandomSampler}
    mixed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])  # seeds 0 and 1 have no draws in common
    study.sampler = kinds[sampler](seed=mixed)
    return optuna.trial.Trial(study, begun[0]._trial_id) if begun else study.ask()


def run_search(
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
    """Run trials until there are as many as asked for; False where it was asked to stop before."""
    state = library().trial.TrialState
    while len([t for t in study.get_trials(deepcopy=False) if t.state.is_finished()]) < trials and not stop():
        trial = next_trial(study, sampler, seed)
        values = {name: space.draw(trial, name) for name, space in search.space.items()}
        say(f"trial {trial.number + 1} of {trials}: {' '.join(words_of(values))}")
        status, pruned = run_trial(search, study, trial, values, runner, stop)
        log = search.run(trial.number) / "log.txt"
        done = (search.run(trial.number) / DONE[search.program]).is_file()
        if not (done or pruned) and stop():
            return False
        if pruned:
            study.tell(trial, state=state.PRUNED)
            say(f"trial {trial.number + 1}: ended early, below the median of those before at the same step")
        elif done:
            study.tell(trial, score_of(search, trial.number, log))
            say(f"trial {trial.number + 1}: {search.score} {study.trials[trial.number].value:.4f}")
        elif status == REFUSED:
            raise ValueError(f"the program refused what it was asked; the last lines of {log}:\n{last_lines(log)}")
        else:
            study.tell(trial, state=state.FAIL)
            say(f"trial {trial.number + 1}: {reason(status)}. The last lines of {log}:\n{last_lines(log)}")
        changed()
    return not stop()


def run_trial(
    search: Search, study: Any, trial: Any, values: dict[str, Any], runner: Runner, stop: Callable[[], int]
) -> tuple[int, bool]:
    """Run a trial to its end, or until it is not worth going on with; its exit status, and whether it was ended."""
    run, pruned, asked = search.run(trial.number), False, 0
    run.mkdir(parents=True, exist_ok=True)
    told = set(study.trials[trial.number].intermediate_values)
    status = 0

    def look() -> bool:
        for step, value in search.readings(trial.number).items():
            if step not in told:
                told.add(step)
                trial.report(value, step)
                if trial.should_prune():
                    return True
        return False

    if told and trial.should_prune():  # killed between the decision and its end
        return status, True
    if not (run / DONE[search.program]).is_file():
        while is_held(run) and not stop():  # by the process of a killed search, which is saving
            time.sleep(TICK)
        key = str(trial.number)
        words = search.words_of(trial.number, values)
        runner.start(Launch(key, f"experiments.{search.program}", words, str(run / "log.txt")))
        running = True
        while running:
            for ended in runner.wait(TICK):
                status, running = ended.status, False
            if not pruned and (pruned := look()) and running:
                runner.stop()
            if (times := stop()) > asked and running:
                asked = times
                runner.stop(hard=times > 1)
    return status, pruned or look()


def score_of(search: Search, number: int, log: Path) -> float:
    """A finished trial's score: of a task that of the model that is kept, the best; of a pretraining the last."""
    readings = list(search.readings(number).values())
    if not readings:
        there = ", ".join(search.figures(number))
        raise ValueError(f"{search.run(number)} has no figure {search.score!r}: --score=… may be one of {there}")
    if search.program == "finetune":
        return min(readings) if search.lowest else max(readings)
    return readings[-1]
