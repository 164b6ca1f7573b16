r"""Run a sweep: all runs of a paper's table, side by side, and the table that they come to.

  python -m experiments.sweep --sweep=experiments/sweeps/bert_table8.py --jobs=2 --workdir=runs/sweeps
  python -m experiments.sweep --sweep=experiments/sweeps/elmo_table2.py --scale=laptop --data=data \
      --workdir=runs/sweeps --jobs=2
  python -m experiments.sweep --sweep=… --scale=one_gpu --data=data --workdir=runs/sweeps --devices=0,1,2,3
  python -m experiments.sweep --sweep=… --scale=paper --data=/shared/data --workdir=/shared/sweeps --runner=ray \
      --resources=GPU=1

Every point of a sweep is the run of a program, which --runner=print prints as commands, stage by stage. What is done is
not done again: the same command goes on where a stopped or killed sweep was, a changed definition runs again only what
it changes, and sweeps of one --workdir share their pretraining. The table stands in WORKDIR/NAME-SCALE/ (table.md,
table.csv, costs.csv, report.html), and is written whenever a run is done. Exit status: 0 done, 1 some points failed,
2 refused, 75 asked to stop and saved. A GPU that is lent in slices: `timeout --preserve-status 540 python -m …` saves
after nine minutes, and ends with 75 for as long as there is more to do.
"""

import shlex
import sys
from pathlib import Path

from absl import flags

from bert_elmo_jax import train
from bert_elmo_jax.sweeps.checks import check_data, check_points, check_same_data
from bert_elmo_jax.sweeps.definition import SCALES, read_sweep
from bert_elmo_jax.sweeps.forks import Forks, Runner
from bert_elmo_jax.sweeps.points import Places
from bert_elmo_jax.sweeps.print_runner import commands
from bert_elmo_jax.sweeps.ray_runner import RayTasks, resources_of
from bert_elmo_jax.sweeps.run_sweep import run_sweep
from bert_elmo_jax.sweeps.toy_tasks import write_made
from experiments.command_line.endings import endings
from experiments.command_line.start import start

flags.DEFINE_string("sweep", None, "A file of experiments/sweeps.")
flags.DEFINE_enum("scale", "toy", SCALES, "Minutes of two cores, an hour of them, a day of a GPU, or the paper's size.")
flags.DEFINE_string("workdir", None, "Where everything comes to lie; several sweeps share what they have in common.")
flags.DEFINE_string("data", None, "The folder of real data; the sweep's file says what lies there under which name.")
flags.DEFINE_enum("runner", "local", ["local", "ray", "print"], "This machine, a Ray cluster, or commands for others.")
flags.DEFINE_integer("jobs", None, "Points at a time, sharing the cores; usually one a device, on Ray as many as fit.")
flags.DEFINE_list("devices", [], "Numbers of GPUs or TPU chips, one for each job; none for a CPU.")
flags.DEFINE_integer("retries", 1, "How often a point is tried again that failed.")
flags.DEFINE_string("address", None, "Of a Ray cluster; auto: that of this machine. Without it, one is started here.")
flags.DEFINE_list("resources", [], "What Ray must have free for a point: GPU=1, or any resource of the cluster.")
FLAGS = flags.FLAGS
HEADINGS = {"sweep": "The sweep", "runner": "Where it runs"}


def sweep_of_flags() -> int:
    """Run the sweep that the flags ask for; the exit status."""
    if not FLAGS.sweep or not FLAGS.workdir:
        raise ValueError("--sweep=experiments/sweeps/….py and --workdir=… are needed")
    for name, given, least in (("jobs", FLAGS.jobs, 1), ("retries", FLAGS.retries, 0)):
        if given is not None and given < least:
            raise ValueError(f"--{name}={given}: expected {least} or more")
    sweep = read_sweep(FLAGS.sweep, FLAGS.scale)
    data = Path(FLAGS.data).expanduser().absolute() if FLAGS.data else None
    places = Places(Path(FLAGS.workdir).expanduser().absolute(), data)
    check_data(sweep, places)
    write_made(places.workdir / "tasks", [file for point in sweep.points for file in point.files if file.made])
    check_same_data(sweep, places)
    check_points(sweep, places)
    command = shlex.join(["python", "-m", "experiments.sweep", *sys.argv[1:]])
    if FLAGS.runner == "print":
        print(commands(sweep, places, command))
        return 0
    with train.only_process(places.workdir / sweep.folder):
        if FLAGS.runner == "ray":
            runner: Runner = RayTasks(FLAGS.address, resources_of(FLAGS.resources), FLAGS.jobs, places.workdir)
        else:
            jobs = FLAGS.jobs or max(1, len(FLAGS.devices))
            runner = Forks(jobs, FLAGS.devices, places.workdir / "compiled")
        here = f"devices {', '.join(FLAGS.devices)}" if FLAGS.devices else "this machine"
        where = "a Ray cluster" if FLAGS.runner == "ray" else here
        try:
            return run_sweep(sweep, places, runner, FLAGS.retries, command, where)
        finally:
            runner.close()


def main(argv: list[str]) -> None:
    """The program: every expected trouble ends in one message and a status of its own."""
    with endings("sweep", argv, "--sweep=… --scale=… --workdir=…", "stopped; the same command goes on from there"):
        sys.exit(sweep_of_flags())


if __name__ == "__main__":
    start(main, "sweep", HEADINGS)
