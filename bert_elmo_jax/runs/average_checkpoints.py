"""The mean of a run's last checkpoints, which is often a little better than the last of them."""

from pathlib import Path
from typing import Any

from bert_elmo_jax.inference.run_directory import check_finite, is_run_directory
from bert_elmo_jax.optim import average
from bert_elmo_jax.train.checkpoint import load_params, saved_steps


def average_checkpoints(run: str | Path, count: int) -> tuple[list[int], dict[str, Any]]:
    """The steps of the newest `count` checkpoints of a run directory, and the mean of their parameters.

    >>> import tempfile
    >>> import numpy as np
    >>> from bert_elmo_jax.train.checkpoint import save_params
    >>> run = tempfile.mkdtemp()
    >>> for step in (10, 20, 30):
    ...     _ = save_params(run, step, {"dense": {"bias": np.full(2, step, np.float32)}})
    >>> _ = Path(run, "model.json").write_text("{}")
    >>> average_checkpoints(run, 2)
    ([20, 30], {'dense': {'bias': array([25., 25.], dtype=float32)}})
    """
    if count < 1:
        raise ValueError(f"an average of {count} checkpoints was asked for; it is of at least one")
    if not is_run_directory(Path(run)):
        raise ValueError(f"{run} is no run directory: only a run of ours has several checkpoints to average")
    steps = saved_steps(run)
    if len(steps) < count:
        raise ValueError(
            f"{run} holds {len(steps)} checkpoints, of steps {', '.join(map(str, steps))}; an average of {count} was "
            "asked for: ask for fewer, or train with a larger --config.keep"
        )
    params = average(load_params(run, step)[1] for step in steps[-count:])
    check_finite(params, f"the average of {run}")
    return steps[-count:], params
