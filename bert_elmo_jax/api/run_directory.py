"""A run directory: everything a model needs to be used again, and nothing outside it.

`model.json` says what the model is, `tokenizer/` holds the tokenizer's files, `checkpoints/` the parameters, `run.json`
what was asked of the program that wrote it.
"""

import dataclasses
import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bert_elmo_jax.data.npy import write_json
from bert_elmo_jax.models.bert_config import BertConfig
from bert_elmo_jax.text import Tokenizer, load_tokenizer
from bert_elmo_jax.train.checkpoint import load_params, save_params

FAMILIES = ("bert",)


@dataclass(frozen=True)
class RunDirectory:
    """What a run directory holds."""

    config: BertConfig
    params: Mapping[str, Any]
    tokenizer: Tokenizer | None
    step: int
    labels: Sequence[str] | None = None


def is_run_directory(path: str | Path) -> bool:
    """Whether a folder is one of ours.

    >>> is_run_directory("tests/goldens/bert_tiny")
    False
    """
    return (Path(path) / "model.json").is_file()


def write_run_directory(
    path: str | Path,
    config: BertConfig,
    params: Mapping[str, Any],
    tokenizer: Tokenizer | None,
    *,
    run: Mapping[str, Any],
    step: int = 0,
    labels: Sequence[str] | None = None,
) -> None:
    """Write a model as a run directory; `run` is what was asked. `model.json` comes last: it says that all is there."""
    folder = Path(path)
    if is_run_directory(folder):
        raise FileExistsError(f"{folder} already holds a model: write to another folder")
    folder.mkdir(parents=True, exist_ok=True)
    if tokenizer is not None:
        tokenizer.save(folder / "tokenizer")
    save_params(folder, step, params)
    write_json(folder / "run.json", dict(run))
    heads = sorted(set(params) - {"encoder"})
    facts = {"family": "bert", "config": dataclasses.asdict(config), "heads": heads, "labels": labels}
    if tokenizer is not None:
        facts["tokenizer"] = {"kind": tokenizer.kind, "fingerprint": tokenizer.fingerprint}
    write_json(folder / "model.json", facts)


def read_run_directory(path: str | Path, *, step: int | None = None) -> RunDirectory:
    """Read a run directory: the newest checkpoint, or that of a step."""
    folder = Path(path)
    file = folder / "model.json"
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
        family, fields = facts["family"], facts["config"]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{file} does not describe a model ({error!r}); copy it again from the run") from error
    if family not in FAMILIES:
        raise ValueError(f"{file}: family {family!r} is not known to this version; it knows {', '.join(FAMILIES)}")
    known = [field.name for field in dataclasses.fields(BertConfig)]
    for name in fields:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise ValueError(
                f"{file}: no field {name!r} in a BERT's config{f'; did you mean {near[0]}' if near else ''}"
            )
    config = BertConfig(**fields)
    tokenizer = load_tokenizer(folder / "tokenizer") if (folder / "tokenizer").is_dir() else None
    written = facts.get("tokenizer", {}).get("fingerprint")
    if written and (tokenizer is None or tokenizer.fingerprint != written):
        raise ValueError(f"{folder / 'tokenizer'} is not the tokenizer this model was written with; copy it again")
    at, params = load_params(folder, step)
    check_finite(params, str(folder))
    return RunDirectory(config, params, tokenizer, at, facts.get("labels"))


def check_finite(params: Mapping[str, Any], source: str) -> None:
    """Refuse parameters that are not numbers, naming every tensor concerned."""
    wrong = [name for name, value in flat(params) if not np.isfinite(np.asarray(value)).all()]
    if wrong:
        raise ValueError(
            f"{source} holds NaN or infinity in {', '.join(wrong)}; the file is damaged or training diverged"
        )


def flat(params: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """The tensors of a tree with their paths.

    >>> flat({"nsp": {"bias": 1, "kernel": 2}})
    [('nsp/bias', 1), ('nsp/kernel', 2)]
    """
    found = []
    for name, value in params.items():
        path = f"{prefix}{name}"
        found += flat(value, f"{path}/") if isinstance(value, Mapping) else [(path, value)]
    return found
