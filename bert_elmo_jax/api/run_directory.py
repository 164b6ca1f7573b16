"""A run directory: everything a model needs to be used again, and nothing outside it.

`model.json` says what the model is, `tokenizer/` holds the tokenizer's files, `checkpoints/` the parameters, `run.json`
what was asked of the program that wrote it.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bert_elmo_jax.api.model_json import read_config, read_facts
from bert_elmo_jax.data.npy import write_json
from bert_elmo_jax.interop.bert_tree import HEADS, bert_shapes, flatten, part
from bert_elmo_jax.models.bert_config import BertConfig
from bert_elmo_jax.text import Tokenizer, load_tokenizer
from bert_elmo_jax.train.checkpoint import load_params, save_params

CLASSES = ("classify", "tag")  # heads whose width is that of the task


@dataclass(frozen=True)
class RunDirectory:
    """What a run directory holds."""

    config: BertConfig
    params: Mapping[str, Any]
    tokenizer: Tokenizer | None
    step: int
    labels: Sequence[str] | None = None
    problem_type: str | None = None


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
    problem_type: str | None = None,
) -> None:
    """Write a model as a run directory; `run` is what was asked. `model.json` comes last: it says that all is there.

    `labels` and `problem_type` are what transformers' `config.json` says of a classifier, and are kept for it.
    """
    folder = Path(path)
    if is_run_directory(folder):
        raise FileExistsError(f"{folder} already holds a model: write to another folder")
    shapes = {name: np.shape(value) for name, value in flatten(params).items()}
    facts: dict[str, Any] = {
        "family": "bert",
        "config": dataclasses.asdict(config),
        "pooler": any(part(name) == "pooler" for name in shapes),
        "heads": sorted(set(params) - {"encoder"}),
        "classes": {head: shapes[f"{head}/bias"][0] for head in CLASSES if shapes.get(f"{head}/bias")},
        "labels": labels and list(labels),
        "problem_type": problem_type,
        "tokenizer": tokenizer and {"kind": tokenizer.kind, "fingerprint": tokenizer.fingerprint},
    }
    check_shapes(shapes, expected_shapes(config, facts, "the parameters"), "the parameters that were given")
    folder.mkdir(parents=True, exist_ok=True)
    if tokenizer is not None:
        tokenizer.save(folder / "tokenizer")
    save_params(folder, step, params)
    write_json(folder / "run.json", dict(run))
    write_json(folder / "model.json", facts)


def read_run_directory(path: str | Path, *, step: int | None = None) -> RunDirectory:
    """Read a run directory: the newest checkpoint, or that of a step."""
    folder = Path(path)
    file = folder / "model.json"
    facts = read_facts(file)
    config = read_config(facts["config"], str(file))
    tokenizer = load_tokenizer(folder / "tokenizer") if (folder / "tokenizer").is_dir() else None
    written = (facts["tokenizer"] or {}).get("fingerprint")
    if written and (tokenizer is None or tokenizer.fingerprint != written):
        raise ValueError(f"{folder / 'tokenizer'} is not the tokenizer this model was written with; copy it again")
    expected = expected_shapes(config, facts, str(file))
    at, params = load_params(folder, step)
    source = f"{folder}, step {at}"
    check_shapes({name: np.shape(value) for name, value in flatten(params).items()}, expected, source)
    check_finite(params, source)
    return RunDirectory(config, params, tokenizer, at, facts["labels"], facts["problem_type"])


def expected_shapes(config: BertConfig, facts: Mapping[str, Any], source: str) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor of a model with this configuration and these heads."""
    for head in facts["heads"]:
        if head not in HEADS:
            raise ValueError(f"{source}: no head {head!r} is known; there are {', '.join(HEADS)}")
        if head in CLASSES and head not in facts["classes"]:
            raise ValueError(f"{source}: nothing says how many classes the head {head!r} has (classes)")
    present = {"encoder", *facts["heads"], *(["pooler"] if facts["pooler"] else [])}
    return {name: shape for name, shape in bert_shapes(config, facts["classes"]).items() if part(name) in present}


def check_shapes(found: Mapping[str, tuple[int, ...]], expected: Mapping[str, tuple[int, ...]], source: str) -> None:
    """Refuse parameters that are not those of a model, naming every tensor concerned.

    >>> check_shapes({"nsp/bias": (3,)}, {"nsp/bias": (2,), "nsp/kernel": (8, 2)}, "runs/a")
    Traceback (most recent call last):
    ValueError: runs/a: not the parameters of this configuration and its heads:
    missing (1): nsp/kernel
    mis-shaped (1): nsp/bias [3], expected [2]
    """
    problems = {
        "missing": [name for name in expected if name not in found],
        "unknown": [name for name in found if name not in expected],
        "mis-shaped": [
            f"{name} {list(shape)}, expected {list(expected[name])}"
            for name, shape in found.items()
            if name in expected and tuple(shape) != tuple(expected[name])
        ],
    }
    if any(problems.values()):
        listed = "\n".join(f"{kind} ({len(names)}): {', '.join(names)}" for kind, names in problems.items() if names)
        raise ValueError(f"{source}: not the parameters of this configuration and its heads:\n{listed}")


def check_finite(params: Mapping[str, Any], source: str) -> None:
    """Refuse parameters that are not numbers, naming every tensor concerned."""
    wrong = [name for name, value in flatten(params).items() if not np.isfinite(np.asarray(value)).all()]
    if wrong:
        raise ValueError(
            f"{source} holds NaN or infinity in {', '.join(wrong)}; the file is damaged or training diverged"
        )
