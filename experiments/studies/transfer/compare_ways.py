"""The study of ways of transfer: fine-tune encoders of the toy world in each way, and follow their layers."""

import copy
import itertools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
from ml_collections import ConfigDict

from bert_elmo_jax import train
from bert_elmo_jax.data.tasks.batches import TaskBatches
from bert_elmo_jax.data.tasks.packed_batches import PackedBatches
from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.families import get_family
from bert_elmo_jax.files import open_atomically, write_text
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.report.results import format_table
from bert_elmo_jax.report.show import show
from bert_elmo_jax.runs.start_run import say
from bert_elmo_jax.runs.task_data import Data, read_data
from bert_elmo_jax.runs.task_scores import figures_of, score_name
from bert_elmo_jax.runs.with_head import prepare_head, start_head
from bert_elmo_jax.runs.with_network import prepare_network, start_network
from bert_elmo_jax.toyworld import ToyWorld, sense_examples

from ..why_attention.studies import Findings
from .drift import Trace, build_step, compare_ways, follow, mean_trace, name_layers

# The ways that are compared, with the fields that they need.
WAYS: dict[str, dict[str, Any]] = {
    "all": {},
    "head_first": {},
    "gradual": {},
    "upper": {"upper_layers": 1},
    "frozen": {},
}
# The same training for all: eight steps per epoch, six epochs for the head alone, a constant rate.
TRAINING: dict[str, Any] = {
    "task": "entities",
    "text": "0",
    "label": "1",
    "batch_size": 16,
    "epochs": 20.0,
    "head_epochs": 6.0,
}
OPTIMIZER: dict[str, Any] = {
    "name": "adamw",
    "schedule": "constant",
    "learning_rate": 2e-3,
    "warmup": 0.0,
    "decay": 0.0,
}
EXAMPLES = {"train": 128, "dev": 256}


def study_transfer(
    models: Mapping[str, str], world: ToyWorld, head: ConfigDict, network: ConfigDict,
    *, seeds: Sequence[int] = (0, 1, 2), steps: int | None = None, ways: Sequence[str] = tuple(WAYS),
    rate: float = OPTIMIZER["learning_rate"], optimizer: str = OPTIMIZER["name"],
) -> Findings:  # fmt: skip
    """Return the comparison of ways of transfer, for models by name, on words of several senses as entities.

    An encoder of pieces gets a `head`, one of words a task `network`: both are configs. `steps` shortens the trainings.
    """
    for way in ways:
        if way not in WAYS:
            hint = did_you_mean(way, WAYS)
            raise ValueError(f"{way!r} is not a way of this study; it has {', '.join(WAYS)}{hint}")
    traces: dict[str, dict[str, Trace]] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = write_senses(Path(folder), world)
        for name, source in models.items():
            heads = get_family(read_model(source).kind).inputs.takes_heads
            for way in ways:
                config = copy.deepcopy(head if heads else network)
                config.update({**TRAINING, **files, "transfer": way, **WAYS[way]})
                config.optimizer.update({**OPTIMIZER, "learning_rate": rate, "name": optimizer})
                if not heads:
                    config.update(encoder=source, tune_encoder=True)
                traces.setdefault(name, {})[way] = trace_way(config, source, seeds, steps)
                say(f"{name}, {way}: scores {', '.join(f'{score:.3f}' for score in traces[name][way].scores)}")
    return compare_ways(traces, "F1")


def write_senses(folder: Path, world: ToyWorld) -> dict[str, str]:
    """Write sentences with words of several senses as entities, and return the paths of the files."""
    for part, count in EXAMPLES.items():
        lines = []
        for sentence in itertools.islice(sense_examples(world, part), count):
            lines += [f"{w}\t{t if t == 'O' else f'B-{t}'}" for w, t in zip(sentence.words, sentence.tags)] + [""]
        write_text(folder / f"{part}.conll", "\n".join(lines) + "\n")
    return {part: str(folder / f"{part}.conll") for part in EXAMPLES}


def trace_way(config: ConfigDict, source: str, seeds: Sequence[int], steps: int | None = None) -> Trace:
    """Fine-tune one model in one way with several seeds; the first seed compiles the step."""
    data = read_data(config)
    start: Any = start_network(config, None, None) if "network" in config else start_head(config, source, None)
    traces, step, method, layers = [], None, None, {}
    for seed in seeds:
        config.seed = seed
        ready = (prepare_network if "network" in config else prepare_head)(config, data, start)
        if step is None:
            layers = name_layers(ready.params, find_depths(source))
            step, method = build_step(ready.loss, ready.method, ready.coefficients, layers)
        state = train.new_state(ready.params, method, jax.random.key(seed))
        with tempfile.TemporaryDirectory() as folder:
            collate, predict = ready.begin(Path(folder))
            batches = TaskBatches(ready.rows, config.batch_size, seed, collate, even=isinstance(collate, PackedBatches))
            trace, state = follow(step, state, itertools.islice(batches, steps or ready.length.steps), layers)
            batches.close()
            traces.append(trace._replace(scores=(score_predictions(data, ready.task, predict(state.params, dict)),)))
    return mean_trace(traces)


def find_depths(source: str) -> Any:
    """Return the function from parameters to layers of a model's family."""
    return get_family(read_model(source).kind).depth_of


def score_predictions(data: Data, task: Any, predictions: Sequence[Any]) -> float:
    """Return the main score on the development data."""
    return float(figures_of(task, data.dev, predictions)[score_name(task)])


def write_study(findings: Findings, folder: str | Path) -> Path:
    """Print the tables, and write all figures into one file, a line for each model; return its path."""
    for title, cells in findings.tables.items():
        print(f"{title}\n\n{format_table(cells)}\n")
    path = Path(folder) / "transfer_drift.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_atomically(path, encoding="utf-8") as file:
        file.write(show(*findings.figures.values()).document + "\n")
    return path
