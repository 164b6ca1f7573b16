"""Flags that name the outputs of a program: an address becomes a local folder or file, which is published there."""

import contextlib
from collections.abc import Collection, Iterator
from pathlib import Path

from absl import flags

from bert_elmo_jax.addresses import is_address, open_output, open_workdir

FLAGS = flags.FLAGS
OUTPUTS = ("workdir", "output", "to")
WRITE_FILES = ("predict", "extract", "generate")  # programs whose output is one file
WRITE_WHOLE = ("convert", "export", "push")  # programs that refuse a folder with files
# Flags that make other machines write, too, and their values for one machine.
OTHER_MACHINES = {"coordinator": None, "runner": "local"}


@contextlib.contextmanager
def local_outputs(program: str, names: Collection[str]) -> Iterator[None]:
    """Replace the addresses in a program's flags by local paths, which are published at the end of the block.

    A `~` at the beginning is the home folder: shells replace it only where a word begins. A `--workdir` is published
    while it is written, too.
    """
    with contextlib.ExitStack() as stack:
        for name in OUTPUTS:
            if name not in names or FLAGS[name].value is None:
                continue
            address = str(FLAGS[name].value)
            if address.startswith("~"):
                FLAGS[name].value = address = str(Path(address).expanduser())
            if not is_address(address):
                continue
            for other in OTHER_MACHINES.keys() & set(names):
                if FLAGS[other].value != OTHER_MACHINES[other]:
                    raise ValueError(
                        f"--{name}={address} is written by one machine, and --{other}={FLAGS[other].value} is for "
                        "several: give a folder that all of them share"
                    )
            if "*" in address:
                raise ValueError(
                    f"--{name}={address}: several outputs in a bucket are not written at once; use a folder"
                )
            if program in WRITE_FILES:
                path = stack.enter_context(open_output(address))
            else:
                resumes = program not in WRITE_WHOLE
                path = stack.enter_context(open_workdir(address, while_written=name == "workdir", resumes=resumes))
            FLAGS[name].value = str(path)
        yield
