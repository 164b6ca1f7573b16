"""Attacks: models that were changed on purpose, and how `load` handles them.

A case is a kind of change, a model and a seed. The reading process counts what Python opens outside of the folder, and
whether a socket or a process was started. A model that loads although it is changed is described: configuration, ids of
some texts, parameters, labels and head. It is silently wrong if the description differs from the valid model's, nothing
was logged, and no such change could be intended: a value of another type, an absurd number, or a file that was cut.
"""

import json
import logging
import random
import shutil
import sys
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from bert_elmo_jax.inference.isolated import find_breach, list_prefixes
from tests.campaigns.attack_ways import DAMAGE, SECRET, SHARES, WAYS, list_bases, prepare
from tests.campaigns.inputs import judge
from tests.campaigns.reading import ReadingProcess, describe, try_reading
from tests.campaigns.records import LOST, SURVIVED, Record

KIND = "attacks"
TEXTS = ("the river bank", "강가에 배가 있다 .", "a <s> [MASK] \uffff0\uffff x", "It's 12.5% ½ ﬁ")


def summarize(folder: Path) -> dict[str, Any]:
    """Load a model, or a tokenizer, and return all that its files decide."""
    from bert_elmo_jax import load
    from bert_elmo_jax.text import Tokenizer, load_tokenizer
    from bert_elmo_jax.weights.digest import digest

    if folder.name.startswith("tokenizer_"):
        tokenizer = load_tokenizer(folder)
        return {"ids": [tokenizer.encode(text).ids.tolist() for text in TEXTS],
                "lines": [part.tolist() for part in tokenizer.encode_lines(TEXTS)]}  # fmt: skip
    model: Any = load(folder, verify=(folder / "SHA256SUMS").is_file() and folder.name == "sums")
    reads = getattr(model, "reads", None)
    ids = [reads.encode(text).ids.tolist() for text in TEXTS] if isinstance(reads, Tokenizer) else None
    about = {name: str(getattr(model, name, None)) for name in ("config", "task", "labels", "sentence_head")}
    return {**about, "ids": ids, "words": None if ids else getattr(reads, "fingerprint", None),
            "params": digest(model.params)}  # fmt: skip


class Watch:
    """Counts the files opened outside a folder and all that is started; Python calls it for every audited event."""

    def __init__(self) -> None:
        self.prefixes: tuple[str, ...] | None = None
        self.breaches: list[str] = []
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if (prefixes := self.prefixes) is None:
            return
        self.prefixes = None  # what the check itself does is not counted
        if breach := find_breach(event, arguments, prefixes):
            self.breaches.append(breach)
        self.prefixes = prefixes


class Logged(logging.Handler):
    """Keeps the warnings of a case."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self.lines.append(record.getMessage())


def attempt(folder: Path, expected: dict[str, Any], way: str, watch: Watch, logged: Logged) -> tuple[str, str]:
    """Load a changed folder, and return how it ended and the message."""
    watch.breaches.clear()
    logged.lines.clear()
    summary: dict[str, Any] = {}
    watch.prefixes = list_prefixes([folder, Path(__file__).parent])  # whose lines tracebacks show
    try:
        kind, message = try_reading(lambda place: summary.update(summarize(place)), folder)
    finally:
        watch.prefixes = None
    if (folder.parent / "executed").exists():
        return "executed", message
    if watch.breaches:
        started = [breach for breach in watch.breaches if "would call" in breach]
        return ("executed", started[0]) if started else ("outside", watch.breaches[0])
    if SECRET in message or SECRET in str(summary):
        return "outside", f"the content of another file: {message}"
    if kind != "read" or way not in (*DAMAGE, "unlisted") or logged.lines:
        return kind, message
    if way == "unlisted":
        return "silent", "loaded with verify=True"
    different = [name for name, value in summary.items() if value != expected[name]]
    return ("silent", f"{', '.join(different)} differ") if different else (kind, message)


class Attacks:
    """The valid folders, and the process that reads the changed ones."""

    def __init__(self, folder: Path, environment: dict[str, str]):
        self.folder = folder / KIND
        self.process = ReadingProcess(self.folder, environment, "tests.campaigns.attacks")

    @cached_property
    def bases(self) -> dict[str, Path]:
        """The valid folders by name."""
        return list_bases(self.folder)

    def list_cases(self) -> Iterator[tuple[str, int]]:
        """Yield (way and base, seed) without end."""
        seed = 0
        while True:
            for way in WAYS:
                for number in range(SHARES.get(way, 1)):
                    yield from ((f"{way} {base}", seed * 10 + number) for base in self.bases if self.has(way, base))
            seed += 1

    def has(self, way: str, base: str) -> bool:
        """Return whether a way can change a folder."""
        if way in ("relisted", "deep_link"):
            return base == ("run" if way == "relisted" else "sentences")
        spec = (self.bases[base] / "tokenizer.json").is_file()
        return base == "sums" if way == "unlisted" else spec if way == "rules" else base != "sums" or way == "cut"

    def run_case(self, name: str, seed: int) -> Record:
        """Change a folder, and load it."""
        way, base = name.split()
        begun, place = time.monotonic(), self.folder / "case" / base
        change = prepare(self.bases[base], way, place, random.Random(f"{name} {seed}"))
        if change is None:
            return Record(KIND, name, seed, SURVIVED, "", 0.0, {"ended": "no change"})
        kind, message = self.process.read(f"{way} {base}", place)
        file = place / change.split()[0]
        outcome = LOST if kind == "silent" else judge(kind, message, file, f"case/{base}")
        if outcome != SURVIVED:
            evidence = self.folder / "found" / f"{name.replace(' ', '_')}-{seed}"
            shutil.rmtree(evidence, ignore_errors=True)
            if way not in ("pipe", "huge"):
                shutil.copytree(place, evidence, symlinks=True)
        detail = "" if outcome == SURVIVED else f"{change}: {kind}: {message[:300]}"
        return Record(KIND, name, seed, outcome, detail, round(time.monotonic() - begun, 2), {"ended": kind})


def main() -> None:
    """Answer one request after the other."""
    bases = list_bases(Path(sys.argv[1]))
    watch, logged = Watch(), Logged()
    logging.getLogger().addHandler(logged)
    expected: dict[str, dict[str, Any]] = {}
    answers, sys.stdout = sys.stdout, sys.stderr
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        name, path = json.loads(line)
        way, base = name.split()
        if base not in expected:
            valid = Path(path).parents[1] / "valid" / base  # under the same name
            shutil.rmtree(valid, ignore_errors=True)
            shutil.copytree(bases[base], valid)
            expected[base] = summarize(valid)
        try:
            answer = attempt(Path(path), expected[base], way, watch, logged)
        except BaseException as error:
            answer = describe(error)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
