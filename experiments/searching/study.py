"""The trials as optuna keeps them, in `search.journal` of the working directory: which values come next.

What is drawn hangs on the seed, on the trial's number and on what the trials before came to, and on nothing else: so a
search that was killed and goes on draws what it would have drawn.
"""

from pathlib import Path
from typing import Any

import numpy as np

NAME, JOURNAL = "search", "search.journal"
SAMPLERS = ("bayesian", "random")
REFUSED = 2


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


def next_trial(study: Any, sampler: str, seed: int) -> Any:
    """The trial that was running when the search ended, or a new one."""
    optuna = library()
    begun = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,))
    number = begun[0].number if begun else len(study.get_trials(deepcopy=False))
    kinds = {"bayesian": optuna.samplers.TPESampler, "random": optuna.samplers.RandomSampler}
    mixed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])  # seeds 0 and 1 have no draws in common
    study.sampler = kinds[sampler](seed=mixed)
    return optuna.trial.Trial(study, begun[0]._trial_id) if begun else study.ask()
