"""A sweep of real processes without real training: `python fake_sweep.py SWEEP WORKDIR [JOBS]`."""

import sys
from pathlib import Path


def main(file, workdir, jobs=2):
    """Run it, and return the exit status. It imports late, because the doctests of the tests import this file."""
    import fake_point

    from bert_elmo_jax.sweeps.definition import read_sweep
    from bert_elmo_jax.sweeps.folders import Folders
    from bert_elmo_jax.sweeps.run_sweep import run_and_report
    from bert_elmo_jax.sweeps.runners import Processes

    folders = Folders(Path(workdir), calls={"pretrain": fake_point.train, "finetune": fake_point.train})
    runner = Processes(int(jobs))
    try:
        return run_and_report(read_sweep(file, "toy"), folders, runner, 1, "the command", "this machine")
    finally:
        runner.close()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
