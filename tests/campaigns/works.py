"""The programs that campaigns disturb: toy runs of every family, their inputs, and the hashes of their results."""

import dataclasses
import hashlib
import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.campaigns.server import Server

TUNE = ["epochs=2", "batch_size=8", "log_every=5", "eval_every=6", "checkpoint_every=3"]
LIMIT = 240.0  # seconds that a program may take

Hashes = dict[str, str]


@dataclass(frozen=True)
class Work:
    """A command to disturb; `words` and `results` take its output folder.

    `words` may return several command lines; the first that is not refused counts. `needs` are works whose undisturbed
    result it reads.
    """

    name: str
    words: Callable[[Path], list[list[str]]]
    results: Callable[[Path], Hashes]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reference:
    """An undisturbed run: its command line (the folder is FOLDER), results and duration; or why there is none."""

    words: list[str]
    hashes: Hashes
    seconds: float
    refused: str = ""


class Workshop:
    """A folder with the inputs of all works, the undisturbed results, and a server that starts programs."""

    def __init__(self, folder: Path):
        self.folder = folder.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.works = {work.name: work for work in list_works(self)}

    @cached_property
    def server(self) -> Server:
        """The server, started when it is first needed."""
        return Server(self.environment())

    def environment(self) -> dict[str, str]:
        """Return the environment of all programs: one device, quick compilation, a cache of their own."""
        variables = {
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": "--xla_force_host_platform_device_count=1",
            "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
            "JAX_COMPILATION_CACHE_DIR": str(self.folder / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "OMP_NUM_THREADS": "2",
        }
        return {**os.environ, **variables}

    def place(self, name: str) -> Path:
        """Return the folder of the undisturbed run of a work."""
        return self.folder / "reference" / name.replace(" ", "_")

    def reference(self, name: str) -> Reference:
        """Return the undisturbed run of a work, which is kept for the next start."""
        work, folder = self.works[name], self.place(name)
        file = folder / "reference.json"
        if file.is_file():
            return Reference(**json.loads(file.read_text(encoding="utf-8")))
        for other in work.needs:
            if refused := self.reference(other).refused:
                return self._keep(file, Reference([], {}, 0.0, f"{other}: {refused}"))
        message = ""
        for words in work.words(folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            begun = time.monotonic()
            running = self.server.start(words, folder / "log")
            status = running.wait(4 * LIMIT)  # it compiles, which later runs do not
            seconds = time.monotonic() - begun
            if status == 0:
                general = [word.replace(str(folder), "FOLDER") for word in words]
                return self._keep(file, Reference(general, work.results(folder), seconds))
            if status is None:
                running.kill()
                raise RuntimeError(f"{name} did not end within {4 * LIMIT:.0f} s, undisturbed: the machine is too busy")
            message = (running.output.strip().splitlines() or [f"status {status}"])[-1]
        return self._keep(file, Reference([], {}, 0.0, message))

    def _keep(self, file: Path, reference: Reference) -> Reference:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(dataclasses.asdict(reference), indent=1) + "\n", encoding="utf-8")
        return reference

    def start(self, name: str, folder: Path, **how: Any) -> Any:
        """Start the command of a work, which writes into a folder."""
        words = [word.replace("FOLDER", str(folder)) for word in self.reference(name).words]
        folder.mkdir(parents=True, exist_ok=True)
        return self.server.start(words, folder.with_name(f"{folder.name}-log") / "log", **how)

    def finish(self, name: str, folder: Path) -> str:
        """Run a work to its end and return the difference to the undisturbed run's results, "" if there is none."""
        running = self.start(name, folder)
        status = running.wait(LIMIT)
        if status is None:
            running.kill()
            return f"no end within {LIMIT:.0f} s"
        wrong = self.compare(name, folder)
        # A program that refuses to replace complete results is right, but these find their file complete.
        if status != 0 and (wrong or name.startswith(("predict", "generate"))):
            lines = running.output.strip().splitlines() or [""]
            return f"status {status}: {lines[-1][:300]}"
        return wrong

    def compare(self, name: str, folder: Path) -> str:
        """Return the difference to the undisturbed run, "" if there is none."""
        try:
            hashes = self.works[name].results(folder)
        except (OSError, ValueError) as error:
            return f"the results cannot be read: {str(error)[:300]}"
        expected = self.reference(name).hashes
        differ = sorted(key for key in expected.keys() | hashes.keys() if expected.get(key) != hashes.get(key))
        return f"differs in {', '.join(differ[:5])}" if differ else ""

    @cached_property
    def data(self) -> dict[str, Path]:
        """The inputs, written when they are first needed."""
        folder = self.folder / "data"
        if not (folder / "written").is_file():
            shutil.rmtree(folder, ignore_errors=True)
            write_data(folder)
            (folder / "written").touch()
        return {path.name: path for path in folder.iterdir()}


def hash_bytes(data: bytes) -> str:
    """Return a short hash."""
    return hashlib.sha256(data).hexdigest()[:32]


def hash_files(*names: str) -> Callable[[Path], Hashes]:
    """Return a function that hashes these files of a folder."""
    return lambda folder: {name: hash_bytes((folder / name).read_bytes()) for name in names}


def hash_tree(folder: Path) -> Hashes:
    """Hash all files of a preparation."""
    files = sorted(file for file in (folder / "corpus").rglob("*") if file.is_file())
    data_files = [file for file in files if file.suffix != ".lock" and not file.name.startswith(".")]
    return {str(file.relative_to(folder)): hash_bytes(file.read_bytes()) for file in data_files}


def hash_run(folder: Path) -> Hashes:
    """Hash the figures and the parameters of a training run."""
    from bert_elmo_jax.inference.run_directory import read_run_directory
    from bert_elmo_jax.train.checkpoint import load_params
    from bert_elmo_jax.weights.digest import digest

    run = folder / "run"
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    step, params = load_params(run)
    # Read as `load` reads it: the best checkpoint, or the mean of the last ones.
    used = read_run_directory(run)
    return {
        "metrics.jsonl": hash_bytes(json.dumps(lines).encode()),
        f"parameters of step {step}": digest(params),
        f"model of step {used.step}": digest(used.params),
    }


def list_works(shop: Workshop) -> Iterable[Work]:
    """Yield the works of all families, and of preparations and sweeps."""
    from bert_elmo_jax.families import all_families
    from tests.campaigns.task_works import task_works

    for family in all_families():
        yield from family_works(shop, family)
    corpora = {"wordpiece": 300, "words": 500, "byte_bpe": 400, "sentencepiece": 120}
    for tokenizer, size in corpora.items():
        yield Work(f"prepare {tokenizer}", _preparation(shop, tokenizer, size), hash_tree)
    pairs = ["prepare_data", "--tokenizer=wordpiece", "--vocab_size=300", "--heldout=0.1", "--shards=3", "--workers=2"]
    yield Work(
        "prepare pairs",
        lambda folder: [
            [
                *pairs,
                f"--source={shop.data['pairs.en']}",
                f"--target={shop.data['pairs.ko']}",
                f"--output={folder}/corpus",
            ]
        ],
        hash_tree,
    )
    yield Work(
        "convert bert",
        lambda folder: [["convert", f"--from={shop.place('pretrain bert')}/run", f"--to={folder}/model"]],
        hash_files("model/model.safetensors", "model/config.json"),
        ("pretrain bert",),
    )
    for name in ("bert", "elmo"):
        tables = (f"sweeps/tiny_{name}-toy/table.md", f"sweeps/tiny_{name}-toy/table.csv")
        yield Work(f"sweep {name}", _sweep(shop, name), hash_files(*tables))
    yield from task_works(shop)


def family_works(shop: Workshop, family: Any) -> Iterable[Work]:
    """Yield the works of one family. Commands that it refuses are left out later, with the reason."""
    from tests.experiments.small_recipes import corpus_kind, small_fields

    name = family.name
    run = shop.place(f"pretrain {name}") / "run"

    def pretrain(folder: Path) -> list[list[str]]:
        file = f"{name}:toy"
        fields = [f"data={shop.data[corpus_kind(file)]}", *small_fields(file)]
        small = [f"--config.{field}" for field in fields]
        return [["pretrain", f"--config={file}", f"--workdir={folder}/run", *small]]

    def finetune(folder: Path) -> list[list[str]]:
        files = [f"--train={shop.data['train.csv']}", f"--dev={shop.data['dev.csv']}", f"--workdir={folder}/run"]
        head = ["finetune", "--task=classification", "--text=review", "--label=verdict", *files, f"--init={run}"]
        tags = [f"--train={shop.data['train.conll']}", f"--dev={shop.data['dev.conll']}", f"--workdir={folder}/run"]
        tagger = ["finetune", "--config=experiments/configs/tagger.py", "--task=entities", *tags]
        tagger += [f"--config.encoder={run}", "--config.lstm_size=4", "--config.lstm_layers=1", "--config.word_size=6"]
        tune = [f"--config.{field}" for field in TUNE]
        return [[*head, *tune, "--config.max_length=32"], [*tagger, *tune, "--config.unknown=unk"]]

    yield Work(f"pretrain {name}", pretrain, hash_run)
    needs = (f"pretrain {name}",)
    yield Work(f"finetune {name}", finetune, hash_run, needs)
    yield Work(
        f"extract {name}",
        lambda folder: [
            ["extract", f"--model={run}", f"--input={shop.data['texts.txt']}", f"--output={folder}/vectors.h5",
             "--batch_size=4"]
        ],
        hash_files("vectors.h5"),
        needs,
    )  # fmt: skip
    if family.decoder is not None:
        yield Work(
            f"generate {name}",
            lambda folder: [
                ["generate", f"--model={run}", f"--input={shop.data['prompts.txt']}", f"--output={folder}/texts.jsonl",
                 "--max_new=12", "--batch_size=4"]
            ],
            hash_files("texts.jsonl"),
            needs,
        )  # fmt: skip
    tuned = shop.place(f"finetune {name}") / "run"
    yield Work(
        f"predict {name}",
        lambda folder: [
            ["predict", f"--model={tuned}", f"--input={shop.data['new.txt']}", f"--output={folder}/out.jsonl",
             "--batch_size=4"]
        ],
        hash_files("out.jsonl"),
        (f"finetune {name}",),
    )  # fmt: skip


def _preparation(shop: Workshop, tokenizer: str, size: int) -> Callable[[Path], list[list[str]]]:
    flags = ["--heldout=0.1", "--shards=4", "--workers=2", f"--tokenizer={tokenizer}", f"--vocab_size={size}"]
    return lambda folder: [["prepare_data", f"--input={shop.data['corpus.txt']}", f"--output={folder}/corpus", *flags]]


def _sweep(shop: Workshop, name: str) -> Callable[[Path], list[list[str]]]:
    return lambda folder: [
        ["sweep", f"--sweep={shop.data[f'tiny_{name}.py']}", f"--workdir={folder}/sweeps", "--jobs=2", "--retries=9"]
    ]


def write_data(folder: Path) -> None:
    """Write texts, tables, corpora and definitions of sweeps."""
    from tests.data.conftest import random_documents, write_documents
    from tests.experiments.small_recipes import toy_corpora
    from tests.experiments.task_files import texts, write_entities, write_pairs, write_questions, write_reviews
    from tests.sweeps.conftest import BERT, ELMO

    folder.mkdir(parents=True)
    coins = random.Random(0)
    write_documents(folder / "corpus.txt", random_documents(0, 400))
    for kind in ("pieces", "words", "pairs", "word_pairs"):
        toy_corpora(folder)(kind)
    lines = [text for text, _ in texts(coins, 240)]
    (folder / "texts.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    rows = [line if number % 40 else "" for number, line in enumerate(lines)]  # empty rows cannot be read
    (folder / "bad.csv").write_text("review\n" + "".join(f'"{row}"\n' for row in rows), encoding="utf-8")
    (folder / "new.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "prompts.txt").write_text("\n".join(lines[:60]) + "\n", encoding="utf-8")
    (folder / "pairs.en").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "pairs.ko").write_text("".join(f"{line}\n" for line in reversed(lines)), encoding="utf-8")
    for part, count in (("train", 64), ("dev", 24)):
        write_reviews(folder / f"{part}.csv", coins, count)
        write_entities(folder / f"{part}.conll", coins, count)
        write_pairs(folder / f"{part}.tsv", coins, count)
        write_questions(folder / f"{part}.json", coins, count)
    for name, text in (("bert", BERT), ("elmo", ELMO)):
        (folder / f"tiny_{name}.py").write_text(f"{text.strip()}\n\n\nSEEDS = (0, 1)\n", encoding="utf-8")


def stop_and_continue(running: Any, seconds: float) -> None:
    """Stop a program for a while, like a closed laptop."""
    running.send(signal.SIGSTOP)
    time.sleep(seconds)
    running.send(signal.SIGCONT)


def clean(folder: Path) -> None:
    """Remove a case's folder and its logs."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(folder.with_name(f"{folder.name}-log"), ignore_errors=True)
