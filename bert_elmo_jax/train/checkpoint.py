"""Parameters on disk, each step in a folder of its own that appears only when it is whole."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp


def save_params(run: str | Path, step: int, params: Mapping[str, Any]) -> Path:
    """Write a parameter tree as `checkpoints/<step>/params` of a run directory.

    >>> import tempfile
    >>> run = tempfile.mkdtemp()
    >>> _ = save_params(run, 7, {"dense": {"bias": np.zeros(2, np.float32)}})
    >>> load_params(run)
    (7, {'dense': {'bias': array([0., 0.], dtype=float32)}})
    """
    target = Path(run).absolute() / "checkpoints" / str(step) / "params"
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(target, jax.tree.map(np.asarray, dict(params)))
    return target


def saved_steps(run: str | Path) -> list[int]:
    """The steps of which a run directory has parameters, the oldest first."""
    folders = Path(run).glob("checkpoints/*/params")
    return sorted(int(folder.parent.name) for folder in folders if folder.parent.name.isdecimal())


def load_params(run: str | Path, step: int | None = None) -> tuple[int, dict[str, Any]]:
    """Read a parameter tree back, the newest unless a step is named; its step and the tree."""
    steps = saved_steps(run)
    if not steps:
        raise FileNotFoundError(f"{run} has no checkpoint: looked for {Path(run) / 'checkpoints'}/<step>/params")
    step = steps[-1] if step is None else step
    if step not in steps:
        raise FileNotFoundError(f"{run} has no checkpoint of step {step}; there are {', '.join(map(str, steps))}")
    path = Path(run).absolute() / "checkpoints" / str(step) / "params"
    try:
        with ocp.StandardCheckpointer() as checkpointer:
            return step, checkpointer.restore(path)
    except (ValueError, OSError, KeyError) as error:
        raise ValueError(
            f"{path} cannot be read, it seems damaged ({error}); use another step, or copy it again"
        ) from error
