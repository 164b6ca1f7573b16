"""A sweep as commands, for whatever runs commands elsewhere: stage by stage, what may run side by side together."""

import re

from bert_elmo_jax.sweeps.definition import Sweep
from bert_elmo_jax.sweeps.points import Places, Point

ABOUT = """\
# {title}, scale {scale}: {left} commands that are not done, of {all}, in {stages} stages.
# The commands of a stage may run side by side, on any machines that share this file system; a stage needs those before
# it. From the folder of the checkout. With Slurm, stage N as an array (its commands are the lines of the file):
#   grep -v '^#' stage_N.sh > commands.txt
#   sbatch --array=1-$(wc -l < commands.txt) --gres=gpu:1 --dependency=afterok:JOB_OF_STAGE_BEFORE \\
#       --wrap='eval "$(sed -n "${{SLURM_ARRAY_TASK_ID}}p" commands.txt)"'
# A command that was stopped or killed goes on when it is started again. Whatever is done when the sweep is started
# with --runner=local it finds done, with what it cost; with nothing left to do it writes the table:
#   {command}"""


def commands(sweep: Sweep, places: Places, command: str) -> str:
    """The commands of all points that are not done, one a line, with what to do with them in comments."""
    stages = stages_of(sweep)
    left = [[point for point in stage if not places.is_done(point)] for stage in stages]
    again = re.sub(r"--?runner[= ]print", "--runner=local", command)
    lines = [
        ABOUT.format(
            title=sweep.title, scale=sweep.scale, left=sum(map(len, left)), all=len(sweep.points), stages=len(stages),
            command=again,
        )
    ]  # fmt: skip
    for number, stage in enumerate(left, start=1):
        lines.append(f"\n# stage {number}: {len(stage)} commands")
        lines += [places.command(point) for point in stage]
    return "\n".join(lines)


def stages_of(sweep: Sweep) -> list[list[Point]]:
    """Points by how many others they must wait for, one after the other."""
    depth: dict[str, int] = {}
    for point in sweep.points:  # what is needed comes first
        depth[point.identity] = 1 + max((depth[need.identity] for need in point.needs), default=-1)
    return [
        [point for point in sweep.points if depth[point.identity] == level] for level in range(max(depth.values()) + 1)
    ]
