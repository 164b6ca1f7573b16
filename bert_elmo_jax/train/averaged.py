"""The mean of a run's last checkpoints, in `checkpoints/average`: the parameters that `load` then reads.

The checkpoints stay, and a run resumes from them. `facts.json` names the steps of the mean and holds its
held-out figures.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp

from bert_elmo_jax.files import read_json
from bert_elmo_jax.json_values import list_of, whole_number
from bert_elmo_jax.optim import average
from bert_elmo_jax.train.checkpoint import (
    FILES,
    damage,
    load_params,
    meet,
    read_tree,
    saved_steps,
    scheduled_steps,
    write_file_list,
)

Params = dict[str, Any]


def check_average(average: int | None, keep: int) -> None:
    """Raise if a run cannot average this many checkpoints, because it keeps fewer.

    >>> check_average(5, keep=3)
    Traceback (most recent call last):
    ValueError: average=5 checkpoints, but the run keeps the newest 3: use keep=5 or more
    """
    if average is not None and average > keep:
        raise ValueError(
            f"average={average} checkpoints, but the run keeps the newest {keep}: use keep={average} or more"
        )


def average_params(run: str | Path, count: int) -> tuple[list[int], Params]:
    """Return the steps of the last `count` scheduled checkpoints, or of all if there are fewer, and their mean."""
    steps = scheduled_steps(run)[-count:] or [load_params(run)[0]]  # which raises without a checkpoint
    return steps, average(load_params(run, step)[1] for step in steps)


def write_average(
    run: str | Path, count: int, evaluate: Callable[[Params], Mapping[str, float]] | None = None
) -> dict[str, Any]:
    """Write the mean of the last `count` scheduled checkpoints, unless it is there; return its steps and figures.

    All processes of a run call it. `evaluate` returns the held-out figures of parameters.

    >>> import tempfile
    >>> import numpy as np
    >>> from bert_elmo_jax.train.checkpoint import save_params
    >>> run = tempfile.mkdtemp()
    >>> for step in (1, 2, 3):
    ...     _ = save_params(run, step, {"encoder": {"w": np.float32([step])}})
    >>> write_average(run, 2)["steps"], load_average(run)[1]["encoder"]["w"].tolist()
    ([2, 3], [2.5])
    """
    meet("last checkpoint")  # which one process marks as complete
    (folder, record), steps = _folder(run), scheduled_steps(run)[-count:]
    if record.get("steps") == steps and not damage(folder):
        return record
    _, params = average_params(run, count)
    record = {"steps": steps, "figures": dict(evaluate(params)) if evaluate else {}}
    meet("average")
    if jax.process_index() == 0:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "facts.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    meet("average folder")
    with ocp.StandardCheckpointer() as checkpointer:  # waits on exit until all is written
        checkpointer.save(folder / "params", params)
    if jax.process_index() == 0:
        write_file_list(folder)
    meet("average written")
    return record


def load_average(run: str | Path) -> tuple[list[int], Params] | None:
    """Return the steps and the parameters of the mean; None without one, or if there is a newer checkpoint."""
    (folder, record), saved = _folder(run), saved_steps(run)
    if not (folder / FILES).is_file() or not saved or (record.get("steps") or [])[-1:] != saved[-1:]:
        return None
    if wrong := damage(folder):
        raise ValueError(
            f"{folder} is damaged: {'; '.join(wrong[:3])}; copy it again, or delete it to read the last checkpoint"
        )
    return record["steps"], read_tree(folder / "params")


def _folder(run: str | Path) -> tuple[Path, dict[str, Any]]:
    """Return the folder of the mean, and its facts."""
    folder = Path(run).absolute() / "checkpoints" / "average"
    return folder, read_json(folder / "facts.json", default={}, fields={"steps": list_of(whole_number())})
