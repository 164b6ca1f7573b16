"""The trials of a search in optuna's journal, and the values of the next one.

The values of a trial depend only on the seed, the trial's number and the results of earlier trials, so a search that
was killed continues with the values that it would have drawn.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bert_elmo_jax import train
from bert_elmo_jax.train.run_guard import REFUSED

NAME, JOURNAL = "search", "search.journal"
SAMPLERS = ("bayesian", "random")
FIRST = 3  # trials; if all of them are refused, the command is wrong
STATUS, BEFORE = "exit status", "of another wish"  # attributes of a trial; the second is an earlier command's


def import_optuna() -> Any:
    """Import optuna, which only searches need."""
    try:
        import optuna
    except ImportError as error:
        raise ImportError(
            "a search needs optuna, which is not installed: pip install -e '.[search]' in the repository, or "
            "pip install 'bert_elmo_jax[search]'"
        ) from error
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


def find_study(workdir: Path, asked: Mapping[str, Any], trials: int) -> Any:
    """Open or create the study of a search; `asked` may change as long as no trial has a score.

    If all trials were refused, the study restarts, because the cause may have been fixed.
    """
    how = workdir, asked["lowest"], asked["end_bad"]
    try:
        train.same_run(workdir, asked)
    except ValueError:
        if not (workdir / JOURNAL).is_file() or has_scores(open_study(*how)):
            raise
        study = _restart(*how)  # before run.json goes: a kill in between is repaired next time
        (workdir / "run.json").unlink()
        train.same_run(workdir, asked)
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
    there = [int(run.name) for run in (workdir / "trials").glob("*") if run.name.isdigit()]
    for _ in range(max(there, default=-1) + 1):
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
