"""Fingerprints of the data of a run, which its results and its report show."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.files import read_json
from bert_elmo_jax.report.language import Translate, english
from bert_elmo_jax.report.page import draw_table

DATA = "data.json"  # in the run directory of a pretraining


def describe_corpora(corpora: Mapping[str, float]) -> dict[str, dict[str, Any]]:
    """Return for each corpus its weight, its training text's size, and a fingerprint of shards and tokenizer.

    The manifest of a corpus has the hashes of all its files, so no file is read again.
    """
    described = {}
    for folder, weight in corpora.items():
        manifest = open_store(folder).manifest
        content = json.dumps([manifest["shards"], manifest["tokenizer"]["fingerprint"]], sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()
        described[folder] = {"fingerprint": digest, "weight": weight, **manifest["counts"]["train"]}
    return described


def check_same_corpora(workdir: Path, corpora: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise if a run was started with other corpora; their folders may have moved.

    Checkpoints refuse other batches, but a run that was stopped before its first one has none.
    """
    started = read_json(workdir / DATA, default={})
    then, now = ([(row["fingerprint"], row["weight"]) for row in rows.values()] for rows in (started, corpora))
    if started and then != now:
        raise ValueError(
            f"{workdir} was started with other data, {', '.join(started)} then, {', '.join(corpora)} now: use the same "
            "data, or choose another run directory"
        )


def describe_files(files: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return path and fingerprint of each part of a task's data that is a file, or several.

    >>> describe_files({"train": "LICENSE", "dev": "0.1", "test": ""})["train"]["fingerprint"][:8]
    'cfc7749b'
    """
    from bert_elmo_jax.data.tasks.files import hash_files, list_files  # pretraining does not import tasks

    return {
        part: {"file": file, "fingerprint": hash_files(file)}
        for part, file in files.items()
        if file and all(Path(name).exists() for name in list_files(file))
    }


def draw_data(parts: Mapping[str, Mapping[str, Any]], translate: Translate = english) -> tuple[str, str]:
    """Return a section of the report, title and HTML: a row for each corpus."""
    names = list(dict.fromkeys(name for row in parts.values() for name in row))
    rows = [[key, *(_show_fact(name, row.get(name, "")) for name in names)] for key, row in parts.items()]
    return translate("Data"), draw_table(["", *map(translate, names)], rows, stacked=True)


def _show_fact(name: str, value: Any) -> str:
    """Return a fact of a table: a count with separators, or the first twelve characters of a fingerprint."""
    if name == "fingerprint":
        return str(value)[:12]
    return f"{value:,}" if isinstance(value, int) else str(value)
