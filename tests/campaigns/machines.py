"""Machines: kill, stop or delay one process of a run, also while it saves a checkpoint; lose a Ray node."""

import importlib.util
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.campaigns.faults import judge
from tests.campaigns.records import LOST, MISSED, SURVIVED, UNCLEAR, Record
from tests.campaigns.server import ROOT
from tests.campaigns.works import LIMIT, Workshop, clean, hash_run

KIND = "machines"
WORK = "pretrain bert"
CASES = ("two killed", "two saving", "two stopped", "two late", "four killed", "four saving", "four stopped",
         "four late", "ray killed", "ray prepares")  # fmt: skip
RAY = {"ray killed": "sweep bert", "ray prepares": "prepare wordpiece"}  # works that a node is lost of
COUNTS = {"two": 2, "four": 4}
AFTER = 130.0  # seconds that the others may take to notice a lost process; JAX waits for 100


def list_cases() -> Iterator[tuple[str, int]]:
    """Yield (case, seed) without end."""
    seed = 0
    while True:
        yield from ((name, seed) for name in CASES)
        seed += 1


def begin(shop: Workshop, folder: Path, count: int, late: float = 0.0) -> list[Any]:
    """Start all processes of a run; the last one later."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    words = [word.replace("FOLDER", str(folder)) for word in shop.reference(WORK).words]
    folder.mkdir(parents=True, exist_ok=True)
    running = []
    for number in range(count):
        if number == count - 1:
            time.sleep(late)
        more = [f"--coordinator=localhost:{port}", f"--processes={count}", f"--process={number}"]
        log = folder.with_name(f"{folder.name}-log") / f"log{number}"
        running.append(shop.server.start([*words, *more], log))
    return running


def finish(running: list[Any]) -> str:
    """Wait for all processes, and return what went wrong."""
    end, wrong = time.monotonic() + LIMIT, ""
    for process in running:
        status = process.wait(max(0.0, end - time.monotonic()))
        if status != 0:
            last = (process.output.strip().splitlines() or [""])[-1]
            wrong = wrong or f"a process ended with {status}: {last[:200]}"
    for process in running:
        process.kill()
    return wrong


def undisturbed(shop: Workshop, count: int) -> tuple[Path, float]:
    """Return the folder of an undisturbed run of so many processes, and its duration."""
    folder = shop.folder / "reference" / f"processes-{count}"
    took = folder / "seconds"
    if not took.is_file():
        clean(folder)
        begun = time.monotonic()
        wrong = finish(begin(shop, folder, count))
        if wrong:
            raise RuntimeError(f"the undisturbed run of {count} processes failed: {wrong}")
        took.write_text(str(time.monotonic() - begun), encoding="ascii")
    return folder, float(took.read_text(encoding="ascii"))


def run_case(shop: Workshop, name: str, seed: int) -> Record:
    """Disturb one process of a run, end the others, and run the same commands again."""
    begun = time.monotonic()
    first, how = name.split()
    if first == "ray":
        return lose_ray_node(shop, name, seed)
    coins = random.Random(f"{KIND} {name} {seed}")
    count = COUNTS[first]
    reference, seconds = undisturbed(shop, count)
    folder = shop.folder / "cases" / f"{KIND}-{name}-{seed}".replace(" ", "_")
    clean(folder)
    unclear, figures, outcome = "", dict[str, Any](), SURVIVED
    if how == "late":
        wrong = finish(begin(shop, folder, count, late=15.0))
    else:
        victim = coins.randrange(count)
        moment = coins.uniform(0.3, 0.95) * seconds
        running = begin(shop, folder, count)
        if how == "saving":
            moment = 0.0
        while running[victim].wait(moment) is not None and moment > 1.0:  # it has ended before
            finish(running)
            clean(folder)
            moment /= 2
            running = begin(shop, folder, count)
        figures = {"victim": victim, "moment": round(moment, 2)}
        if how == "stopped":
            running[victim].send(19)
            time.sleep(8.0)
            running[victim].send(18)
            wrong = finish(running)
        else:
            if how == "saving":
                figures["unfinished"] = wait_for_unfinished(folder, running[victim])
            outcome = SURVIVED if running[victim].kill() else MISSED
            noticed = time.monotonic()
            survivors = [process for process in running if process is not running[victim]]
            ends = [process.wait(max(0.0, AFTER - (time.monotonic() - noticed))) for process in survivors]
            figures |= {"others": ends, "noticed": round(time.monotonic() - noticed, 1)}
            if None in ends:
                unclear = f"after {AFTER:.0f} s a process still waits for the one that was killed"
            for process, status in zip(survivors, ends):
                if status:
                    unclear = unclear or judge(process.output, status, str(folder))
                process.kill()
            wrong = finish(begin(shop, folder, count))
    if not wrong:
        expected, hashes = hash_run(reference), hash_run(folder)
        differ = [key for key in expected if expected[key] != hashes.get(key)]
        wrong = f"differs in {', '.join(differ)}" if differ else ""
    outcome = LOST if wrong else UNCLEAR if unclear else outcome
    if not wrong:
        clean(folder)
    return Record(KIND, name, seed, outcome, wrong or unclear, round(time.monotonic() - begun, 2), figures)


def wait_for_unfinished(folder: Path, process: Any) -> str:
    """Wait until a checkpoint is being written, and return its step; "" if the process has ended before."""
    while process.wait(0.0) is None:
        for checkpoint in (folder / "run" / "checkpoints").glob("[0-9]*"):
            if any(checkpoint.glob("params*")) and not (checkpoint / "files.json").exists():
                return checkpoint.name
        time.sleep(0.002)
    return ""


def lose_ray_node(shop: Workshop, name: str, seed: int) -> Record:
    """Kill one of two Ray nodes while a work runs on them; the program, or the same command again, must finish."""
    begun, work = time.monotonic(), RAY[name]
    if importlib.util.find_spec("ray") is None:
        return Record(KIND, name, seed, MISSED, "ray is not installed")
    reference = shop.reference(work)
    coins = random.Random(f"{KIND} {name} {seed}")
    folder = shop.folder / "cases" / f"{KIND}-{name}-{seed}".replace(" ", "_")
    script = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("ray_cluster.py"))]
    environment = {**shop.environment(), "PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"}
    moment = coins.uniform(0.3, 0.8) * reference.seconds + 5.0  # the processes of Ray begin later
    hit, figures, wrong = False, dict[str, Any](), ""
    while not hit and not wrong and moment > 1.0:
        clean(folder)
        folder.mkdir(parents=True)
        words = [word.replace("FOLDER", str(folder)) for word in reference.words]
        words = [word for word in words if not word.startswith(("--jobs", "--workers"))]
        try:
            done = subprocess.run(
                [*script, str(moment), *words], cwd=ROOT, env=environment, capture_output=True, text=True,
                timeout=2 * LIMIT, check=False,
            )  # fmt: skip
            hit = "hit" in done.stdout.split()
            wrong = "" if done.returncode == 0 else f"status {done.returncode}: {done.stderr.strip()[-300:]}"
        except subprocess.TimeoutExpired:
            wrong = "the program did not end"
        figures = {"moment": round(moment, 2)}
        moment /= 2  # it had ended before
    wrong = shop.compare(work, folder) if not wrong else shop.finish(work, folder) and wrong
    if not wrong:
        clean(folder)
    outcome = LOST if wrong else SURVIVED if hit else MISSED
    return Record(KIND, name, seed, outcome, wrong, round(time.monotonic() - begun, 2), figures)
