"""Run directories, all files of a model: `model.json`, `tokenizer/`, `checkpoints/`, `run.json` (how it was made)."""

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_elmo_jax.families import REGISTRY
from bert_elmo_jax.families.pieces import read_features
from bert_elmo_jax.files import check_link, check_links, hash_file, read_json, write_json, write_sums, write_text
from bert_elmo_jax.heads.features import Features
from bert_elmo_jax.heads.sentence_head import SentenceHead
from bert_elmo_jax.inference.model_kinds import Reads, find_kind, get_kind, read_config, read_facts
from bert_elmo_jax.json_values import Fields, Kind, object_of
from bert_elmo_jax.lazy_imports import lazy_function
from bert_elmo_jax.nn.int8_kernels import check_scales, drop_scales
from bert_elmo_jax.text import WordVocabulary
from bert_elmo_jax.weights.parameter_tree import Report, check_depth, check_shapes, count_layers, flatten

if TYPE_CHECKING:
    from bert_elmo_jax.data.tasks.task import Task
else:
    Task = Any  # imported only for models that were fine-tuned

task_from_json = lazy_function("bert_elmo_jax.data.tasks.task", "task_from_json")
task_to_json = lazy_function("bert_elmo_jax.data.tasks.task", "task_to_json")
load_params = lazy_function("bert_elmo_jax.train.checkpoint", "load_params")
read_adapted = lazy_function("bert_elmo_jax.inference.adapter_files", "read_adapted")
load_average = lazy_function("bert_elmo_jax.train.averaged", "load_average")
save_params = lazy_function("bert_elmo_jax.train.checkpoint", "save_params")
saved_steps = lazy_function("bert_elmo_jax.train.checkpoint", "saved_steps")


ANY_NUMBER = Kind("a number", lambda value: type(value) in (int, float))  # infinity is a figure, too
RECORD: Fields = {"score": ANY_NUMBER, "figures": object_of(ANY_NUMBER)}  # of a checkpoint's facts.json


@dataclass(frozen=True)
class StoredModel:
    """A model that was read from a run directory or from another format."""

    kind: str  # the name of its family or task network
    config: Any
    params: Mapping[str, Any]
    tokenizer: Reads | None
    report: Report
    labels: Sequence[str] | None = None
    problem_type: str | None = None
    task: Task | None = None
    features: Features | None = None
    encoder: Mapping[str, Any] | None = None
    step: int = 0
    sentences: SentenceHead | None = None  # how texts become vectors, if the model says it
    pooling_unread: str = ""  # why that could not be read from the files of a sentence model
    average_with: tuple[str, ...] = ()  # folders of models whose probabilities are averaged with this one's

    @property
    def task_fields(self) -> dict[str, Any]:
        """The fields of the files around the weights that describe the task of a released model."""
        return {**self.report.extras, "labels": self.labels, "problem_type": self.problem_type}

    @property
    def network(self) -> bool:
        """True for a task network, False for the encoder of a family."""
        return self.kind not in REGISTRY


def is_run_directory(path: str | Path) -> bool:
    """Return True for a folder with a `model.json`."""
    return (Path(path) / "model.json").is_file()


def write_run_directory(
    path: str | Path,
    config: Any,
    params: Mapping[str, Any],
    tokenizer: Reads | None,
    *,
    run: Mapping[str, Any],
    step: int = 0,
    **fields: Any,
) -> None:
    """Write a model as a run directory; `run` are the options that made it, `known` is passed to `describe`."""
    folder = Path(path)
    if is_run_directory(folder):
        raise FileExistsError(f"{folder} already holds a model: write to another folder")
    description = describe(config, params, tokenizer, **fields)
    checkpoints = folder / "checkpoints"
    stored = [path.name for path in checkpoints.iterdir()] if checkpoints.exists() else []
    was_killed = read_json(folder / "run.json", default={}) == dict(run)
    if stored and not (was_killed and all(name.partition(".")[0] == str(step) for name in stored)):
        raise FileExistsError(f"{checkpoints} exists, and load would read it: write to another folder")
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "run.json", dict(run))  # first, as the mark of a call that may be killed
    shutil.rmtree(checkpoints, ignore_errors=True)
    save_params(folder, step, params)
    write_description(folder, description, tokenizer)


def describe_run(
    path: str | Path, config: Any, params: Mapping[str, Any], tokenizer: Reads | None, **fields: Any
) -> None:
    """Write the description of a training run, unless it exists; the first checkpoint then makes it a model to load."""
    folder = Path(path)
    if not is_run_directory(folder):
        write_description(folder, describe(config, params, tokenizer, **fields), tokenizer)


def describe(
    config: Any,
    params: Mapping[str, Any],
    tokenizer: Reads | None,
    *,
    labels: Sequence[str] | None = None,
    problem_type: str | None = None,
    task: Task | None = None,
    features: Features | None = None,
    encoder: Mapping[str, Any] | None = None,
    sentences: SentenceHead | None = None,
    average_with: Sequence[str] = (),
    lora: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the content of `model.json`; raise on parameters that do not fit the configuration.

    `labels` and `problem_type` of a classifier are kept for transformers' `config.json`. A fine-tuned model has its
    `task`, and the `features` that its head reads, if any. A task network has the description of its `encoder`
    (`describe_encoder`), and a sentence model its head (`sentences`). `average_with` are folders below the model's,
    with models whose probabilities are averaged with its own. `lora` says how adapters, which the checkpoints hold, are
    added to the encoder in `base/`; `params` are all parameters.
    """
    family = find_kind(config)
    if task is not None:
        labels = task.labels or labels if "labels" in family.fields else None
        problem_type = _problem_type(task) or problem_type if "problem_type" in family.fields else None
    classes = {"labels": labels and list(labels), "problem_type": problem_type}
    foreign = [
        f"{field}={value!r}" for field, value in classes.items() if value is not None and field not in family.fields
    ]
    if foreign:
        raise ValueError(f"{', '.join(foreign)} was given, but {family.called} has no classifier: leave it out")
    shapes = drop_scales({path: np.shape(value) for path, value in flatten(params).items()}, "the parameters")
    fields: dict[str, Any] = {
        "family": family.name,
        "config": dataclasses.asdict(config),
        "heads": sorted(set(params) - {"encoder"}),
        **family.describe(shapes),
        **{field: value for field, value in classes.items() if field in family.fields},
        **({} if task is None else {"task": task_to_json(task)}),
        **({"encoder": None if encoder is None else dict(encoder)} if "encoder" in family.fields else {}),
        **({} if features is None else {"features": dataclasses.asdict(features)}),
        **({} if sentences is None else {"sentences": _sentence_files().head_to_json(sentences)}),
        **({"average_with": list(average_with)} if average_with else {}),
        **({} if lora is None else {"lora": dict(lora)}),
        "tokenizer": None,
    }
    if tokenizer is not None:
        kind = "words" if isinstance(tokenizer, WordVocabulary) else tokenizer.kind
        fields["tokenizer"] = {"kind": kind, "fingerprint": tokenizer.fingerprint}
    check_shapes(shapes, family.shapes(config, fields, "the parameters"), "the parameters that were given")
    return fields


def _problem_type(task: Task) -> str | None:
    """Return the `problem_type` of a task in transformers."""
    if task.kind == "regression" and not task.activation:
        return "regression"
    if task.kind != "classification" or len(task.labels) < 2:  # one label is a reranker's
        return None
    return "multi_label_classification" if task.multi_label else "single_label_classification"


def write_description(folder: Path, description: Mapping[str, Any], tokenizer: Reads | None) -> None:
    """Write the tokenizer, the hashes of it and of `model.json`, and then `model.json`."""
    if tokenizer is not None:
        tokenizer.save(folder / "tokenizer")
    text = json.dumps(dict(description), indent=1, ensure_ascii=False) + "\n"
    files = sorted((folder / "tokenizer").glob("*")) if tokenizer is not None else []
    hashes = {f"tokenizer/{file.name}": hash_file(file) for file in files if file.is_file()}
    write_sums(folder, hashes | {"model.json": hashlib.sha256(text.encode()).hexdigest()})
    write_text(folder / "model.json", text)


def read_run_directory(path: str | Path, *, step: int | None = None) -> StoredModel:
    """Read a run directory: the checkpoint of a step, or else the best on a task's dev data, or else the newest.

    A run that averaged its last checkpoints gives their mean instead of the newest.
    """
    folder = Path(path)
    file = folder / "model.json"
    check_link(file, folder)
    for part in ("tokenizer", "checkpoints"):
        if (folder / part).is_dir():
            check_links(folder / part, depth=None)
    fields = read_facts(file)
    family = get_kind(fields["family"])
    config = read_config(fields["config"], fields["family"], str(file))
    tokenizer = family.find_tokenizer(folder / "tokenizer", config, None)
    written = (fields["tokenizer"] or {}).get("fingerprint")
    if written and (tokenizer is None or tokenizer.fingerprint != written):
        raise ValueError(f"{folder / 'tokenizer'} is another tokenizer than this model was written with; copy it again")
    task = task_from_json(fields["task"], str(file)) if "task" in fields else None
    if task is not None and step is None:
        step = best_step(folder)
    averaged = load_average(folder) if step is None else None
    if averaged is None:
        at, params = load_params(folder, step)
        source = f"{folder}, step {at}"
    else:
        at, params = averaged[0][-1], averaged[1]
        source = f"{folder}, the mean of steps {', '.join(map(str, averaged[0]))}"
    if "lora" in fields:
        params = read_adapted(folder, fields["lora"], params)
    shapes = drop_scales({name: np.shape(value) for name, value in flatten(params).items()}, source)
    check_depth(count_layers(config), shapes, source)  # before shapes are made for every layer
    check_shapes(shapes, family.shapes(config, fields, str(file)), source)
    check_finite(params, source)
    check_scales(flatten(params), source)
    if task is not None and (tuned := read_figures(folder, at).get("dev/null_threshold")) is not None:
        task = dataclasses.replace(task, null_threshold=tuned)
    features = read_features(fields.get("features"), str(file))
    report = Report(source, mapped={name: name for name in flatten(params)})
    sentences = _sentence_files().head_from_json(fields["sentences"], str(file)) if "sentences" in fields else None
    return StoredModel(
        family.name, config, params, tokenizer, report, fields.get("labels"), fields.get("problem_type"), task,
        features, fields.get("encoder"), at, sentences, average_with=tuple(fields.get("average_with", ())),
    )  # fmt: skip


def describe_encoder(encoder: Any) -> dict[str, Any]:
    """Return the description of a network's encoder for `model.json`: family, configuration and fingerprint."""
    config = dataclasses.asdict(encoder.config)
    return {"family": find_kind(encoder.config).name, "config": config, "fingerprint": encoder.fingerprint}


def best_step(path: str | Path) -> int | None:
    """Return the step of the checkpoint with the best score; None without scores."""
    scores = {step: score for step in saved_steps(path) if (score := _read_facts(path, step).get("score")) is not None}
    return max(scores, key=lambda step: (scores[step], step)) if scores else None


def read_figures(path: str | Path, step: int) -> dict[str, float]:
    """Return the held-out figures of a checkpoint."""
    return _read_facts(path, step).get("figures") or {}


def _read_facts(path: str | Path, step: int) -> dict[str, Any]:
    return read_json(Path(path) / "checkpoints" / str(step) / "facts.json", default={}, fields=RECORD)


def check_finite(params: Mapping[str, Any], source: str) -> None:
    """Raise on NaN or infinity, and name every tensor with them."""
    wrong = [name for name, value in flatten(params).items() if not np.isfinite(np.asarray(value)).all()]
    if wrong:
        raise ValueError(
            f"{source} holds NaN or infinity in {', '.join(wrong)}; the file is damaged or training diverged"
        )


def _sentence_files() -> Any:
    from bert_elmo_jax.families import sentence_files  # loading another model does not import it

    return sentence_files
