r"""Before renting hardware: compile a config's training step for devices that are not here, and report what it needs.

  python -m experiments.plan --config=bert:base --topology=v5e:16x16
  python -m experiments.plan --config=bert:large --topology=v5e:2x4 \
      --config.compute=tpu --config.mesh.fsdp=8
  python -m experiments.plan --config=bert:base --topology=h100:8 --config.compute=gpu
  python -m experiments.plan --config=bert:tiny --topology=cpu:8 --memory=4

A TPU slice needs the extra `tpu`, and GPUs of one host (`a100`, `h100`, `h200`) the extra `gpu`: their compilers run on
any x86 host with Linux, and neither TPU nor GPU is needed. `cpu:8` is eight simulated devices.
The step of `pretrain` is compiled from shapes, without computing, reading or downloading anything. Sizes that depend on
text have their maximum (for ELMo, all words of a batch are different, and as long as possible). Times are what the
chip's published peaks allow, one at a time and fully used. They are no prediction: most steps are slower. For a GPU, a
further line estimates the time, with its range. A compilation of a large model takes minutes; `--tries` limits their
number. Exit status: 0 it fits, 1 it does not fit, 2 refused.
"""

import jax
from absl import flags
from ml_collections import ConfigDict

from bert_elmo_jax.compilation_cache import no_cache
from bert_elmo_jax.plan.chips import GIB, find_topology
from bert_elmo_jax.plan.plan import plan

from .command_line.start import start

FLAGS = flags.FLAGS


def define() -> None:
    """Define the flags."""
    topology = "A slice of a TPU, such as v5e:2x4; GPUs, such as h100:8; or simulated devices, such as cpu:8."
    memory = "GiB that a device may use. Default: what the TPU's compiler finds; a GPU: 75% of it; cpu: no limit."
    flags.DEFINE_string("config", None, "A recipe of `pretrain`, such as bert:base or my_recipes.py:mine.")
    flags.DEFINE_string("topology", None, topology, required=True)
    size = "Default: from config.data; without data, that of the best-known model of the family."
    flags.DEFINE_integer("vocab_size", None, size, lower_bound=1, upper_bound=10**8)
    flags.DEFINE_float("memory", None, memory)
    flags.DEFINE_integer("tries", 6, "Compilations to find the largest batch of a phase; 0: none.", lower_bound=0)


def main(config: ConfigDict) -> int:
    """Plan, and return 0 if every phase fits."""
    jax.config.update("jax_platforms", "cpu")  # others may use the real devices
    topology = find_topology(FLAGS.topology)
    where = "on this machine's processor, without writing any file"
    print(f"compiling the step of {FLAGS.config} for {FLAGS.topology}, {where}", flush=True)
    memory = None if FLAGS.memory is None else FLAGS.memory * GIB
    # A program for a chip that is not here cannot be read back from the cache: JAX would warn, and compile it again.
    with no_cache():
        return 0 if plan(config, topology, FLAGS.vocab_size, memory, FLAGS.tries) else 1


if __name__ == "__main__":
    start("plan", define, main, stopped="stopped")
