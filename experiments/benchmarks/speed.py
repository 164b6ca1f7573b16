r"""Speed compared with the strongest peers, measured in turn and rendered as a page.

  python -m experiments.benchmarks.speed --peer_python=/path/to/python --allennlp_python=/path/to/python
  python -m experiments.benchmarks.speed --what=encode,one_text --peer_python=/path/to/python --texts=sentences.txt
  python -m experiments.benchmarks.speed --tiny --turns=1         # tries everything in small; keeps nothing
  python -m experiments.benchmarks.speed --what=render            # renders the page again
  python -m experiments.benchmarks.speed --what=utilisation       # of the accelerator at hand; no peer is needed
  python -m experiments.benchmarks.speed --gpu --what=encode,generate --peer_python=/path/to/python  # both on one GPU

The results are in docs/results/bench.json, the page is docs/results/speed.md with its Korean twin.
Each side is a process of its own: ours with this interpreter, the peer's with the one given, which needs torch and
transformers (`make peers`), AllenNLP or fastai. Both have the same weights, texts and cores (bind this program with
taskset to give them fewer). A figure that both sides report without training (a loss, vectors, the number of pieces)
must agree. Results are medians of at least seven turns; new ones replace the results of the same case, precision and
minor JAX.

Utilisation: the operations of the products of a training step (6 · weights · tokens, and attention; recomputation is
not counted) per second, divided by the peak that the maker of the chip states. --peak gives one that is not known here.

With --gpu both sides use the GPU at hand; the peer's encoder is compiled, its `generate` is not. The figures are
printed and written into --output, a line of JSON each, not into bench.json, whose results are of CPUs.
"""

import datetime
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import flags

from ..command_line.start import start
from ._page import render_pages
from ._results import (
    FEWEST,
    PRECISIONS,
    Comparison,
    Peer,
    describe_machine,
    median_ratio,
    merge,
    read_results,
    write_results,
)
from ._turns import Seconds, check_interpreter, start_cold, start_side, take_turns
from ._works import NAMES, WORKS, Work

FLAGS = flags.FLAGS
RESULTS = Path(__file__).parents[2] / "docs" / "results"
SPECIAL = ("render", "utilisation")


def define() -> None:
    """Define the flags."""
    flags.DEFINE_list("what", None, f"Of {', '.join((*NAMES, *SPECIAL))}. Default: all works whose peer is there.")
    flags.DEFINE_string("peer_python", None, "An interpreter with torch and transformers. Default: this one.")
    flags.DEFINE_string("allennlp_python", None, "An interpreter with torch and AllenNLP. Default: this one.")
    flags.DEFINE_string("fastai_python", None, "An interpreter with torch and fastai. Default: this one.")
    flags.DEFINE_integer("turns", FEWEST, f"Turns of each side; fewer than {FEWEST} are printed, but not kept.")
    flags.DEFINE_list("precisions", [*PRECISIONS], "Number formats, of those that a work is measured in.")
    flags.DEFINE_string("texts", None, "For encode and finetune: a file of texts, one per line.")
    flags.DEFINE_bool("gpu", False, "Measure on the GPU at hand; with --tiny on the CPU, to try the programs.")
    flags.DEFINE_bool("tiny", False, "Toy sizes, to try the programs; nothing is kept.")
    flags.DEFINE_string("results", None, "The folder of bench.json, speed.md and speed.ko.md. Default: docs/results.")
    flags.DEFINE_string("output", "utilisation.json", "For utilisation and --gpu: the file to write.")
    flags.DEFINE_float("peak", None, "For utilisation: the chip's peak in TFLOP/s of bfloat16 products.")
    flags.DEFINE_float("minutes", 7.0, "For utilisation: no new case begins after this time.")


def read_peer(work: Work) -> str:
    """Return the interpreter of a work's peer."""
    return FLAGS[work.peer].value or sys.executable


def check_same(work: Work, precision: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    """Raise if the two sides do not compute the same."""
    mine, peers = ours.get("check", []), theirs.get("check", [])
    limit = work.tolerance[precision]
    differences = [abs(a - b) / max(1.0, abs(b)) for a, b in zip(mine, peers, strict=True)]
    if not all(difference < limit for difference in differences):
        worst = f"{max(differences):.2g}"
        raise ValueError(f"{work.name}, {precision}: the sides do not compute the same; figures differ by {worst}")
    if ours.get("pieces") != theirs.get("pieces"):
        raise ValueError(f"{work.name}: ours reads {ours.get('pieces')} pieces, the peer {theirs.get('pieces')}")


def measure(work: Work, precision: str, folder: Path) -> tuple[Seconds, dict[str, Any], dict[str, Any]]:
    """Return the seconds of each pass, and what both sides say about themselves."""
    if work.side == "first_call":
        return measure_starts(work, folder, precision)
    gpu = FLAGS.gpu and not FLAGS.tiny
    with (
        start_side(sys.executable, f"ours.{work.side}", folder, precision, gpu) as (mine, ours),
        start_side(read_peer(work), f"peers.{work.side}", folder, precision, gpu) as (other, peer),
    ):
        check_same(work, precision, ours, peer)
        cases = list(work.on_gpu if FLAGS.gpu else work.cases)
        return take_turns(mine, other, cases, FLAGS.turns), dict(ours), dict(peer)


def measure_starts(work: Work, folder: Path, precision: str) -> tuple[Seconds, dict[str, Any], dict[str, Any]]:
    """Return the seconds of calls in new processes; a first start of each side fills the system's file cache."""
    cached = {"JAX_ENABLE_COMPILATION_CACHE": "true", "XDG_CACHE_HOME": str(folder / "caches")}
    seconds: Seconds = {name: ([], []) for name in work.cases}
    for turn in range(-1, FLAGS.turns):
        mine, ours = start_cold(sys.executable, "ours.first_call", folder, precision)
        again, _ = start_cold(sys.executable, "ours.first_call", folder, precision, cached)
        other, peer = start_cold(read_peer(work), "peers.first_call", folder, precision)
        if turn >= 0:
            for name, a, b in (("first", mine, other), ("cached", again, other), ("tenth", mine, other)):
                first = name.replace("cached", "first")
                seconds[name][0].append(a[first])
                seconds[name][1].append(b[first])
    return seconds, ours, peer


def compare(work: Work) -> Iterator[Comparison]:
    """Yield the comparisons of a work, after printing each; nothing that may not be kept."""
    for precision in [name for name in FLAGS.precisions if name in work.precisions]:
        with tempfile.TemporaryDirectory() as folder:
            work.prepare(Path(folder), FLAGS.tiny, FLAGS.texts)
            if FLAGS.gpu and not FLAGS.tiny:
                from ._inputs import enlarge

                enlarge(Path(folder), FLAGS.texts)
            seconds, ours, peer = measure(work, precision, Path(folder))
        named = Peer(**peer["peer"])
        for name, (mine, theirs) in seconds.items():
            case = (work.on_gpu if FLAGS.gpu else work.cases)[name]
            if FLAGS.texts and work.side in ("encode", "finetune"):
                case = f"{case} ({Path(FLAGS.texts).stem})"
            times = f"{named.name} {sorted(theirs)[len(theirs) // 2]:.4f} s, ours {sorted(mine)[len(mine) // 2]:.4f} s"
            ratio = f"ratio {median_ratio(mine, theirs):.3f} ({len(mine)} turns)"
            small = " in toy size" * FLAGS.tiny
            print(f"{work.name}{small}: {case}, {precision}: {times}, {ratio}", flush=True)
            if FLAGS.gpu:
                record_gpu(work, case, mine, theirs, ours, peer)
            elif not FLAGS.tiny and len(mine) >= FEWEST:
                yield Comparison(
                    work.name, case, precision, named, tuple(mine), tuple(theirs), describe_machine(),
                    ours["versions"], datetime.date.today().isoformat(),
                )  # fmt: skip


def record_gpu(
    work: Work, case: str, mine: Sequence[float], theirs: Sequence[float], ours: dict[str, Any], peer: dict[str, Any]
) -> None:
    """Add a line of JSON to `--output`."""
    line = {
        "work": work.name, "case": case, "tiny": FLAGS.tiny, "ours": statistics.median(mine),
        "theirs": statistics.median(theirs), "ratio": round(median_ratio(mine, theirs), 4), "turns": len(mine),
        "peer": peer["peer"], "device": peer["device"], "versions": ours["versions"],
        "date": datetime.date.today().isoformat(),
    }  # fmt: skip
    with open(FLAGS.output, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def choose_works(names: Sequence[str] | None) -> list[Work]:
    """Return the works; without a choice those whose peer's interpreter has what it needs, saying which are left."""
    chosen: list[Work] = []
    missing: dict[str, str] = {}
    for work in WORKS:
        if (work.on_gpu or not FLAGS.gpu) if names is None else work.name in names:
            if FLAGS.gpu and not work.on_gpu:
                possible = ", ".join(work.name for work in WORKS if work.on_gpu)
                raise ValueError(f"--gpu --what={work.name}: on a GPU, of {possible}")
            try:
                check_interpreter(read_peer(work), work.modules, work.peer)
                chosen.append(work)
            except ValueError as error:
                if names is not None:
                    raise
                missing[work.name] = str(error)
    for name, reason in missing.items():
        print(f"{name} is left out: {reason}", file=sys.stderr)
    if not chosen:
        raise ValueError("no peer is there to compare with: run `make peers`, or give --peer_python=/path/to/python")
    return chosen


def main() -> None:
    """Measure, add the results to the file, and render the page."""
    if unknown := set(FLAGS.what or ()) - {*NAMES, *SPECIAL}:
        raise ValueError(f"--what={','.join(sorted(unknown))} is not known; it is of {', '.join((*NAMES, *SPECIAL))}")
    if FLAGS.what == ["utilisation"]:
        from ._utilisation import measure_utilisation

        measure_utilisation(Path(FLAGS.output), tiny=FLAGS.tiny, peak=FLAGS.peak, minutes=FLAGS.minutes)
        return
    if FLAGS.what and set(FLAGS.what) & set(SPECIAL) and len(FLAGS.what) > 1:
        raise ValueError(f"--what={','.join(FLAGS.what)}: {' and '.join(SPECIAL)} stand alone")
    if FLAGS.gpu and not FLAGS.tiny and shutil.which("nvidia-smi") is None:
        raise ValueError("--gpu: there is no GPU here (no nvidia-smi); with --tiny the programs are tried on the CPU")
    folder = Path(FLAGS.results or RESULTS)
    file, count = folder / "bench.json", 0
    if FLAGS.what != ["render"]:
        works = choose_works(FLAGS.what)
        if hasattr(os, "getloadavg") and (load := os.getloadavg()[0]) > 0.5:
            print(f"other programs are running (load {load:.1f}): they disturb these times", file=sys.stderr)
        import jax

        jax.config.update("jax_platforms", "cpu")
        for work in works:
            for result in compare(work):  # each is kept at once: the next may fail
                write_results(file, merge(read_results(file), [result]))
                count += 1
        if FLAGS.gpu:
            print(f"{FLAGS.output}: a line for each case")
            return
        if not count:
            print(f"nothing is kept: results need full sizes and {FEWEST} turns")
            return
        print(f"{file}: {count} results")
    for page in render_pages(folder, read_results(file)):
        print(f"{page}: rendered")


if __name__ == "__main__":
    start("benchmarks.speed", define, main, stopped="stopped; the results so far are kept")
