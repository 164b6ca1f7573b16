"""A sweep, run by real processes that are no real training: `python fake_sweep.py SWEEP WORKDIR [JOBS]`."""

import sys
from pathlib import Path


def main(file, workdir, jobs=2):
    """The exit status; nothing of ours is imported before, since the doctests of the tests import this file."""
    from bert_elmo_jax.sweeps.definition import read_sweep
    from bert_elmo_jax.sweeps.forks import Forks
    from bert_elmo_jax.sweeps.points import Places
    from bert_elmo_jax.sweeps.run_sweep import run_sweep

    class Fakes(Forks):
        """Runs `fake_point` whatever the program is."""

        def start(self, launch, given=None):
            """Start one."""
            super().start(launch._replace(module="fake_point"), given)

    runner = Fakes(int(jobs), preloaded=())
    try:
        return run_sweep(read_sweep(file, "toy"), Places(Path(workdir)), runner, 1, "the command", "this machine")
    finally:
        runner.close()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
