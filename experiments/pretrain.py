r"""Pretrain a model of any family, from scratch or from given weights.

  python -m experiments.pretrain --config=experiments/configs/bert.py:toy --workdir=runs/bert_toy
  python -m experiments.pretrain --config=experiments/configs/elmo.py:toy --workdir=runs/elmo_toy
  python -m experiments.pretrain --config=experiments/configs/bert.py:base --config.data=data/law \
      --init=google-bert/bert-base-uncased --workdir=runs/law

`--config.data` is a folder written by `prepare_data` (several with weights: a=3,b=1), or `toyworld`. The same command
resumes a run that was stopped or killed. Exit status: 0 done, 2 refused, 75 asked to stop and saved, 76 diverged.
"""

import sys
from pathlib import Path

import jax
from absl import flags
from ml_collections import config_flags

from bert_elmo_jax.runs.pretraining import pretrain
from experiments.command_line.endings import endings
from experiments.command_line.start import start

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Define the flags."""
    config_flags.DEFINE_config_file("config", None, "A file of experiments/configs, with a recipe: bert.py:base.")
    flags.DEFINE_string("workdir", None, "The run directory, new or to be resumed.")
    flags.DEFINE_string("init", None, "Weights to begin with: anything `load` understands.")
    flags.DEFINE_enum("parallel", "jit", ["jit", "pmap"], "How several devices share the work.")
    flags.DEFINE_string("coordinator", None, "For several processes: host:port of the first, or auto on a TPU pod.")
    flags.DEFINE_integer("process", None, "The number of this process, from 0.")
    flags.DEFINE_integer("processes", None, "The number of processes.")


def main(argv: list[str]) -> None:
    """Pretrain as the flags say."""
    with endings(
        "pretrain", argv, "--config=… --workdir=…", "stopped; the same command resumes from the last checkpoint"
    ):
        if not FLAGS.config or not FLAGS.workdir:
            raise ValueError("--config=experiments/configs/….py and --workdir=… are needed")
        if FLAGS.coordinator and FLAGS.parallel == "pmap":
            raise ValueError("--parallel=pmap is for the devices of one process; use --parallel=jit with --coordinator")
        if FLAGS.coordinator:
            given = {} if FLAGS.coordinator == "auto" else {"coordinator_address": FLAGS.coordinator}
            jax.distributed.initialize(**given, num_processes=FLAGS.processes, process_id=FLAGS.process)
        sys.exit(pretrain(FLAGS.config, Path(FLAGS.workdir), init=FLAGS.init, parallel=FLAGS.parallel))


if __name__ == "__main__":
    define_flags()
    start(main, "pretrain", {"config": "The run", "parallel": "Several devices, several hosts"})
