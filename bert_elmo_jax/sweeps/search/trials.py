"""The trials of a search: what becomes of a run, and when it is not worth going on with."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bert_elmo_jax.sweeps.forks import Launch, Runner
from bert_elmo_jax.sweeps.points import DONE
from bert_elmo_jax.sweeps.schedule import is_held, last_lines, reason
from bert_elmo_jax.sweeps.search.space import Space, words_of
from bert_elmo_jax.sweeps.search.study import STATUS, all_refused, came_to_something, library, next_trial, trials_of
from bert_elmo_jax.train.metrics import read_metrics

TICK = 0.5  # seconds between two looks at a run


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

    def is_done(self, number: int) -> bool:
        """Whether a trial's run has come to its end."""
        return (self.run(number) / DONE[self.program]).is_file()

    def words_of(self, number: int, values: dict[str, Any]) -> list[str]:
        """What stands behind the program in a trial's command."""
        return [*self.words, *words_of(values), f"--workdir={self.run(number)}"]

    def lines(self, number: int) -> list[dict[str, Any]]:
        """What a trial's run has said of itself so far."""
        there = (self.run(number) / "metrics.jsonl").is_file()
        return read_metrics(self.run(number)) if there else []

    def steps(self, number: int) -> list[int]:
        """The steps after which a trial was evaluated."""
        return [line["step"] for line in self.lines(number) if self.score in line]

    def readings(self, number: int) -> dict[int, float]:
        """The score at a trial's first evaluation, its second, …; without those where it was no finite number.

        Not by the step: runs with another batch size have other steps at the end of the same epoch.
        """
        found = [line[self.score] for line in self.lines(number) if self.score in line]
        return {at: value for at, value in enumerate(found, 1) if value is not None and math.isfinite(value)}

    def other_figures(self, number: int) -> list[str]:
        """What a trial's evaluations tell, if they do not tell the score."""
        names = {name for line in self.lines(number) for name in line}
        return [] if self.score in names else sorted(name for name in names if "/" in name)


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
    last = trials + len(study.get_trials(deepcopy=False)) - len(trials_of(study))
    while len([trial for trial in trials_of(study) if trial.state.is_finished()]) < trials and not stop():
        trial = next_trial(study, sampler, seed)
        number = trial.number
        values = {name: space.draw(trial, name) for name, space in search.space.items()}
        say(f"trial {number + 1} of {last}: {' '.join(words_of(values))}")
        status, pruned = run_trial(search, study, trial, values, runner, stop)
        misnamed = bool(search.other_figures(number))
        if misnamed and not came_to_something(study):
            raise ValueError(failure(search, number, status))
        if not (search.is_done(number) or pruned or misnamed) and stop():
            return False
        score = score_of(search, number)
        if pruned:
            study.tell(trial, state=state.PRUNED)
            say(f"trial {number + 1}: ended early, worse than the median of those before at the same evaluation")
        elif score is not None:
            study.tell(trial, score)
            say(f"trial {number + 1}: {search.score} {score:.4f}")
        else:
            trial.set_user_attr(STATUS, status)
            study.tell(trial, state=state.FAIL)
            say(f"trial {number + 1}: {failure(search, number, status)}")
        changed()
        if all_refused(study, trials):
            log = search.run(number) / "log.txt"
            raise ValueError(
                "the program refused every trial so far: change the command, --workdir may stay the same; the last "
                f"lines of {log}:\n{last_lines(log)}"
            )
    return not stop()


def run_trial(
    search: Search, study: Any, trial: Any, values: dict[str, Any], runner: Runner, stop: Callable[[], int]
) -> tuple[int, bool]:
    """Run a trial to its end, or until it is not worth going on with; its exit status, and whether it was ended."""
    number, pruned, ending, asked = trial.number, False, False, 0
    run = search.run(number)
    run.mkdir(parents=True, exist_ok=True)
    told = set(study.trials[number].intermediate_values)
    status = 0

    def look() -> bool:
        for at, value in search.readings(number).items():
            if at not in told:
                told.add(at)
                trial.report(value, at)
                if trial.should_prune():
                    return True
        return False

    if told and trial.should_prune():  # killed between the decision and its end
        return status, True
    if not search.is_done(number) and not search.other_figures(number):
        while is_held(run) and not stop():  # by the process of a killed search, which is saving
            time.sleep(TICK)
        words = search.words_of(number, values)
        runner.start(Launch(str(number), f"experiments.{search.program}", words, str(run / "log.txt")))
        running = True
        while running:
            for ended in runner.wait(TICK):
                status, running = ended.status, False
            pruned = pruned or look()
            if running and not ending and (pruned or (not told and search.other_figures(number))):
                runner.stop()
                ending = True
            if (times := stop()) > asked and running:
                asked = times
                runner.stop(hard=times > 1)
    return status, pruned or look()


def score_of(search: Search, number: int) -> float | None:
    """A finished trial's score: of a task that of the model that is kept, the best; of a pretraining the last."""
    readings = list(search.readings(number).values())
    if not readings or not search.is_done(number):
        return None
    if search.program == "finetune":
        return min(readings) if search.lowest else max(readings)
    return readings[-1]


def failure(search: Search, number: int, status: int) -> str:
    """Why a trial has no score."""
    if others := search.other_figures(number):
        there = ", ".join(others)
        return f"{search.run(number)} has no figure {search.score!r}: --score=… may be one of {there}"
    if search.is_done(number):
        return f"its {search.score} was never a finite number" if search.steps(number) else "it was never evaluated"
    log = search.run(number) / "log.txt"
    return f"{reason(status)}. The last lines of {log}:\n{last_lines(log)}"
