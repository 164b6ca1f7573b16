"""Start programs as `python -m` does, but in forks of a process with the library imported, which saves seconds.

It reads a line of JSON per command from standard input and answers with one: see `Server`. The process imports nothing
of the tests, so the programs run as they do for users, without the checks of types and shapes.
"""

import contextlib
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LIMIT = 300.0  # seconds that a command may take


class Done(NamedTuple):
    """The end of a command: its exit status, output, processor seconds, and the awaited file."""

    status: int
    out: str
    err: str
    seconds: float
    seen: str


class Server:
    """A server that runs `module, *words` in a folder, with `devices` simulated devices.

    With `until`, a pattern of files, the program gets a SIGTERM as soon as there is such a file.
    """

    def __init__(self, environment):
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__], cwd=ROOT, env={**environment, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip

    def run(self, folder, module, words, *, stdin="", devices=1, until=""):
        """Return the end of a command."""
        asked = {"folder": str(folder), "module": module, "words": words, "stdin": stdin, "devices": devices}
        self._process.stdin.write(json.dumps({**asked, "until": until}) + "\n")
        return Done(**json.loads(self._process.stdout.readline()))

    def close(self):
        self._process.communicate()


def warm_up():
    """Import the library and what its programs import when they begin, but start neither JAX's backend nor a thread."""
    import importlib
    import pkgutil

    import bert_elmo_jax

    for module in pkgutil.walk_packages(bert_elmo_jax.__path__, "bert_elmo_jax."):
        importlib.import_module(module.name)
    for name in (
        "h5py",
        "optax",
        "optuna",
        "scipy.optimize",
        "scipy.stats",
        "sentencepiece",
        "tensorboardX",
        "tokenizers",
    ):
        importlib.import_module(name)
    from absl import app, flags  # noqa: F401


def serve():
    """Answer every request; return a request in a process of its own, which executes it."""
    for line in sys.stdin:
        asked = json.loads(line)
        begun = time.time()
        folder = Path(asked["folder"])
        if (child := os.fork()) == 0:
            return asked
        end, seen = time.monotonic() + LIMIT, ""
        while not (ended := os.wait4(child, os.WNOHANG))[0]:
            if asked["until"] and not seen:
                for file in folder.glob(asked["until"]):
                    with contextlib.suppress(FileNotFoundError):
                        if file.stat().st_mtime >= begun and file.stat().st_size:
                            seen = str(file)
                if seen:
                    os.kill(child, signal.SIGTERM)
            if time.monotonic() > end:
                os.killpg(child, signal.SIGKILL)
            time.sleep(0.02)
        _, status, used = ended
        out, err = ((folder / name).read_text(encoding="utf-8", errors="replace") for name in ("stdout", "stderr"))
        done = Done(os.waitstatus_to_exitcode(status), out, err, used.ru_utime + used.ru_stime, seen)
        print(json.dumps(done._asdict()), flush=True)
    return None


def carry_out(asked):
    """Run a module as `python -m` does."""
    os.setsid()
    os.chdir(asked["folder"])
    Path("stdin").write_text(asked["stdin"], encoding="utf-8")
    for number, name, mode in ((0, "stdin", os.O_RDONLY), (1, "stdout", os.O_CREAT | os.O_WRONLY | os.O_TRUNC),
                               (2, "stderr", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)):  # fmt: skip
        os.dup2(os.open(name, mode), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    os.environ["HF_HUB_CACHE"] = str(Path(asked["folder"], "hub"))
    os.environ["XLA_FLAGS"] = os.environ["XLA_FLAGS"].replace("count=1", f"count={asked['devices']}")
    sys.argv = [asked["module"], *asked["words"]]
    sys.path[0] = asked["folder"]
    runpy.run_module(asked["module"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    warm_up()
    if request := serve():
        carry_out(request)
