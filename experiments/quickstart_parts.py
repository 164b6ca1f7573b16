"""What the quickstart is made of: every part is the command that makes it, and is run as that command would be."""

import json
import runpy
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from bert_elmo_jax.data.toyworld import ToyWorld, question_examples, sense_examples, topic_examples
from experiments.grid import value_of

CONFIGS = Path("experiments") / "configs"
LANGUAGES = ("en", "ko")
SHORT = 30  # words of a passage that questions are asked of
# Of each task: what `finetune` calls it, and its files' ending.
TASKS = {
    "senses": ("--task=tags --text=0 --label=1", "conll"),
    "topics": ("--task=classification --text=text --label=label", "tsv"),
    "questions": ("--task=squad", "json"),
}
NETWORKS = {"senses": "tagger", "topics": "bcn", "questions": "bidaf"}
RESULT = "result.json"
COLUMNS = ("BERT from scratch", "BERT", "network without ELMo", "network with ELMo")


@dataclass(frozen=True)
class Sizes:
    """How much of everything: by itself what a newcomer will wait for."""

    bert: str = ""  # further words of the command that pretrains it
    elmo: str = ""
    head: str = "--config.epochs=4"
    network: str = (
        "--config.epochs=6 --config.lstm_size=50 --config.unknown=unk --config.dropout=0.1 --config.mix_dropout=0.1 "
        "--config.optimizer.learning_rate=5e-3"
    )
    examples: int = 500  # of a task in each language, to train on (of passages half); half as many to be scored on
    seeds: tuple[int, ...] = (0, 1, 2)


@dataclass(frozen=True)
class Part:
    """A run of a program; `task` and `column` say where in the table of transfer it stands."""

    name: str
    program: str
    words: tuple[str, ...]
    task: str = ""
    column: str = ""
    needs: tuple["Part", ...] = ()

    @property
    def identity(self) -> str:
        """What it is known by."""
        return self.name

    @property
    def command(self) -> str:
        """As it is typed; the quickstart itself trains a task's seeds side by side."""
        return f"python -m experiments.{'finetune' if self.task else self.program} {shlex.join(self.words)}"


@dataclass(frozen=True)
class Folder:
    """Where the parts lie: by their names in the quickstart's run directory."""

    workdir: Path

    def run(self, part: Part) -> Path:
        """The run directory of a part."""
        return self.workdir / part.name

    def words(self, part: Part) -> list[str]:
        """What stands behind the program."""
        return [*part.words]

    def command(self, part: Part) -> str:
        """As it is typed."""
        return part.command

    def is_done(self, part: Part) -> bool:
        """Whether a part needs nothing more: the last thing that it writes is there."""
        return (self.run(part) / (RESULT if part.task else "report.html")).is_file()


def parts_of(workdir: Path, sizes: Sizes) -> list[Part]:
    """All parts, in the order in which they need one another.

    >>> parts = parts_of(Path("runs/quickstart"), Sizes())
    >>> len(parts), parts[0].words
    (14, ('--config=experiments/configs/bert_quickstart.py', '--workdir=runs/quickstart/bert'))
    """
    pretrained = [
        Part(name, f"pretrain_{name}", _words(f"{name}_quickstart", more, "", workdir / name))
        for name, more in (("bert", sizes.bert), ("elmo", sizes.elmo))
    ]
    return [*pretrained, *_transfer(workdir, sizes, *pretrained)]


def _transfer(workdir: Path, sizes: Sizes, *pretrained: Part) -> Iterator[Part]:
    bert, elmo = (workdir / part.name for part in pretrained)
    needs = (pretrained[:1], pretrained[:1], (), pretrained[1:])
    starts = (
        f"--tokenizer={bert} --config.preset={bert}",
        f"--init={bert}",
        "",
        f"--config.encoder={elmo}",
    )
    for task, (what, ending) in TASKS.items():
        files = " ".join(f"--{part}={workdir / 'tasks' / task / part}.{ending}" for part in ("train", "dev"))
        for n, (column, start) in enumerate(zip(COLUMNS, starts)):
            config, size = ("finetune_quickstart", sizes.head) if n < 2 else (NETWORKS[task], sizes.network)
            network = n > 1
            name = f"{task}_{('bert_from_scratch', 'bert', 'network', 'network_elmo')[n]}"
            more = f"{what} {files} {start} {size} {'--config.patience=0 --config.eval_every=100000' * network}"
            seeds = f"--seeds={','.join(map(str, sizes.seeds))}"
            words = _words(config, more, seeds, workdir / name)
            yield Part(name, "quickstart_transfer", words, task, column, needs[n])


def _words(config: str, more: str, last: str, workdir: Path) -> tuple[str, ...]:
    return tuple(f"--config={CONFIGS / config}.py {more} {last} --workdir={workdir}".split())


class Given(NamedTuple):
    """What the words of a command say."""

    config: ConfigDict
    workdir: Path
    init: str | None
    tokenizer: str | None
    seeds: list[int]


def read_words(words: Sequence[str]) -> Given:
    """What the words of a part's command say, as its program reads them."""
    given = dict(word.removeprefix("--").split("=", 1) for word in words)
    config: ConfigDict = runpy.run_path(given.pop("config"))["get_config"]()
    workdir, init, tokenizer = Path(given.pop("workdir")), given.pop("init", None), given.pop("tokenizer", None)
    seeds = [int(seed) for seed in given.pop("seeds", "0").split(",")]
    for name, text in given.items():
        name = name.removeprefix("config.")  # the others, such as task and train, are fields too
        config.update_from_flattened_dict({name: value_of(config, name, text)})
    return Given(config, workdir, init, tokenizer, seeds)


def write_tasks(folder: Path, worlds: Sequence[ToyWorld], examples: int) -> None:
    """The tasks' files, so many examples of each language to train on (of passages half), and half as many in `dev`."""
    known: set[str] = set()
    for part, count in (("train", examples), ("dev", max(2, examples // 2))):
        found = [s for world in worlds for s in islice(sense_examples(world, part), count)]
        known |= {tag for s in found for tag in s.tags} if part == "train" else set()
        # A sense that so few sentences happen not to have cannot be learned from them.
        lines = ("".join(f"{w}\t{t}\n" for w, t in zip(s.words, s.tags)) for s in found if known.issuperset(s.tags))
        _write(folder / "senses" / f"{part}.conll", "\n".join(lines))
        topics = ("\t".join(row) for world in worlds for row in islice(topic_examples(world, part), count))
        _write(folder / "topics" / f"{part}.tsv", "\n".join(["text\tlabel", *topics]))
        data = [
            {"title": world.language, "paragraphs": list(islice(_short(question_examples(world, part)), count // 2))}
            for world in worlds
        ]
        text = json.dumps({"version": "1.1", "data": data}, ensure_ascii=False)
        _write(folder / "questions" / f"{part}.json", text)


def _short(paragraphs: Iterator[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Those that are read quickly: their longest decides how long all take."""
    return (paragraph for paragraph in paragraphs if len(paragraph["context"].split()) <= SHORT)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    partial.write_text(f"{text}\n", encoding="utf-8")
    partial.replace(file)
