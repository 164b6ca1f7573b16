"""Parameters on disk, each step in a folder of its own that counts only when it is whole."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

FILES = "files.json"  # the size and hash of every file of a step; written last, so a step without it is unfinished


def save_params(run: str | Path, step: int, params: Mapping[str, Any]) -> Path:
    """Write a parameter tree as `checkpoints/<step>/params` of a run directory.

    >>> import tempfile
    >>> run = tempfile.mkdtemp()
    >>> _ = save_params(run, 7, {"dense": {"bias": np.zeros(2, np.float32)}})
    >>> load_params(run)
    (7, {'dense': {'bias': array([0., 0.], dtype=float32)}})
    """
    target = Path(run).absolute() / "checkpoints" / str(step) / "params"
    with ocp.StandardCheckpointer() as checkpointer:  # leaving it waits until all is written
        checkpointer.save(target, jax.tree.map(np.asarray, dict(params)))
    written = sorted(file for file in target.rglob("*") if file.is_file())
    facts = {str(file.relative_to(target).as_posix()): [file.stat().st_size, sha256(file)] for file in written}
    partial = target.with_name(FILES + ".partial")
    partial.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    partial.replace(target.with_name(FILES))
    return target


def saved_steps(run: str | Path) -> list[int]:
    """The steps of which a run directory has whole parameters, the oldest first."""
    folders = (file.parent for file in Path(run).glob(f"checkpoints/*/{FILES}"))
    return sorted(int(folder.name) for folder in folders if folder.name.isdecimal())


def load_params(run: str | Path, step: int | None = None) -> tuple[int, dict[str, Any]]:
    """Read a parameter tree back, the newest unless a step is named; its step and the tree."""
    steps = saved_steps(run)
    if not steps:
        raise FileNotFoundError(
            f"{run} has no checkpoint: looked for {Path(run) / 'checkpoints'}/<step>/{FILES}, which is written last"
        )
    step = steps[-1] if step is None else step
    if step not in steps:
        raise FileNotFoundError(f"{run} has no checkpoint of step {step}; there are {', '.join(map(str, steps))}")
    path = Path(run).absolute() / "checkpoints" / str(step) / "params"
    # Before orbax sees it: orbax reads flipped bits as numbers, and says of a cut file too much to be understood.
    if wrong := damage(path):
        listed = "; ".join(wrong[:3]) + (f"; and {len(wrong) - 3} more" if len(wrong) > 3 else "")
        others = ", ".join(str(other) for other in steps if other != step)
        rest = f"use another step (there are {others}), or copy it again" if others else "copy it again"
        raise ValueError(f"{path} is damaged: {listed}; {rest}")
    try:
        with ocp.StandardCheckpointer() as checkpointer:
            return step, checkpointer.restore(path)
    except (ValueError, OSError, KeyError) as error:
        short = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise ValueError(
            f"{path} is as it was written, but the installed orbax cannot read it ({short}); install the version "
            "that wrote it"
        ) from error


def damage(path: Path) -> list[str]:
    """What differs between the files of a step and what was written of them; nothing where all is well."""
    file = path.with_name(FILES)
    try:
        facts = {str(name): (int(size), str(digest)) for name, (size, digest) in json.loads(file.read_bytes()).items()}
    except (ValueError, TypeError, AttributeError):
        return [f"{file.name} beside it is no list of files"]
    wrong = []
    for name, (size, digest) in facts.items():
        there = path / name
        if not there.is_file():
            wrong.append(f"{name} is missing")
        elif there.stat().st_size != size:
            wrong.append(f"{name} has {there.stat().st_size:,} bytes, {size:,} were written")
        elif sha256(there) != digest:
            wrong.append(f"{name} is not what was written (its hash differs)")
    return wrong


def sha256(path: Path) -> str:
    """The hash of a file, in hex."""
    with open(path, "rb") as raw:
        return hashlib.file_digest(raw, "sha256").hexdigest()
