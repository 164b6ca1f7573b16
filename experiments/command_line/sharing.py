"""Programs that read several input files: flags that share them out over processes or a Ray cluster."""

from collections.abc import Callable, Mapping
from typing import Any

from absl import flags

from bert_elmo_jax.inference.many_files import share_files

from .start import read_values

FLAGS = flags.FLAGS


def define_sharing() -> None:
    """Define the flags."""
    flags.DEFINE_integer("workers", 1, "Processes for several input files; --output has a * for their names.", 1, 1024)
    flags.DEFINE_enum("runner", "local", ["local", "ray"], "This machine, or a Ray cluster that shares its files.")
    flags.DEFINE_string("ray_address", None, "Of the cluster; by default a cluster in reach, or one started here.")
    flags.DEFINE_float("gpus", 0.0, "That Ray reserves for each file.", lower_bound=0)


def call_for_files(call: Callable[..., int], options: Mapping[str, Any]) -> None:
    """Call `predict_file` or `extract` with the flags of a program, for all input files or for each."""
    sharing = read_values(("workers", "runner", "ray_address", "gpus"))
    share_files(call, FLAGS.model, FLAGS.input, FLAGS.output, options, **sharing)
