"""One start of the quickstart: its task files, its runs, and its page."""

import os
from pathlib import Path

from bert_elmo_jax import train
from bert_elmo_jax.inference.toy_worlds import load_worlds
from bert_elmo_jax.quickstart.page import write_quickstart_report
from bert_elmo_jax.quickstart.parts import QuickstartFolders, Sizes, list_parts, write_tasks
from bert_elmo_jax.runs.start_run import cache_compiled, may_have_accelerator, say
from bert_elmo_jax.sweeps.processes import Processes, stop_asked
from bert_elmo_jax.sweeps.schedule import Progress, run_points


def run_quickstart(workdir: Path, sizes: Sizes | None = None, jobs: int | None = None) -> int:
    """Run every part that is not done, and write the page; return the exit status.

    By default two parts run at a time on a CPU with two cores or more, and one on an accelerator.
    """
    jobs = jobs or (1 if may_have_accelerator() or (os.cpu_count() or 1) < 2 else 2)
    sizes = sizes or Sizes()
    parts, folders = list_parts(sizes), QuickstartFolders(workdir)
    worlds = [*load_worlds(parts[0].point.resolved.to_dict()).values()]
    with train.only_process(workdir):
        where = f"two at a time on {os.cpu_count()} cores" if jobs > 1 else "one after the other on this machine"
        say(f"{workdir}: {len(parts)} parts, {where}; {workdir / 'report.html'} will show them")
        write_tasks(workdir / "tasks", worlds, sizes.examples)
        usual = {part.point.identity: part.seconds for part in parts}
        runner = Processes(jobs, cache=workdir / "compiled")
        progress = Progress(folders, jobs, lambda point: usual[point.identity])
        # The longest first, so that none is left alone at the end.
        points = [part.point for part in sorted(parts, key=lambda part: part.seconds, reverse=True)]
        with stop_asked() as stop:
            try:
                state = run_points(
                    points, folders, runner, retries=0, tick=progress.tick, changed=progress.changed,
                    say=progress.say, stop=stop,
                )  # fmt: skip
            finally:
                runner.close()
                progress.close()
        if state.stopping:
            say("stopped; the same command continues")
            return train.STOPPED
        if state.failed:
            return 1
        say("the report")
        cache_compiled(workdir / "compiled")
        say(f"{write_quickstart_report(folders, parts, worlds)}: open it in a browser")
    return 0
