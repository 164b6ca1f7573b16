r"""Describe this machine and test that the library works here; paste the output into a bug report.

  python -m experiments.doctor

Versions, devices, the number formats and attention that work on them, memory and disk, the hub cache, fonts with
Hangul, and a self-test of about ten seconds. It downloads nothing and leaves no files. Exit status: 0 all checks
passed, 1 some failed.
"""

from bert_elmo_jax.quickstart.check_machine import check_machine

from .command_line.start import start


def define() -> None:
    """Define no flags."""


def main() -> int:
    """Print every check; return 1 if one failed."""
    failed = 0
    for name, finding, fine in check_machine():
        print(f"{name:<18} {finding if fine else f'FAILED: {finding}'}", flush=True)
        failed += not fine
    return min(failed, 1)


if __name__ == "__main__":
    start("doctor", define, main, stopped="stopped")
