"""Fuzz the readers of bytes, guided by the lines that an input reaches.

Inputs that reach a new line are kept and changed further. An error other than the reader's own, a hang and memory
without bound are kept, too: one input for each kind and place.
"""

import contextlib
import hashlib
import json
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.campaigns.coverage import Coverage
from tests.campaigns.readers import Reader, list_targets
from tests.campaigns.reading import describe
from tests.campaigns.records import LOST, SURVIVED, UNCLEAR, Record

KIND = "fuzz"
ROOT = Path(__file__).parents[2]
SLOW = 5.0  # seconds of the processor: a hang
MEMORY = 3 << 30  # bytes that the process may add to what it has after the imports
NUMBERS = [0, 1, 2, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1]
LARGEST = 1 << 17  # bytes of an input


class TooSlow(BaseException):
    """Raised in a reader that takes too long."""


def mutate(data: bytes, other: bytes, coins: random.Random, tokens: Sequence[bytes]) -> bytes:
    """Return a changed input: one to eight changes, of bits, bytes, numbers, parts and parts of another input."""
    changed = bytearray(data)
    for _ in range(1 + int(coins.expovariate(0.6))):
        size = len(changed)
        at = coins.randrange(size + 1)
        end = min(size, at + 1 + int(coins.expovariate(0.1)))
        way = coins.randrange(9 if tokens else 8)
        if way == 0 and size:
            changed[at % size] ^= 1 << coins.randrange(8)
        elif way == 1 and size:
            changed[at % size] = coins.randrange(256)
        elif way == 2:
            width = coins.choice((1, 2, 4, 8))
            number = coins.choice(NUMBERS) % (1 << 8 * width)
            changed[at : at + width] = number.to_bytes(width, coins.choice(("little", "big")))
        elif way == 3:
            del changed[at:end]
        elif way == 4:
            changed[at:at] = changed[at:end] * coins.choice((1, 1, 2, 50))
        elif way == 5 and other:
            start = coins.randrange(len(other))
            changed[at:end] = other[start : start + 1 + int(coins.expovariate(0.05))]
        elif way == 6:
            changed[at:at] = bytes(coins.randrange(256) for _ in range(coins.randrange(1, 6)))
        elif way == 7 and coins.random() < 0.2:
            del changed[at:]
        elif way == 8:
            changed[at : at if coins.random() < 0.5 else end] = coins.choice(tokens)
    return bytes(changed[:LARGEST])


class Fuzzer:
    """A fuzzer of one reader; a folder keeps its corpus and its findings."""

    def __init__(self, target: Reader, folder: Path, seed: int):
        self.target, self.folder = target, folder
        self.coins = random.Random(f"{KIND} {target.name} {seed}")
        self.coverage = Coverage([ROOT / module for module in target.modules])
        for name in ("corpus", "crashes"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self.work = folder / "work"
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(target.folder, self.work)
        self.path = self.work / target.file
        saved_inputs = [file.read_bytes() for file in sorted((folder / "corpus").iterdir())]
        self.corpus = [self.path.read_bytes(), *saved_inputs]
        self.executions, self.crashes, self.kinds = 0, 0, set[str]()

    def execute(self, data: bytes) -> bool:
        """Read an input, and return whether it reached a new line."""
        before = len(self.coverage.lines)
        self.path.write_bytes(data)
        self.executions += 1
        signal.setitimer(signal.ITIMER_PROF, SLOW)
        try:
            self.target.read(self.path)
        except TooSlow:
            self.keep("hang", f"more than {SLOW:.0f} s", data)
        except BaseException as error:
            kind, message = describe(error)
            if isinstance(error, KeyboardInterrupt):
                raise
            if kind != "refused" or not message:
                self.keep(kind, message, data)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        return len(self.coverage.lines) > before

    def keep(self, kind: str, message: str, data: bytes) -> None:
        """Keep the first input of each kind and place."""
        about = f"{kind} {message.partition(': ')[0]}"
        if about in self.kinds:
            return
        self.kinds.add(about)
        self.crashes += 1
        name = hashlib.sha256(about.encode()).hexdigest()[:12]
        (self.folder / "crashes" / name).write_bytes(data)
        (self.folder / "crashes" / f"{name}.txt").write_text(f"{kind}: {message}\n", encoding="utf-8")

    def run(self, seconds: float) -> dict[str, Any]:
        """Fuzz for a time, and return the figures."""
        begun = time.monotonic()
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.coverage.watching())
            if self.target.around is not None:
                stack.enter_context(self.target.around())
            for data in list(self.corpus):
                self.execute(data)
            while time.monotonic() - begun < seconds:
                data = mutate(
                    self.coins.choice(self.corpus), self.coins.choice(self.corpus), self.coins, self.target.tokens
                )
                if self.execute(data):
                    self.corpus.append(data)
                    (self.folder / "corpus" / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
        return {
            "executions": self.executions, "seconds": round(time.monotonic() - begun, 1), "crashes": self.crashes,
            "lines": self.coverage.reached, "of": len(self.coverage.known), "kept": len(self.corpus),
            "kinds": sorted(self.kinds),
        }  # fmt: skip


def list_cases(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield (reader, seed) without end; each has the corpus of those before."""
    seed = 0
    while True:
        yield from ((target.name, seed) for target in list_targets(folder / KIND))
        seed += 1


def run_case(folder: Path, name: str, seed: int, seconds: float, environment: dict[str, str]) -> Record:
    """Fuzz one reader in a process of its own."""
    place = folder / KIND / name.replace(" ", "_").replace(",", "")
    command = [sys.executable, "-W", "ignore", "-m", "tests.campaigns.fuzz", str(folder), name, str(seed), str(seconds)]
    begun = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=ROOT, env={**environment, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
            timeout=seconds + 90,
        )  # fmt: skip
        status, out, messages = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        status, out, messages = -1, "", "a call of a library did not return"
    took = round(time.monotonic() - begun, 1)
    if status != 0 or not out.strip():
        crash_file = place / "crashes" / f"process-{seed}"
        [target] = [target for target in list_targets(folder / KIND) if target.name == name]
        if (place / "work" / target.file).is_file():  # the last input
            shutil.copy(place / "work" / target.file, crash_file)
        figures = {"executions": 0, "seconds": took, "crashes": 1, "lines": 0, "of": 0, "kept": 0}
        last = (messages.strip().splitlines() or [""])[-1]
        return Record(KIND, name, seed, LOST, f"the process ended with {status}: {last[:200]}", took, figures)
    figures = json.loads(out.strip().splitlines()[-1])
    kinds = [kind for kind in figures["kinds"] if not kind.startswith("json")]
    outcome = LOST if kinds else UNCLEAR if figures["kinds"] else SURVIVED
    return Record(KIND, name, seed, outcome, "; ".join(figures["kinds"]), took, figures)


def main() -> None:
    """Fuzz the reader of the command line, and print the figures as JSON."""
    folder, name, seed, seconds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    [target] = [target for target in list_targets(folder / KIND) if target.name == name]

    def too_slow(*_: Any) -> None:
        raise TooSlow

    signal.signal(signal.SIGPROF, too_slow)
    answers, sys.stdout = sys.stdout, sys.stderr
    place = folder / KIND / name.replace(" ", "_").replace(",", "")
    fuzzer = Fuzzer(target, place, seed)
    with contextlib.suppress(Exception):
        target.read(fuzzer.path)  # all imports
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    print(json.dumps(fuzzer.run(seconds)), file=answers, flush=True)


if __name__ == "__main__":
    main()
