"""The trials as optuna keeps them, in `search.journal` of the working directory: which values come next, what counts.

What is drawn hangs on the seed, on the trial's number and on what the trials before came to, and on nothing else: so a
search that was killed and goes on draws what it would have drawn.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bert_elmo_jax import train
from bert_elmo_jax.train.run_guard import REFUSED

NAME, JOURNAL = "search", "search.journal"
SAMPLERS = ("bayesian", "random")
FIRST = 3  # trials that, all refused, show that it is the command
STATUS, BEFORE = "exit status", "of another wish"  # what is noted of a trial


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


def open_study(workdir: Path, lowest: bool, bad: bool) -> Any:
    """The trials so far; `bad` ones are ended early: worse than the median of the others at the same evaluation."""
    optuna = library()
    storages = optuna.storages
    journal = storages.journal.JournalFileBackend(str(workdir / JOURNAL))
    pruner = optuna.pruners.MedianPruner(n_startup_trials=3) if bad else optuna.pruners.NopPruner()
    return optuna.create_study(
        study_name=NAME, storage=storages.JournalStorage(journal), load_if_exists=True, pruner=pruner,
        direction="minimize" if lowest else "maximize",
    )  # fmt: skip


def study_of(workdir: Path, asked: Mapping[str, Any], trials: int) -> Any:
    """The study of what is asked. As long as no trial has come to anything, something else may be asked.

    The same command begins anew, too, where all was refused: its cause may have been mended.
    """
    how = workdir, asked["lowest"], asked["end_bad"]
    try:
        train.same_run(workdir, asked)
    except ValueError:
        if not (workdir / JOURNAL).is_file() or came_to_something(open_study(*how)):
            raise
        study = _begun_anew(*how)  # before what was asked is forgotten: a kill between leaves it to be done again
        (workdir / "run.json").unlink()
        train.same_run(workdir, asked)
        return study
    study = open_study(*how)
    return _begun_anew(*how) if all_refused(study, trials) else study


def _begun_anew(workdir: Path, lowest: bool, bad: bool) -> Any:
    """A study whose numbers go on behind those of all run directories: none is gone on with under another wish.

    optuna lets neither another direction nor other values of a field into the study that was there.
    """
    optuna = library()
    optuna.delete_study(study_name=NAME, storage=open_study(workdir, lowest, bad)._storage)
    study = open_study(workdir, lowest, bad)
    there = [int(run.name) for run in (workdir / "trials").glob("*") if run.name.isdigit()]
    for _ in range(max(there, default=-1) + 1):
        study.add_trial(optuna.trial.create_trial(state=optuna.trial.TrialState.FAIL, user_attrs={BEFORE: True}))
    return study


def trials_of(study: Any) -> list[Any]:
    """The trials of what is asked now."""
    return [trial for trial in study.get_trials(deepcopy=False) if BEFORE not in trial.user_attrs]


def came_to_something(study: Any) -> bool:
    """Whether a trial has a score, or was ended early for it."""
    return any(trial.state.name in ("COMPLETE", "PRUNED") for trial in trials_of(study))


def all_refused(study: Any, trials: int) -> bool:
    """Whether the program refused all that was tried, and as often that it is the command and not what was drawn."""
    ended = [trial for trial in trials_of(study) if trial.state.is_finished()]
    return len(ended) >= min(FIRST, trials) and all(trial.user_attrs.get(STATUS) == REFUSED for trial in ended)


def next_trial(study: Any, sampler: str, seed: int) -> Any:
    """The trial that was running when the search ended, or a new one."""
    optuna = library()
    begun = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,))
    number = begun[0].number if begun else len(study.get_trials(deepcopy=False))
    kinds = {"bayesian": optuna.samplers.TPESampler, "random": optuna.samplers.RandomSampler}
    mixed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])  # seeds 0 and 1 have no draws in common
    study.sampler = kinds[sampler](seed=mixed)
    return optuna.trial.Trial(study, begun[0]._trial_id) if begun else study.ask()
