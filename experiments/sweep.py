r"""Run a sweep: all runs of a paper's table, side by side, and the table of their results.

  python -m experiments.sweep --sweep=elmo_table2 --scale=laptop --data=data --workdir=runs/sweeps --jobs=2
  python -m experiments.sweep --sweep=… --scale=one_gpu --data=data --workdir=runs/sweeps --devices=0,1,2,3
  python -m experiments.sweep --sweep=… --scale=paper --data=/shared/data --workdir=/shared/sweeps --runner=ray

Each point of a sweep is a run of a program; --runner=print prints the commands of all points, stage by stage. The same
command resumes a sweep that was stopped or killed, a changed definition reruns only what it changes, and sweeps in one
--workdir share their pretraining. WORKDIR/NAME-SCALE/ has the table (table.md, table.csv, costs.csv, report.html),
rewritten whenever a run ends. Exit status: 0 done, 1 some points failed, 2 refused, 75 stopped on request and saved:
`timeout --preserve-status 540 python -m …` exits with 75 until all is done.
"""

import shlex
import sys

from absl import flags

from bert_elmo_jax.programs import show_program
from bert_elmo_jax.sweeps.new_sweep import write_example
from bert_elmo_jax.sweeps.run_sweep import run_sweep

from .command_line.start import read_values, start

FLAGS = flags.FLAGS
NAMES = "workdir scale data runner jobs devices retries address resources track language".split()


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("sweep", None, "A sweep by name, such as bert_table5, or your own file.")
    flags.DEFINE_string("new", None, "Write an example of your own sweep on your own csv to this file, and end.")
    flags.DEFINE_string("scale", None, "toy, laptop, one_gpu, paper (minutes to days), or one of your sweep's SCALES.")
    flags.DEFINE_string("workdir", None, "The folder of all runs; sweeps in it share their common runs.")
    flags.DEFINE_string("data", None, "The folder of real data; a sweep without it names its files.")
    flags.DEFINE_list("track", [], "Trackers that get the figures and report of each run: mlflow, wandb.")
    flags.DEFINE_enum("language", None, ["en", "ko"], "Of the report. Default: the locale's.")
    flags.DEFINE_enum("runner", "local", ["local", "ray", "print"], "This machine, a Ray cluster, or printed commands.")
    flags.DEFINE_integer("jobs", None, "Points at a time: by default one per device, on Ray as many as fit.", 1)
    flags.DEFINE_list("devices", [], "Numbers of GPUs or TPU chips, one for each job; none for a CPU.")
    flags.DEFINE_integer("retries", 1, "How often a failed point is tried again.", lower_bound=0)
    flags.DEFINE_string("address", None, "Of a Ray cluster; auto: this machine's. By default a new one starts here.")
    flags.DEFINE_list("resources", [], "What Ray reserves for each point: GPU=1, or any resource of the cluster.")


def main() -> int:
    """Run or resume the sweep, or write an example."""
    if FLAGS.new and not FLAGS.sweep:
        print(write_example(FLAGS.new))
        return 0
    if FLAGS.new or not (FLAGS.sweep and FLAGS.workdir):
        raise ValueError("--sweep=… and --workdir=… are needed; --new=my_sweep.py, without them, writes an example")
    command = f"{show_program('sweep')} {shlex.join(sys.argv[1:])}"
    return run_sweep(FLAGS.sweep, command=command, **read_values(NAMES))


if __name__ == "__main__":
    headings, hint = {"sweep": "The sweep", "runner": "Where it runs"}, "use --sweep=… --workdir=…"
    start("sweep", define, main, headings, hint=hint, stopped="stopped; the same command resumes")
