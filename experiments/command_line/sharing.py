"""Flags that share out several input files over processes or a Ray cluster."""

from absl import flags

SHARING = ("workers", "runner", "ray_address", "gpus")


def define_sharing() -> None:
    """Define the flags."""
    flags.DEFINE_integer("workers", 1, "Processes for several input files; --output has a * for their names.", 1, 1024)
    flags.DEFINE_enum("runner", "local", ["local", "ray"], "This machine, or a Ray cluster that shares its files.")
    flags.DEFINE_string("ray_address", None, "Of the cluster; by default a cluster in reach, or one started here.")
    flags.DEFINE_float("gpus", 0.0, "That Ray reserves for each file.", lower_bound=0)
