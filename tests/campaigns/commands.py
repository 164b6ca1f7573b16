"""Wrong command lines of all programs: each must end with a status other than 0 and one clear line, within a minute.

A case is a program and a seed. A command line that would work gets one to three changes: values of another type,
impossible numbers, files that are missing, folders, pipes or something else, flags that do not exist. Values that no
program can accept are *wrong*; a program that accepts one is silently wrong. Other values may be accepted.
"""

import os
import random
import re
import shutil
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tests.campaigns.readers import GOLDENS, ROOT
from tests.campaigns.records import LOST, SURVIVED, UNCLEAR, Record
from tests.campaigns.works import Workshop

KIND = "commands"
SECONDS = 60.0
WAITS = "is a pipe: waiting"  # which may be intended
DEFINED = re.compile(r"flags\.DEFINE_(multi_string|integer|float|enum|bool|string|list)\(\s*\"(\w+)\"")
WRONG: dict[str, tuple[str, ...]] = {
    "integer": ("x", "1.5", "nan", "1_0x", "--"), "float": ("x", "1,5", "--"), "bool": ("maybe", "2"),
    "enum": ("nonsense", "\t"),
}  # fmt: skip
ODD: dict[str, tuple[str, ...]] = {
    "integer": ("-1", "0", "99999999999", "10" * 40, "", "1e9", "٣", "0x10"),
    "float": ("nan", "inf", "-inf", "1e400", "-1e300", "1e-38", "0", ""),
    "string": ("", " ", "FOLDER/missing", "~nobody/x", "FOLDER/pipe", "FOLDER", "/dev/null", "a" * 5000, "../..",
               "FOLDER/empty.txt", "FOLDER/zeros.bin", "\udcff", "FOLDER/secret_link", "FOLDER/loop", "-"),
    "multi_string": ("", " "), "list": ("", ",,", "a,1,", "9" * 400, "-99", "all,0"), "bool": (), "enum": ("",),
}  # fmt: skip
UNKNOWN = ("--nonsense=1", "--modle=x", "-x", "word", "--", "--config.a.b=1", "--=", "--no", "\udcff")


class Base(NamedTuple):
    """A command line that works, and whether it is quick, so that values that may be accepted are tried, too."""

    words: tuple[str, ...]
    quick: bool


BASES: dict[str, Base] = {
    "predict": Base(("--model=FOLDER/run", "--input=FOLDER/lines.txt", "--output=FOLDER/out/p.jsonl"), True),
    "extract": Base(("--model=FOLDER/bert", "--input=FOLDER/lines.txt", "--output=FOLDER/out/v.npz"), True),
    "generate": Base(("--model=FOLDER/gpt", "--prompt=the", "--max_new=2"), True),
    "convert": Base(("--from=FOLDER/bert", "--to=FOLDER/out/model"), True),
    "prepare_data": Base(("--input=FOLDER/lines.txt", "--output=FOLDER/out/store", "--tokenizer=words"), True),
    "export": Base(("--model=FOLDER/bert", "--output=FOLDER/out/exported", "--to=stablehlo"), True),
    "serve": Base(("--model=FOLDER/missing", "--port=0"), False),
    "finetune": Base(("--task=classification", "--train=FOLDER/missing.tsv", "--dev=0.1", "--init=FOLDER/bert",
                      "--workdir=FOLDER/out/run"), False),
    "pretrain": Base(("--config=bert:base", "--data=FOLDER/missing", "--workdir=FOLDER/out/run"), False),
    "plan": Base(("--config=FOLDER/missing.py",), False),
    "sweep": Base(("--sweep=FOLDER/missing.py",), False),
    "search": Base(("--search=FOLDER/missing.py",), False),
    "probe": Base(("--model=FOLDER/bert", "--train=FOLDER/missing.tsv"), False),
    "quickstart": Base(("--nonsense",), False),
    "doctor": Base(("--nonsense",), False),
    "bert-elmo-jax": Base(("predict", "--model=FOLDER/run", "--input=FOLDER/missing.txt"), False),
}  # fmt: skip


def list_flags(program: str) -> list[tuple[str, str]]:
    """Return the flags of a program as (kind, name), from its source."""
    name = "predict" if program == "bert-elmo-jax" else program
    return DEFINED.findall((ROOT / "experiments" / f"{name}.py").read_text(encoding="utf-8"))


def change_words(program: str, coins: random.Random) -> tuple[list[str], bool]:
    """Return a changed command line, and whether a value in it is wrong for sure."""
    words, wrong = list(BASES[program].words), set[str]()
    flags = list_flags(program)
    for _ in range(coins.randint(1, 3)):
        if not flags or coins.random() < 0.15:
            if words and "--nonsense" not in words and coins.random() < 0.5:
                words.pop(coins.randrange(len(words)))
            else:
                words.insert(coins.randrange(len(words) + 1), coins.choice(UNKNOWN))
            continue
        kind, name = coins.choice(flags)
        certain = kind in WRONG and (coins.random() < 0.3 or not ODD[kind])
        value = coins.choice(WRONG[kind] if certain else ODD[kind])
        words = [word for word in words if not word.startswith(f"--{name}=")] + [f"--{name}={value}"]
        wrong |= {words[-1]} if certain else set()
    if program == "bert-elmo-jax" and coins.random() < 0.5:
        words[:1] = [
            coins.choice(["", "nonsense", "predikt", "--", "-h x", "--version x", "command_line.main", "../x"])
        ]
    return words, not wrong.isdisjoint(words)  # a later change may have taken it away


class Commands:
    """The inputs of all command lines, and the server that starts programs."""

    def __init__(self, shop: Workshop):
        self.shop, self.folder = shop, shop.folder / KIND

    @cached_property
    def inputs(self) -> Path:
        """The folder with the inputs."""
        folder = self.folder / "inputs"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_task(folder / "run")
        for name, golden in (("bert", "bert_tiny"), ("gpt", "gpt2_tiny")):
            shutil.copytree(GOLDENS / golden, folder / name)
        (folder / "lines.txt").write_text("the boat is old .\n강가에 배가 있다 .\n" * 20, encoding="utf-8")
        (folder / "empty.txt").touch()
        (folder / "zeros.bin").write_bytes(bytes(1000))
        (folder / "secret_link").symlink_to("/etc/shadow")
        return folder

    def list_cases(self) -> Iterator[tuple[str, int]]:
        """Yield (program, seed) without end; quick programs three times as often."""
        seed = 0
        while True:
            for program, base in BASES.items():
                yield from ((program, 3 * seed + number) for number in range(3 if base.quick else 1))
            seed += 1

    def run_case(self, program: str, seed: int) -> Record:
        """Start a wrong command line, and judge its end."""
        words, sure = change_words(program, random.Random(f"{KIND} {program} {seed}"))
        place = self.folder / "case"
        shutil.rmtree(place, ignore_errors=True)
        (place / "out").mkdir(parents=True)
        for file in self.inputs.iterdir():
            (place / file.name).symlink_to(file.readlink() if file.is_symlink() else file)
        os.mkfifo(place / "pipe")
        (place / "loop").symlink_to("loop")
        words = [word.replace("FOLDER", str(place)) for word in words]
        begun = time.monotonic()
        running = self.shop.server.start([program, *words], place / "log", folder=place, limits={"AS": 12 << 30})
        status = None
        while status is None and time.monotonic() - begun < SECONDS:
            status = running.wait(1.0)
            if WAITS in running.output:
                break
        if status is None:
            running.kill()
        kind, detail = judge(program, status, running.output, sure)
        outcome = SURVIVED if kind in ("clear", "accepted", "waits") else UNCLEAR if kind == "unclear" else LOST
        shown = "" if outcome == SURVIVED else f"{' '.join(words)[:200]!a}: {kind}: {detail[:200]}"
        return Record(KIND, program, seed, outcome, shown, round(time.monotonic() - begun, 2), {"ended": kind})


def write_task(folder: Path) -> None:
    """Write the run directory of a model that classifies texts."""
    from tests.inference.test_task_model import write

    write(folder, "sst2", labels=("a", "b"))


def judge(program: str, status: int | None, messages: str, sure: bool) -> tuple[str, str]:
    """Return how a command ended, and its last line.

    >>> judge("predict", 2, "predict: --n_best=x: expected a whole number", True)
    ('clear', 'predict: --n_best=x: expected a whole number')
    >>> judge("predict", 0, "", True)[0], judge("predict", 1, "Traceback (most recent call last):", False)[0]
    ('silent', 'traceback')
    """
    lines = [line for line in messages.strip().splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    if status is None:
        return ("waits" if WAITS in messages else "hang"), last
    if status < 0:
        return "crash", last
    if "Traceback (most recent call last)" in messages:
        return "traceback", last
    if status == 0:
        return ("silent" if sure else "accepted"), last
    name = re.compile(rf"(?:{re.escape(program)}|predict|bert-elmo-jax): .{{12}}")
    return ("clear" if any(map(name.match, lines)) else "unclear"), last
