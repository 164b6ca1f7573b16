"""The teacher of a pretraining run: read from `config.teacher`, checked, and recorded in the run directory.

A run directory does not hold its teacher, which may be large: it holds the fingerprint, in `teacher.json`. A resumed
run reads the teacher again, from its old place or a new one, and refuses another teacher.
"""

from pathlib import Path
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from bert_elmo_jax.encoders.encoder import fingerprint
from bert_elmo_jax.families import Family, get_family
from bert_elmo_jax.families.distillation import TERMS, Teacher, adopt_layers, choose_layers, count_layers, distil
from bert_elmo_jax.families.family import Objective
from bert_elmo_jax.files import read_json, write_json
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.runs.start_run import say

FILE = "teacher.json"


class Read(NamedTuple):
    """A teacher, its fingerprint, and the fingerprint of its tokenizer."""

    teacher: Teacher
    fingerprint: str
    tokenizer: str


def has_teacher(config: ConfigDict) -> bool:
    """Return True for a recipe with a field `teacher`; raise ValueError if the field is empty."""
    if "teacher" not in config:
        return False
    if not config.teacher:
        raise ValueError(
            "--config.teacher=… is needed: a pretrained model with a head for masked pieces, anything that `load` "
            "understands"
        )
    return True


def read_teacher(path: str) -> Read:
    """Read the teacher of a run; raise ValueError if it is not a model with a tokenizer of pieces."""
    try:
        stored = read_model(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"config.teacher: {error}") from error
    if stored.network:
        raise ValueError(f"config.teacher={path} is a task network: use a pretrained model")
    family = get_family(stored.kind)
    if stored.tokenizer is None and family.inputs.takes_heads:
        raise ValueError(f"config.teacher={path} has no tokenizer: copy its vocabulary into its folder")
    tokenizer = stored.tokenizer.fingerprint if stored.tokenizer else ""
    teacher = Teacher(family, stored.config, stored.params, str(path))
    return Read(teacher, fingerprint(stored.config, stored.params, tokenizer), tokenizer)


def add_teacher(objective: Objective, config: ConfigDict, family: Family, model: Any, read: Read) -> Objective:
    """Return the objective with the terms of a config's teacher; a coefficient of 0 leaves its term out."""
    coefficients = config.get("coefficients") or {}
    terms = tuple(name for name in TERMS if coefficients.get(name, 1.0))
    return distil(
        objective, family, model, read.teacher, temperature=config.temperature, terms=terms,
        init_from_teacher=config.init_from_teacher,
    )  # fmt: skip


def start_teacher(config: ConfigDict, workdir: Path, init: str | None, tokenizer: Any) -> Read | None:
    """Return the checked teacher of a run, or None for a recipe without one."""
    if not has_teacher(config):
        return None
    if init is not None and config.init_from_teacher:
        raise ValueError(
            f"--init={init} and config.init_from_teacher=True both choose the first parameters: add "
            "--config.init_from_teacher=False"
        )
    read = read_teacher(config.teacher)
    source = read.teacher.source
    if read.tokenizer != tokenizer.fingerprint:
        raise ValueError(
            f"the data was not prepared with the tokenizer of config.teacher={source}, which a student shares: prepare "
            f"it again with --tokenizer={source}"
        )
    recorded = read_json(Path(workdir) / FILE, default={})
    if recorded and recorded.get("fingerprint") != read.fingerprint:
        raise ValueError(
            f"{workdir} began with the teacher {recorded.get('teacher')} ({recorded.get('fingerprint')}), and "
            f"config.teacher={source} is another model ({read.fingerprint}): give the first one. If it was still "
            "training then, name its checkpoint, as in runs/bert/checkpoints/2000"
        )
    return read


def record_teacher(workdir: Path, read: Read, params: Any, adopted: bool) -> None:
    """Write the teacher's fingerprint into a new run directory, and say which `params` were `adopted` from it."""
    file = Path(workdir) / FILE
    if file.is_file():
        return
    write_json(file, {"teacher": str(read.teacher.source), "fingerprint": read.fingerprint})
    if adopted:
        layers = choose_layers(count_layers(read.teacher.params), count_layers(params))
        _, fresh = adopt_layers(params, read.teacher.params)
        new = f"new, and untrained at the start: {', '.join(fresh) or 'nothing'}"
        say(f"initialised from the teacher's layers {', '.join(map(str, layers))}; {new}")
