r"""Before renting hardware: compile a config's training step for devices that are not there; what would it take?

  python -m experiments.plan --config=experiments/configs/bert_base.py --topology=v5e:16x16
  python -m experiments.plan --config=experiments/configs/bert_large.py --topology=v5e:2x4 \
      --config.model.dtype=bfloat16 --config.mesh.fsdp=8
  python -m experiments.plan --config=experiments/configs/bert_tiny.py --topology=cpu:8 --memory=4

A TPU slice needs the extra `tpu` (its compiler runs on any x86 host) and no TPU; `cpu:8` is eight simulated devices.
It is the step of the pretraining programs, compiled from shapes: nothing is computed, read or downloaded. What text
decides is taken at its most (for ELMo, every word of a batch another, and as long as may be). Times are what the chip's
published peaks allow, one at a time and fully used: no prediction, most steps are slower. A compilation takes minutes
for a large model, and `--tries` bounds how many there are. Exit status: 0 it fits, 1 it does not, 2 refused.
"""

import sys

import jax
from absl import flags
from ml_collections import config_flags

from bert_elmo_jax.plan.chips import GIB, topology_of
from bert_elmo_jax.plan.plan import plan, say
from experiments.command_line.endings import endings
from experiments.command_line.start import start

config_flags.DEFINE_config_file("config", None, "A file of experiments/configs.")
flags.DEFINE_string("topology", None, "A slice of a TPU, such as v5e:2x4, or simulated devices, such as cpu:8.")
flags.DEFINE_integer("vocab_size", None, "Default: that of config.data; without data 30,522 (BERT), 793,471 (ELMo).")
flags.DEFINE_float("memory", None, "GiB that a device may use. Default: what the TPU's compiler finds; cpu: no limit.")
flags.DEFINE_integer("tries", 6, "Compilations that the search for the largest batch of a phase may take; 0: none.")
FLAGS = flags.FLAGS


USAGE = "--config=experiments/configs/….py --topology=v5e:2x4 (or cpu:8), --tries=0 or more"


def main(argv: list[str]) -> None:
    """The program."""
    with endings("plan", argv, USAGE):
        if not FLAGS.config or not FLAGS.topology or FLAGS.tries < 0:
            raise ValueError(f"use {USAGE}")
        jax.config.update("jax_platforms", "cpu")  # no other device is needed, or to be kept from those who use it
        topology = topology_of(FLAGS.topology)
        file = config_flags.get_config_filename(FLAGS["config"])
        say(f"compiling the step of {file} for {FLAGS.topology}, on this machine's processor; nothing is written")
        memory = None if FLAGS.memory is None else FLAGS.memory * GIB
        sys.exit(0 if plan(FLAGS.config, topology, FLAGS.vocab_size, memory, FLAGS.tries) else 1)


if __name__ == "__main__":
    start(main, "plan")
