"""The runs of the quickstart: a pretrained BERT and ELMo, and three tasks with and without them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from bert_elmo_jax.files import write_text
from bert_elmo_jax.quickstart.compare_seeds import compare_seeds
from bert_elmo_jax.runs.pretraining import pretrain
from bert_elmo_jax.runs.start_run import Call
from bert_elmo_jax.sweeps.folders import Folders
from bert_elmo_jax.sweeps.points import File, Point
from bert_elmo_jax.toyworld import ToyWorld, question_examples, sense_examples, topic_examples

COLUMNS = ("BERT from scratch", "BERT", "network without ELMo", "network with ELMo")
# Each task's flags for `finetune`, the ending of its files, and the config of its network.
TASKS: Mapping[str, tuple[dict[str, str], str, str]] = {
    "senses": ({"task": "tags", "text": "0", "label": "1"}, "conll", "tagger"),
    "topics": ({"task": "classification", "text": "text", "label": "label"}, "tsv", "bcn"),
    "questions": ({"task": "squad"}, "json", "bidaf"),
}
SHORT = 30  # words of the longest passage: the longest one decides how long all take


@dataclass(frozen=True)
class Sizes:
    """The size of every part, as overrides of the configs; the default takes minutes."""

    bert: Mapping[str, Any] = field(default_factory=dict)
    elmo: Mapping[str, Any] = field(default_factory=dict)
    head: Mapping[str, Any] = field(default_factory=lambda: {"epochs": 4})
    network: Mapping[str, Any] = field(default_factory=lambda: {
        "epochs": 6, "lstm_size": 50, "unknown": "unk", "dropout": 0.1, "mix_dropout": 0.1,
        "optimizer.learning_rate": 5e-3,
    })  # fmt: skip
    examples: int = 500  # for training, per task and language; half as many passages, and half as many for evaluation
    seeds: tuple[int, ...] = (0, 1, 2)


@dataclass(frozen=True)
class Part:
    """A run, the seconds it usually takes on one core, and its place in the table of transfer."""

    point: Point
    seconds: int
    task: str = ""
    column: str = ""


CALLS: Mapping[str, Call] = {"pretrain": pretrain, "finetune": compare_seeds}


@dataclass(frozen=True)
class QuickstartFolders(Folders):
    """The folders of the quickstart, named like their runs; a task's seeds train side by side."""

    calls: Mapping[str, Call] = field(default_factory=lambda: CALLS)

    def run(self, point: Point) -> Path:
        """Return the run directory of a part."""
        return self.workdir / point.name

    def cache(self, point: Point) -> Path | None:
        """Return None: each part computes the vectors of its texts itself."""
        return None


def list_parts(sizes: Sizes) -> list[Part]:
    """Return all parts, needs first."""
    bert = Point("bert", "pretrain", "bert:quickstart", sizes.bert)
    elmo = Point("elmo", "pretrain", "elmo:quickstart", sizes.elmo)
    parts = [Part(bert, 80), Part(elmo, 86)]
    seeds = [str(seed) for seed in sizes.seeds]
    fixed = {**sizes.network, "patience": 0, "eval_every": 100_000}
    for task, (flags, ending, network) in TASKS.items():
        files = {part: File(f"{task}/{part}.{ending}", made=True) for part in ("train", "dev")}
        head = "finetune:quickstart"
        rows: list[tuple[str, str, dict[str, Point], Mapping[str, Any], int]] = [
            ("bert_from_scratch", head, {"tokenizer": bert, "preset": bert}, sizes.head, 15),
            ("bert", head, {"init": bert}, sizes.head, 15),
            ("network", network, {}, fixed, 33),
            ("network_elmo", network, {"encoder": elmo}, fixed, 48),
        ]
        for column, (name, config, begin, size, seconds) in zip(COLUMNS, rows):
            settings = {**flags, **files, **begin, **size, "seeds": seeds}
            parts.append(Part(Point(f"{task}_{name}", "finetune", config, settings), seconds, task, column))
    return parts


def write_tasks(folder: Path, worlds: Sequence[ToyWorld], examples: int) -> None:
    """Write `examples` training examples per task and language (half as many passages), and half as many for dev."""
    known: set[str] = set()
    for part, count in (("train", examples), ("dev", max(2, examples // 2))):
        found = [s for world in worlds for s in islice(sense_examples(world, part), count)]
        known |= {tag for s in found for tag in s.tags} if part == "train" else set()
        # A sense that does not occur in so few training sentences cannot be learned.
        lines = ("".join(f"{w}\t{t}\n" for w, t in zip(s.words, s.tags)) for s in found if known.issuperset(s.tags))
        write_text(folder / "senses" / f"{part}.conll", "\n".join(lines) + "\n")
        topics = ("\t".join(row) for world in worlds for row in islice(topic_examples(world, part), count))
        write_text(folder / "topics" / f"{part}.tsv", "\n".join(["text\tlabel", *topics]) + "\n")
        data = []
        for world in worlds:
            short = (one for one in question_examples(world, part) if len(one["context"].split()) <= SHORT)
            data.append({"title": world.language, "paragraphs": list(islice(short, count // 2))})
        text = json.dumps({"version": "1.1", "data": data}, ensure_ascii=False)
        write_text(folder / "questions" / f"{part}.json", f"{text}\n")
