"""An example of a sweep on a table of one's own, to be changed."""

import shlex
from pathlib import Path

from bert_elmo_jax.files import write_text
from bert_elmo_jax.programs import SWEEPS, show_commands

EXAMPLE = SWEEPS / "_example.py"


def write_example(file: str) -> str:
    """Write the example to a new file, and return the command that runs it."""
    path = Path(file)
    if path.suffix != ".py":
        raise ValueError(f"--new={file}: expected a name that ends in .py, such as my_sweep.py")
    if path.exists():
        raise FileExistsError(f"--new={file}: there is such a file already; choose another name, or delete it")
    text = show_commands(EXAMPLE.read_text(encoding="utf-8"))
    command = next(line for line in text.splitlines() if line.startswith("Command: ")).removeprefix("Command: ")
    word = shlex.quote(file)
    in_docstring = word.replace("\\", r"\\").replace('"', r"\"")
    write_text(path, text.replace("my_sweep.py", in_docstring))
    return f"{file} is an example with comments: change it, then\n  {command.replace('my_sweep.py', word)}"
