"""Faults of the system: failing calls, slow disks, wrong clocks, stops, too little memory, few descriptors.

`faults.c` is compiled and put under the programs (LD_PRELOAD). While the fault lasts, a program finishes with
the usual results or ends with a status other than 0 and one clear line; afterwards the same command finishes.
"""

import errno
import random
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.campaigns.records import LOST, MISSED, REFUSED, SURVIVED, UNCLEAR, Record
from tests.campaigns.works import LIMIT, Workshop, clean, stop_and_continue

KIND = "faults"
SOURCE = Path(__file__).with_name("faults.c")
# name: (call, error, how many calls fail; -1: all from the first on)
CALLS = {
    "full disk": ("write", errno.ENOSPC, -1),
    "write error": ("write", errno.EIO, 1),
    "fsync error": ("fsync", errno.EIO, 1),
    "read-only renames": ("rename", errno.EROFS, -1),
    "rename error": ("rename", errno.EIO, 1),
    "no new files": ("open", errno.EROFS, -1),
    "open error": ("open", errno.EIO, 1),
    "read error": ("read", errno.EIO, 1),
}
OTHER_FAULTS = ("slow reads", "clock forward", "clock back", "stopped", "memory", "descriptors")
WORKS = ("pretrain bert", "finetune bert", "prepare wordpiece", "extract bert", "predict bert", "generate gpt",
         "convert bert", "pretrain elmo")  # fmt: skip
STOPPED = (3.0, 60.0)  # seconds, for even seeds and odd ones
NATIVE = (-6, -9, -11, -7)  # ended by the system or by a library that was refused memory


def build(folder: Path) -> Path | None:
    """Compile the library; None without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    library = folder / "faults.so"
    if not library.is_file() or library.stat().st_mtime < SOURCE.stat().st_mtime:
        folder.mkdir(parents=True, exist_ok=True)
        command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True, capture_output=True)
    return library


def list_cases(shop: Workshop) -> Iterator[tuple[str, int]]:
    """Yield ("fault: work", seed) without end."""
    seed = 0
    while True:
        for fault in (*CALLS, *OTHER_FAULTS):
            for work in WORKS:
                yield f"{fault}: {work}", seed
        seed += 1


def run_case(shop: Workshop, name: str, seed: int) -> Record:
    """Run a work with a fault, then without."""
    fault, _, work = name.partition(": ")
    reference = shop.reference(work)
    if reference.refused:
        return Record(KIND, name, seed, REFUSED, reference.refused)
    coins = random.Random(f"{KIND} {name} {seed}")
    folder = shop.folder / "cases" / f"{KIND}-{name}-{seed}".replace(" ", "_").replace(":", "")
    clean(folder)
    tally = folder.with_name(f"{folder.name}-log") / "tally"
    begun, environment, limits = time.monotonic(), {}, {}
    if fault in CALLS:
        call, error, count = CALLS[fault]
        first = int(2 ** coins.uniform(0, 7))
        environment = {"FAULT_CALL": call, "FAULT_ERRNO": str(error), "FAULT_COUNT": str(count)}
        environment["FAULT_FIRST"] = str(first)
    elif fault == "slow reads":
        environment = {"FAULT_CALL": "read", "FAULT_DELAY": "20000"}
    elif fault.startswith("clock"):
        shift = coins.choice([3_600, 86_400, 40_000_000]) * (1 if "forward" in fault else -1)
        environment = {"FAULT_CALL": "clock", "FAULT_SHIFT": str(shift), "FAULT_FIRST": str(coins.randrange(1, 2_000))}
    elif fault == "memory":
        limits = {"AS": int(coins.uniform(0.9, 3.0) * (1 << 30))}
    elif fault == "descriptors":
        limits = {"NOFILE": coins.randrange(12, 64)}
    if environment:
        environment |= {"FAULT_PATH": f"{folder}/", "FAULT_TALLY": str(tally)}
    if fault in ("read error", "slow reads"):
        environment["FAULT_PATH"] = str(shop.folder)
    while True:
        running = shop.start(work, folder, environment=environment, limits=limits)
        if fault == "stopped":
            running.wait(coins.uniform(0.1, 0.5) * reference.seconds)
            stop_and_continue(running, STOPPED[seed % 2])
        status = running.wait(LIMIT)
        if status is None:
            running.kill()
        first = int(environment.get("FAULT_FIRST", 0))
        reached = not first or _reached(tally, first)
        if reached or status != 0 or first <= 1:
            break
        environment["FAULT_FIRST"] = str(first // 8 or 1)  # there are fewer such calls
        clean(folder)
    messages, figures = running.output, {"status": status, **environment, **limits}
    wrong = shop.compare(work, folder) if status == 0 else ""
    if wrong:
        wrong = f"status 0, but {wrong}"
    else:
        wrong = shop.finish(work, folder)
    unclear = "" if status == 0 else judge(messages, status, str(folder))
    if status is None:
        unclear = f"no end within {LIMIT:.0f} s while the fault lasted"
    outcome = LOST if wrong else MISSED if not reached else UNCLEAR if unclear else SURVIVED
    if not wrong:
        clean(folder)
    seconds = round(time.monotonic() - begun, 2)
    return Record(KIND, name, seed, outcome, wrong or unclear, seconds, figures)


def judge(messages: str, status: int | None, folder: str) -> str:
    """Return the problem with the message of a program that failed, or "" if it ends with one clear line."""
    lines = [line for line in messages.strip().splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    if messages.count("Traceback (most recent call last)"):
        return f"{messages.count('Traceback (most recent call last)')} tracebacks; the last line: {last[:200]}"
    if status in NATIVE:
        return f"ended by signal {-status}: {last[:200]}"
    if not re.match(r"\w+: ", last):
        return f"no message of the program: {last[:200]}"
    # An error of the system names its file, or at least what could not be written.
    if re.search(r"\[Errno \d+\]", last) and not re.search(r"[/'\"]\S+|could not", last.partition("]")[2]):
        return f"no file named: {last[:200]}"
    return ""


def _reached(tally: Path, first: int) -> bool:
    """Return whether the call that was to fail was made, in any process; True where the count is lost."""
    if not tally.is_file():
        return True
    return any(int(line) >= first for line in tally.read_text(encoding="ascii").split())
