"""`bert-elmo-jax PROGRAM …`, also `python -m bert_elmo_jax PROGRAM …`: start a program by its name."""

import ast
import re
import runpy
import sys
import textwrap

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.programs import COMMAND, EXPERIMENTS, PACKAGE

WIDTH = 118
STARTED = re.compile(r"^if __name__ == .__main__.:$", re.M)
USAGE = f"""\
usage: {COMMAND} PROGRAM [flags]     {COMMAND} PROGRAM --help lists a program's flags

Pretrain contextual encoders, load released weights, fine-tune, predict and compare.
"""


def list_programs() -> dict[str, str]:
    """Return the first line of the docstring of each program; `benchmarks.speed` is in a folder.

    >>> list_programs()["predict"]
    'Predictions of a fine-tuned model for a file, or for lines from standard input: a table, or JSON lines.'
    """
    programs = {}
    for path in sorted(EXPERIMENTS.rglob("[!_]*.py"), key=lambda path: (len(path.parts), path)):
        source = path.read_text(encoding="utf-8")
        if STARTED.search(source):
            docstring = ast.get_docstring(ast.parse(source)) or ""
            programs[".".join(path.relative_to(EXPERIMENTS).with_suffix("").parts)] = docstring.partition("\n")[0]
    return programs


def show_programs() -> str:
    """Return the help: a line for each program."""
    programs = list_programs()
    column = max(map(len, programs)) + 2
    lines = {
        name: f"  {name:{column}}{textwrap.shorten(line, WIDTH - column, placeholder=' …')}"
        for name, line in programs.items()
    }
    benchmarks = [name for name in programs if "." in name]
    main_lines = [line for name, line in lines.items() if name not in benchmarks]
    return "\n".join([USAGE, *main_lines, "", "Benchmarks and studies:", *(lines[name] for name in benchmarks)])


def find_program(name: str) -> str:
    """Return the module of a program; raise ValueError for a name that is not one."""
    if name not in (programs := list_programs()):
        raise ValueError(f"there is no program {name!r}{did_you_mean(name, programs)}; --help lists all programs")
    return f"{PACKAGE}.{name}"


def main() -> None:
    """Start the program that the first word names, with the other words."""
    program, *words = sys.argv[1:] or ["--help"]
    if program in ("--help", "-h", "help"):
        print(show_programs())
        return
    if program == "--version":
        from bert_elmo_jax import __version__

        print(__version__)
        return
    try:
        module = find_program(program)
    except ValueError as error:
        print(f"{COMMAND}: {error}", file=sys.stderr)
        sys.exit(2)
    sys.argv = [program, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
