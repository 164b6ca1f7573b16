r"""Pretrain a model of any family, from scratch or from given weights.

  python -m experiments.pretrain --config=bert:toy --workdir=runs/bert_toy
  python -m experiments.pretrain --config=bert:base --config.data=data/wiki --workdir=runs/base
  python -m experiments.pretrain --config=bert:base --config.data=data/law \
      --init=google-bert/bert-base-uncased --workdir=runs/law
  python -m experiments.pretrain --config=transformer:toy --workdir=runs/transformer_toy
  python -m experiments.pretrain --config=elmo:original --config.data=data/1b \
      --workdir=runs/original

`--config.data` is a folder that `prepare_data` has written (several with weights: a=3,b=1), or `toyworld`. The same
command resumes a run that was stopped or killed. Exit status: 0 done, 2 refused, 75 stopped on request and saved, 76
diverged.
"""

from pathlib import Path

from absl import flags
from ml_collections import ConfigDict

from bert_elmo_jax.runs.pretraining import pretrain
from bert_elmo_jax.runs.start_run import join_processes

from .command_line.start import show_command, start

FLAGS = flags.FLAGS


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("config", None, "A recipe, such as bert:base or my_recipes.py:mine.")
    flags.DEFINE_string("workdir", None, "The run directory, new or to be resumed.", required=True)
    flags.DEFINE_string("init", None, "Weights to start from: anything `load` understands.")
    flags.DEFINE_enum("language", None, ["en", "ko"], "Of the report. Default: the locale's.")
    flags.DEFINE_list("track", [], "Trackers that get the figures and the report: mlflow, wandb.")
    flags.DEFINE_enum("parallel", "jit", ["jit", "pmap"], "How several devices share the work.")
    flags.DEFINE_string("coordinator", None, "For several processes: host:port of the first, or auto on a TPU pod.")
    flags.DEFINE_integer("processes", None, "With --coordinator=host:port, the number of processes.", 1)
    flags.DEFINE_integer("process", None, "With --coordinator=host:port, the number of this process, from 0.", 0)


def main(config: ConfigDict) -> int:
    """Run or continue the pretraining."""
    if FLAGS.coordinator and FLAGS.parallel == "pmap":
        raise ValueError("--parallel=pmap is for the devices of one process; use --parallel=jit with --coordinator")
    join_processes(FLAGS.coordinator, FLAGS.processes, FLAGS.process)
    options = {"language": FLAGS.language, "command": show_command("pretrain"), "track": FLAGS.track}
    return pretrain(config, Path(FLAGS.workdir), init=FLAGS.init, parallel=FLAGS.parallel, **options)


if __name__ == "__main__":
    headings = {"config": "The run", "parallel": "Several devices, several hosts"}
    start("pretrain", define, main, headings)
