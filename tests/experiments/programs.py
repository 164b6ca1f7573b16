"""Run programs in this process as `python -m` does, one after the other."""

import contextlib
import io
import runpy
import sys
from typing import NamedTuple

from absl import app, flags


class Done(NamedTuple):
    status: int
    out: str
    err: str


def run_program(name, *words, stdin=""):
    """Run a program; return its exit status, standard output and standard error, and remove its flags."""
    app.define_help_flags()
    before, streams = set(flags.FLAGS), (sys.argv, sys.stdin)
    out, err, status = io.StringIO(), io.StringIO(), 0
    sys.argv, sys.stdin = [f"{name}.py", *map(str, words)], io.StringIO(stdin)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            runpy.run_module(f"experiments.{name}", run_name="__main__", alter_sys=True)
    except SystemExit as error:
        status = error.code or 0
    finally:
        for module in [module for module in sys.modules if module.startswith("experiments.")]:
            del sys.modules[module]
        sys.argv, sys.stdin = streams
        for flag in set(flags.FLAGS) - before:
            delattr(flags.FLAGS, flag)
        flags.FLAGS.unparse_flags()
        flags.FLAGS.mark_as_parsed()
    return Done(status, out.getvalue(), err.getvalue())
