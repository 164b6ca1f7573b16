r"""Everything once, small: a toy BERT and a toy ELMo are pretrained, put to use, and held against none.

  python -m experiments.quickstart
  python -m experiments.quickstart --workdir=runs/quickstart --open=false

Minutes on two cores, without a download. The text is the toy world's, English and Korean, of which the best
possible score is known. What comes out is one page, `report.html` in the run directory: what both learned, what that is
worth on three tasks, and the command that made each part. Stopped at any moment, the same command goes on.
"""

import json
import time
import webbrowser
from pathlib import Path

import jax
from absl import flags

from bert_elmo_jax import train
from bert_elmo_jax.data.npy import write_json
from experiments import pretrain_bert, pretrain_elmo, pretraining
from experiments.command_line import start
from experiments.endings import endings
from experiments.quickstart_parts import Part, Sizes, parts_of, read_words, write_tasks
from experiments.quickstart_report import write_quickstart_report
from experiments.quickstart_transfer import RESULT, transfer
from experiments.starting_weights import devices, say
from experiments.toy_worlds import worlds_of

flags.DEFINE_string("workdir", "runs/quickstart", "Where everything comes to lie.")
flags.DEFINE_bool("open", True, "Open the report in a browser, where there is one.")
FLAGS = flags.FLAGS

TASK_OF = {"pretrain_bert": pretrain_bert.task_of, "pretrain_elmo": pretrain_elmo.task_of}
USUAL = {"pretrain_bert": 71, "pretrain_elmo": 70, "finetune": 20}  # seconds of two cores, for the time left
TIMES = "seconds.json"


def quickstart(workdir: Path, sizes: Sizes | None = None) -> int:
    """Make every part that is not there yet, and the page; the exit status."""
    sizes = sizes or Sizes()
    parts = parts_of(workdir, sizes)
    worlds = [*worlds_of(read_words(parts[0]).config.to_dict()).values()]
    say(f"{workdir}: {len(parts)} parts, on {devices()}; {workdir / 'report.html'} will show them")
    write_tasks(workdir / "tasks", worlds, sizes.examples)
    file = workdir / TIMES
    times: dict[str, float] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    for number, part in enumerate(parts, start=1):
        if is_done(workdir, part):
            continue
        say(f"\npart {number} of {len(parts)}{left(parts[number - 1 :], parts, times)}\n{part.command}")
        began = time.perf_counter()
        status = make(workdir, part)
        times[part.name] = times.get(part.name, 0.0) + time.perf_counter() - began
        write_json(file, times)
        if status:
            return status
    say("\nthe report")
    say(f"{write_quickstart_report(workdir, parts, worlds, times)}: open it in a browser")
    return 0


def is_done(workdir: Path, part: Part) -> bool:
    """Whether a part needs nothing more: the last thing that it writes is there."""
    return (workdir / part.name / (RESULT if part.task else "report.html")).is_file()


def make(workdir: Path, part: Part) -> int:
    """Run one part; the exit status."""
    if part.task:
        transfer(part, workdir / part.name)
        return 0
    given = read_words(part)
    return pretraining.pretrain(given.config, workdir / part.name, None, TASK_OF[part.program], part.program)


def left(following: list[Part], parts: list[Part], times: dict[str, float]) -> str:
    """How long the rest will take, at the speed of what is done.

    >>> parts = parts_of(Path("runs/quickstart"), Sizes())
    >>> left(parts[1:], parts, {"bert": 220.0}), left(parts, parts, {})
    (', about 16 minutes left', ', about 6 minutes left')
    """
    usual = sum(USUAL[part.program] for part in following)
    timed = [part for part in parts if part not in following and part.name in times]
    pace = sum(times[p.name] for p in timed) / sum(USUAL[p.program] for p in timed) if timed else 1.0
    minutes = round(usual * pace / 60)
    return f", about {minutes} minutes left" if minutes > 1 else ", a minute left"


def main(argv: list[str]) -> None:
    """The program: every expected trouble ends in one message and a status of its own."""
    with endings("quickstart", argv, "--workdir=…", "stopped; the same command goes on from there"):
        workdir = Path(FLAGS.workdir)
        jax.config.update("jax_compilation_cache_dir", str((workdir / "compiled").absolute()))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)  # the same small functions for each task
        with train.only_process(workdir):
            status = quickstart(workdir)
        if not status and FLAGS.open:
            webbrowser.open((workdir / "report.html").absolute().as_uri())
        raise SystemExit(status)


if __name__ == "__main__":
    start(main, "quickstart")
