"""What the quickstart is made of: every part is the command that makes it, and is run as that command would be."""

import runpy
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ml_collections import ConfigDict

from bert_elmo_jax.runs.grid import value_of

CONFIGS = Path("experiments") / "configs"
LANGUAGES = ("en", "ko")
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

    def claim(self, part: Part) -> Path:
        """The run directory, made where it is missing."""
        self.run(part).mkdir(parents=True, exist_ok=True)
        return self.run(part)

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
            yield Part(name, "_quickstart_transfer", words, task, column, needs[n])


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
