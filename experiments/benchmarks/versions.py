r"""Speed compared with an earlier version of this project, both measured in turn on this machine.

  python -m experiments.benchmarks.versions --base=a06bcd41
  python -m experiments.benchmarks.versions --base=a06bcd41 --what=step,finetune --pairs=3
  python -m experiments.benchmarks.versions --base=../older --tiny

--base is a commit of this checkout, or the folder of another one. The program measures the works of
`benchmarks.speed`, without its peers: for each, two processes with the same interpreter, one with this code and one
with the code of --base, load the same random weights and take turns. Two processes with the same code differ by a
few percent, because memory lies differently in each; where that matters, --pairs starts several pairs, and the ratio is
the median of theirs.
"""

import contextlib
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from absl import flags

from ..command_line.start import start
from ._results import FEWEST, PRECISIONS, median_ratio
from ._turns import ROOT, Seconds, SideFailed, environment, start_cold, start_side, take_turns
from ._works import NAMES, WORKS, Work

FLAGS = flags.FLAGS
PREPARE = """
import json, sys
from pathlib import Path
from experiments.benchmarks._works import WORKS
name, cases, tiny, folder = json.loads(sys.argv[1])
works = [work for work in WORKS if work.name == name and list(work.cases.values()) == cases]
if works:
    works[0].prepare(Path(folder), tiny, None)
print(len(works))
"""


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("base", None, "The other version: a commit of this checkout, or the folder of another one.")
    flags.DEFINE_list("what", NAMES, f"Of {', '.join(NAMES)}.")
    flags.DEFINE_integer("turns", FEWEST, "Turns of each pair of processes.", lower_bound=1)
    flags.DEFINE_integer("pairs", 1, "Pairs of processes, for each work.", lower_bound=1)
    flags.DEFINE_list("precisions", [*PRECISIONS], "Number formats, of those that a work is measured in.")
    flags.DEFINE_bool("tiny", False, "Toy sizes, to try the programs.")


@contextlib.contextmanager
def unpack_base(base: str) -> Iterator[Path]:
    """Yield a folder with the code of the other version: `base` itself, or the files of a commit."""
    if (Path(base) / "experiments" / "benchmarks" / "_side.py").is_file():
        yield Path(base).resolve()
        return
    if Path(base).is_dir():
        raise ValueError(f"--base={base}: this folder is no checkout of this project with its benchmarks")
    words = ["git", "-C", str(ROOT), "archive", "--format=tar", f"{base}^{{commit}}", "bert_elmo_jax", "experiments"]
    try:
        packed = subprocess.run(words, check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", b"").decode("utf-8", "replace").strip() or str(error)
        raise ValueError(f"--base={base} is neither a folder nor a commit of {ROOT}: {reason}") from None
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder)


def prepare(work: Work, root: Path, folder: Path) -> bool:
    """Let the code at `root` write a work's inputs; return whether it has this work."""
    request = json.dumps([work.name, list(work.cases.values()), FLAGS.tiny, str(folder)])
    words = [sys.executable, "-c", PREPARE, request]
    done = subprocess.run(words, cwd=root, env=environment(root=root), stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SideFailed(f"{work.name}: the inputs could not be written by {root}; its message is above")
    return done.stdout.split()[-1] != "0"


def time_pair(work: Work, precision: str, roots: Sequence[Path], folders: Sequence[Path]) -> tuple[Seconds, float]:
    """Return the seconds of each pass of both versions, and the largest difference of the figures they report."""
    with (
        start_side(sys.executable, f"ours.{work.side}", folders[0], precision, root=roots[0]) as (new, ours),
        start_side(sys.executable, f"ours.{work.side}", folders[1], precision, root=roots[1]) as (old, theirs),
    ):
        figures = zip(ours.get("check", []), theirs.get("check", []), strict=True)
        difference = max((abs(a - b) for a, b in figures), default=0.0)
        return take_turns(new, old, list(work.cases), FLAGS.turns), difference


def time_starts(work: Work, precision: str, roots: Sequence[Path], folders: Sequence[Path]) -> tuple[Seconds, float]:
    """Return the seconds of calls in new processes; a first start of each fills the caches and is not counted."""
    seconds: Seconds = {name: ([], []) for name in work.cases}
    for turn in range(-1, FLAGS.turns):
        for side in (0, 1) if turn % 2 else (1, 0):
            cached = {"JAX_ENABLE_COMPILATION_CACHE": "true", "XDG_CACHE_HOME": str(folders[side] / "caches")}
            fresh, _ = start_cold(sys.executable, "ours.first_call", folders[side], precision, root=roots[side])
            again, _ = start_cold(sys.executable, "ours.first_call", folders[side], precision, cached, roots[side])
            if turn >= 0:
                for name, value in (("first", fresh["first"]), ("cached", again["first"]), ("tenth", fresh["tenth"])):
                    seconds[name][side].append(value)
    return seconds, 0.0


def compare(work: Work, precision: str, roots: Sequence[Path]) -> None:
    """Measure a work in one precision, and print a line for each of its cases."""
    ratios: dict[str, list[float]] = {name: [] for name in work.cases}
    times: Seconds = {name: ([], []) for name in work.cases}
    difference = 0.0
    with tempfile.TemporaryDirectory() as parent:
        folders = [Path(parent) / "new", Path(parent) / "old"]
        for root, folder in zip(roots, folders, strict=True):
            folder.mkdir()
            if not prepare(work, root, folder):
                print(f"{work.name}: {', '.join(work.cases.values())}: not in {FLAGS.base}", flush=True)
                return
        for _ in range(FLAGS.pairs):
            measure = time_starts if work.side == "first_call" else time_pair
            seconds, largest = measure(work, precision, roots, folders)
            difference = max(difference, largest)
            for name, (new, old) in seconds.items():
                ratios[name].append(median_ratio(new, old))
                times[name][0].extend(new)
                times[name][1].extend(old)
    for name, case in work.cases.items():
        after, before = map(statistics.median, times[name])
        spread = f", {min(ratios[name]):.3f} to {max(ratios[name]):.3f}" if FLAGS.pairs > 1 else ""
        named = f"{work.name}{' in toy size' * FLAGS.tiny}: {case}, {precision}: {FLAGS.base} {before:.4f} s"
        turns = f"({FLAGS.pairs} × {FLAGS.turns} turns{spread})"
        ratio = f"ratio {statistics.median(ratios[name]):.3f} {turns}; figures differ by {difference:.2g}"
        print(f"{named}, this {after:.4f} s, {ratio}", flush=True)


def main() -> None:
    """Measure every work in every precision."""
    if not FLAGS.base:
        raise ValueError("--base=… is needed: a commit, such as HEAD~1, or the folder of another checkout")
    if unknown := set(FLAGS.what) - {*NAMES}:
        raise ValueError(f"--what={','.join(sorted(unknown))} is not known; it is of {', '.join(NAMES)}")
    if hasattr(os, "getloadavg") and (load := os.getloadavg()[0]) > 0.5:
        print(f"other programs are running (load {load:.1f}): they disturb these times", file=sys.stderr)
    with unpack_base(FLAGS.base) as base:
        for work in WORKS:
            for precision in [name for name in FLAGS.precisions if name in work.precisions and work.name in FLAGS.what]:
                compare(work, precision, (ROOT, base))


if __name__ == "__main__":
    start("benchmarks.versions", define, main, stopped="stopped; the lines so far are whole")
