r"""Everything once, small: a toy BERT and a toy ELMo are pretrained, put to use, and held against none.

  python -m experiments.quickstart
  python -m experiments.quickstart --workdir=runs/quickstart --open=false

Minutes on two cores, without a download. The text is the toy world's, English and Korean, of which the best
possible score is known. What comes out is one page, `report.html` in the run directory: what both learned, what that is
worth on three tasks, and the command that made each part; a part's `log.txt` says how it went. Stopped at any moment,
the same command goes on. Exit status: 0 done, 1 a part failed, 2 refused, 75 asked to stop and saved.
"""

import os
import webbrowser
from pathlib import Path

import jax
from absl import flags

from bert_elmo_jax import train
from bert_elmo_jax.inference.toy_worlds import worlds_of
from bert_elmo_jax.quickstart.page import write_quickstart_report
from bert_elmo_jax.quickstart.parts import Folder, Sizes, parts_of, read_words
from bert_elmo_jax.quickstart.progress import Progress, seconds
from bert_elmo_jax.quickstart.tasks import write_tasks
from bert_elmo_jax.runs.starting_weights import may_have_accelerator, say
from bert_elmo_jax.sweeps.fork_server import PRELOADED
from bert_elmo_jax.sweeps.forks import Forks
from bert_elmo_jax.sweeps.schedule import facts_of, run_points, seconds_of
from bert_elmo_jax.sweeps.stop_signals import stop_asked
from experiments.command_line.endings import endings
from experiments.command_line.start import start

flags.DEFINE_string("workdir", "runs/quickstart", "Where everything comes to lie.")
flags.DEFINE_bool("open", True, "Open the report in a browser, where there is one.")
FLAGS = flags.FLAGS


def jobs_here() -> int:
    """Two parts at a time on a CPU of two cores or more; an accelerator is one process's."""
    return 1 if may_have_accelerator() or (os.cpu_count() or 1) < 2 else 2


def quickstart(workdir: Path, sizes: Sizes | None = None, jobs: int = 1) -> int:
    """Make every part that is not there yet, and the page; the exit status."""
    sizes = sizes or Sizes()
    parts, folder = parts_of(workdir, sizes), Folder(workdir)
    worlds = [*worlds_of(read_words(parts[0].words).config.to_dict()).values()]
    where = f"two at a time on the {os.cpu_count()} cores here" if jobs > 1 else "one after the other on this machine"
    say(f"{workdir}: {len(parts)} parts, {where}; {workdir / 'report.html'} will show them")
    write_tasks(workdir / "tasks", worlds, sizes.examples)
    runner = Forks(jobs, cache=workdir / "compiled", preloaded=(*PRELOADED, "bert_elmo_jax.runs.side_by_side"))
    progress = Progress(parts, folder, jobs)
    with stop_asked() as stop:
        try:  # the longest first, so that none is left alone at the end
            state = run_points(
                sorted(parts, key=seconds, reverse=True), folder, runner, retries=0, tick=progress.tick,
                changed=progress.changed, say=progress.say, stop=stop,
            )  # fmt: skip
        finally:
            runner.close()
            progress.close()
    if state.stopping:
        say("stopped; the same command goes on from there")
        return train.STOPPED
    if state.failed:
        return 1
    say("the report")
    jax.config.update("jax_compilation_cache_dir", str((workdir / "compiled").absolute()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    times = {part.name: seconds_of(facts_of(folder.run(part))) for part in parts}
    say(f"{write_quickstart_report(workdir, parts, worlds, times)}: open it in a browser")
    return 0


def main(argv: list[str]) -> None:
    """The program: every expected trouble ends in one message and a status of its own."""
    with endings("quickstart", argv, "--workdir=…", "stopped; the same command goes on from there"):
        workdir = Path(FLAGS.workdir)
        with train.only_process(workdir):
            status = quickstart(workdir, jobs=jobs_here())
        if not status and FLAGS.open:
            webbrowser.open((workdir / "report.html").absolute().as_uri())
        raise SystemExit(status)


if __name__ == "__main__":
    start(main, "quickstart")
