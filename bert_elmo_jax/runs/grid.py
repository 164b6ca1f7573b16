"""Many fine-tuning runs: every combination of some fields' values with every seed, and the best on dev kept."""

import copy
import itertools
import shutil
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from bert_elmo_jax import train
from bert_elmo_jax.files import write_json
from bert_elmo_jax.inference.run_directory import is_run_directory, read_run_directory, write_run_directory
from bert_elmo_jax.runs.config_files import parse_values
from bert_elmo_jax.runs.finetuning import FREE, RESULT, result_of, run
from bert_elmo_jax.runs.starting_weights import say
from bert_elmo_jax.runs.task_data import Data
from bert_elmo_jax.runs.transfer import Start
from bert_elmo_jax.runs.with_network import NetworkStart

Setting = dict[str, Any]


def settings_of(config: ConfigDict, grid: str | None, seeds: Sequence[str] | None) -> list[Setting]:
    """Return the values of each run's fields; [] without a grid and seeds.

    >>> settings_of(ConfigDict({"epochs": 3.0, "seed": 0}), "epochs=2,3", ["0", "1"])[1]
    {'epochs': 2.0, 'seed': 1}
    """
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


def run_grid(
    config: ConfigDict,
    workdir: Path,
    data: Data,
    start: Start | NetworkStart,
    asked: Mapping[str, Any],
    settings: Sequence[Setting],
) -> int | None:
    """Run all settings that are not done; the signal that stopped it, if one did."""
    train.same_run(workdir, asked, FREE)
    folders = [
        workdir / "runs" / ",".join(f"{name}={value}" for name, value in setting.items()) for setting in settings
    ]
    for number, (setting, folder) in enumerate(zip(settings, folders), start=1):
        if result_of(folder) is not None:
            continue
        say(f"run {number} of {len(settings)}: {folder.name}")
        own = copy.deepcopy(config)
        if "cache" in own and not own.cache and own.encoder and "encoder" not in setting:
            own.cache = str(workdir / "vectors")  # one for all runs
        for name, value in setting.items():
            own.update_from_flattened_dict({name: value})
        folder.mkdir(parents=True, exist_ok=True)
        stopped = run(own, folder, data, start, {**asked, **own.to_dict()})
        if stopped:
            return stopped
        _keep_the_best(folders)
    _summary(workdir, settings, folders)
    best = _best(folders)
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
    return None


def _score(folder: Path) -> float:
    result = result_of(folder)
    assert result is not None
    value = result["dev"][result["score"]]
    return float("-inf") if value is None or value != value else value


def _best(folders: Sequence[Path]) -> Path:
    done = [folder for folder in folders if result_of(folder) is not None]
    return max(done, key=_score)  # the first of equals


def _keep_the_best(folders: Sequence[Path]) -> None:
    """The parameters of a run that is not the best are only in the way."""
    best = _best(folders)
    for folder in folders:
        if folder != best and result_of(folder) is not None:
            for part in ("checkpoints", "encoder"):
                shutil.rmtree(folder / part, ignore_errors=True)


def _summary(workdir: Path, settings: Sequence[Setting], folders: Sequence[Path]) -> None:
    """`grid.json`, and a line for each setting: the mean over its seeds, and how far they lie apart."""
    results = [{**setting, **(result_of(folder) or {})} for setting, folder in zip(settings, folders)]
    write_json(workdir / "grid.json", {"runs": results, "best": _best(folders).name})
    groups: dict[str, list[dict[str, Any]]] = {}
    for setting, result in zip(settings, results):
        name = " ".join(f"{key}={value}" for key, value in setting.items() if key != "seed")
        groups.setdefault(name or "all seeds", []).append(result)
    for name, members in groups.items():
        for part in ("dev", "test"):
            values = [member[part][member["score"]] for member in members if part in member]
            if values:
                apart = f" ± {statistics.stdev(values):.4f} ({len(values)} seeds)" if len(values) > 1 else ""
                say(f"{name}: {part} {members[0]['score']} {statistics.mean(values):.4f}{apart}")
    say(f"{workdir / 'grid.json'}: all figures, also in each run's {RESULT}")
