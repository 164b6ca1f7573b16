"""The runs of a grid: every combination of some fields' values with every seed, and the best on dev kept."""

import copy
import itertools
import shutil
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from bert_elmo_jax.files import read_json, write_json
from bert_elmo_jax.inference.run_directory import is_run_directory, read_run_directory, write_run_directory
from bert_elmo_jax.runs.config_files import parse_values
from bert_elmo_jax.runs.start_run import say

RESULT = "result.json"  # in the directory of a finished run; written last
Setting = dict[str, Any]


def list_settings(config: ConfigDict, grid: str | None, seeds: Sequence[str] | None) -> list[Setting]:
    """Return the values of each run's fields; [] without a grid and seeds."""
    given = {name: texts for name, _, texts in (part.partition("=") for part in (grid or "").split())}
    if seeds and "seed" in given:
        raise ValueError("--grid names seed, and --seeds was given: use one of both")
    fields: dict[str, list[Any]] = {}
    try:
        for name, texts in (given | ({"seed": ",".join(seeds)} if seeds else {})).items():
            fields[name] = parse_values(config, name, texts)
    except ValueError as error:
        raise ValueError(f"--{'seeds' if seeds and name == 'seed' else 'grid'}: {error}") from None
    for name, values in fields.items():
        if len(set(values)) < len(values):
            raise ValueError(f"{name} has a value twice: {', '.join(map(str, values))}")
    return [dict(zip(fields, values)) for values in itertools.product(*fields.values())] if fields else []


def name_folder(workdir: Path, setting: Setting) -> Path:
    """Return the directory of a setting's run."""
    return workdir / "runs" / ",".join(f"{name}={value}" for name, value in setting.items())


def apply_setting(config: ConfigDict, setting: Setting, workdir: Path) -> ConfigDict:
    """Return a copy of a config with a setting; all runs with the same encoder share its cached vectors."""
    own = copy.deepcopy(config)
    if "cache" in own and not own.cache and own.encoder and "encoder" not in setting:
        own.cache = str(workdir / "vectors")
    own.update_from_flattened_dict(setting)
    return own


def read_result(run: Path) -> dict[str, Any] | None:
    """Return the scores of a finished run, or None."""
    return read_json(run / RESULT) if (run / RESULT).is_file() else None


def find_best(folders: Sequence[Path]) -> Path:
    """Return the first of the finished runs with the highest score on dev."""

    def score(result: Mapping[str, Any]) -> float:
        value = result["dev"][result["score"]]
        return float("-inf") if value is None or value != value else value

    done = {folder: result for folder in folders if (result := read_result(folder)) is not None}
    return max(done, key=lambda folder: score(done[folder]))


def drop_worse(folders: Sequence[Path]) -> None:
    """Delete the parameters of all finished runs except the best."""
    best = find_best(folders)
    for folder in folders:
        if folder != best and read_result(folder) is not None:
            for part in ("checkpoints", "encoder"):
                shutil.rmtree(folder / part, ignore_errors=True)


def finish_grid(workdir: Path, settings: Sequence[Setting], folders: Sequence[Path], asked: Mapping[str, Any]) -> None:
    """Write `grid.json`, report the mean and deviation of each setting's seeds, and copy the best model."""
    best = find_best(folders)
    results = [{**setting, **(read_result(folder) or {})} for setting, folder in zip(settings, folders)]
    write_json(workdir / "grid.json", {"runs": results, "best": best.name})
    groups: dict[str, list[dict[str, Any]]] = {}
    for setting, result in zip(settings, results):
        name = " ".join(f"{key}={value}" for key, value in setting.items() if key != "seed")
        groups.setdefault(name or "all seeds", []).append(result)
    for name, members in groups.items():
        for part in ("dev", "test"):
            values = [member[part][member["score"]] for member in members if part in member]
            if values:
                deviation = f" ± {statistics.stdev(values):.4f} ({len(values)} seeds)" if len(values) > 1 else ""
                say(f"{name}: {part} {members[0]['score']} {statistics.mean(values):.4f}{deviation}")
    say(f"{workdir / 'grid.json'}: all figures, also in each run's {RESULT}")
    if not is_run_directory(workdir):
        shutil.copyfile(best / "report.html", workdir / "report.html")
        if (best / "encoder").is_dir():
            shutil.copytree(best / "encoder", workdir / "encoder", dirs_exist_ok=True)
        model = read_run_directory(best)
        write_run_directory(
            workdir, model.config, model.params, model.tokenizer, run=asked, step=model.step, task=model.task,
            features=model.features, encoder=model.encoder,
        )  # fmt: skip
    say(f"{workdir} has the model of {best.name}, the best on dev")
