"""One side of a paired benchmark as a process; its words are a module (`ours.encode`), a folder and a precision.

The module's `make_passes(folder, precision)` returns functions by name and what the side says about itself. The process
runs each pass once, prints a line of JSON, and then answers each line, the name of a pass, with its seconds. Modules of
`peers` run in another interpreter, so this file uses the standard library only.
"""

import importlib
import json
import os
import sys
import time
from pathlib import Path


def main(module: str, folder: str, precision: str) -> None:
    """Serve the passes of a module until standard input ends."""
    side = importlib.import_module(f"experiments.benchmarks.{module}")
    if hasattr(side, "main"):  # it measures one start of a process
        side.main(Path(folder), precision)
        return
    # Lines go to a copy of standard output: libraries may print.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    passes, about = side.make_passes(Path(folder), precision)
    for run in passes.values():
        run()
    print(json.dumps(about), file=answers)
    for line in sys.stdin:
        run = passes[line.strip()]
        start = time.perf_counter()
        calls = run()  # a number of calls: the time is divided by it
        print((time.perf_counter() - start) / (calls or 1), file=answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
