"""A sweep as commands for other machines, in stages whose commands may run side by side."""

import re

from bert_elmo_jax.sweeps.definition import Sweep
from bert_elmo_jax.sweeps.folders import Folders
from bert_elmo_jax.sweeps.points import Point

ABOUT = """\
# {title}, scale {scale}: {left} commands that are not done, of {all}, in {stages} stages.
# The commands of a stage may run side by side, on any machines that share this file system; a stage needs those before
# it. Run them in the folder of the checkout. With Slurm, stage N as an array (its commands are the lines of the file):
#   grep -v '^#' stage_N.sh > commands.txt
#   sbatch --array=1-$(wc -l < commands.txt) --gres=gpu:1 --dependency=afterok:JOB_OF_STAGE_BEFORE \\
#       --wrap='eval "$(sed -n "${{SLURM_ARRAY_TASK_ID}}p" commands.txt)"'
# Start a command again after it was stopped or killed, and it continues. The sweep finds finished runs and what they
# cost; when all are done, this writes the table:
#   {command}"""


def write_commands(sweep: Sweep, folders: Folders, command: str) -> str:
    """Return the commands of all points that are not done, one per line, with comments on how to run them."""
    stages = split_stages(sweep)
    left = [[point for point in stage if not folders.is_done(point)] for stage in stages]
    lines = [
        ABOUT.format(
            title=sweep.title, scale=sweep.scale, left=sum(map(len, left)), all=len(sweep.points), stages=len(stages),
            command=re.sub(r"--?runner[= ]print", "--runner=local", command),
        )
    ]  # fmt: skip
    for number, stage in enumerate(left, start=1):
        lines += [f"\n# stage {number}: {len(stage)} commands", *map(folders.command, stage)]
    return "\n".join(lines)


def split_stages(sweep: Sweep) -> list[list[Point]]:
    """Return the points by the length of the chain of points that they need."""
    depth: dict[str, int] = {}
    for point in sweep.points:  # needs come first
        depth[point.identity] = 1 + max((depth[need.identity] for need in point.needs), default=-1)
    levels = range(max(depth.values()) + 1)
    return [[point for point in sweep.points if depth[point.identity] == level] for level in levels]
