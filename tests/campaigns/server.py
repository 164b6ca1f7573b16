"""Start programs as `python -m` does, in forks of a process with the library imported, and kill them at any time.

The process imports no test code, so the programs run as they do for users.

The process reads one line of JSON per request and answers each with one: a command is answered with the process number
of its fork, which leads a process group of its own; a request to wait with the exit status, or null.
"""

import contextlib
import ctypes
import importlib
import json
import os
import pkgutil
import resource
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMITS = {"AS": resource.RLIMIT_AS, "NOFILE": resource.RLIMIT_NOFILE}


class Running:
    """A running program. `kill` ends it and everything that it has started."""

    def __init__(self, server: "Server", number: int, log: Path):
        self._server, self.number, self.log = server, number, log

    def send(self, signal_number: int) -> bool:
        """Send a signal to the program and what it has started; return False if it has ended before."""
        try:
            os.killpg(self.number, signal_number)
        except ProcessLookupError:
            return False
        return True

    def kill(self) -> bool:
        """Kill the program; return False if it had already ended."""
        ended = self.wait(0.0) is not None
        self.send(signal.SIGKILL)
        if not ended:
            self.wait(60.0)
        return not ended

    def wait(self, seconds: float) -> int | None:
        """Return the exit status, or None if it still runs after this time."""
        status: int | None = self._server.ask({"wait": self.number, "seconds": seconds})
        return status

    @property
    def output(self) -> str:
        """The program's output on standard error."""
        return self.log.with_suffix(".err").read_text(encoding="utf-8", errors="replace")


class Server:
    """The process whose forks are the programs."""

    def __init__(self, environment: Mapping[str, str]):
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__], cwd=ROOT, env={**environment, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        assert self._process.stdout is not None
        self._process.stdout.readline()  # all is imported

    def ask(self, request: Mapping[str, object]) -> int | None:
        """Send a request, and return the answer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process that starts the programs has ended")
        answer: int | None = json.loads(line)
        return answer

    def start(
        self,
        words: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        limits: Mapping[str, int] | None = None,
        folder: Path = ROOT,
        stdin: str = os.devnull,
    ) -> Running:
        """Start `python -m experiments.PROGRAM …` in a folder; its output goes to files next to `log`."""
        log.parent.mkdir(parents=True, exist_ok=True)
        request = {"words": list(words), "log": str(log), "environment": environment or {}, "limits": limits or {},
                   "folder": str(folder), "stdin": stdin}  # fmt: skip
        number = self.ask(request)
        assert number is not None
        return Running(self, number, log)

    def close(self) -> None:
        """End the process; running programs continue."""
        self._process.communicate()


def warm_up() -> None:
    """Import the library and what its programs import when they begin, but start neither JAX's backend nor a thread."""
    import bert_elmo_jax

    names = [module.name for module in pkgutil.walk_packages(bert_elmo_jax.__path__, "bert_elmo_jax.")]
    names += ["h5py", "optax", "optuna", "scipy.optimize", "scipy.stats", "sentencepiece", "tensorboardX", "tokenizers"]
    for name in [*names, "absl.app", "absl.flags"]:
        importlib.import_module(name)


def serve() -> dict[str, object] | None:
    """Answer every request; return a command in a process of its own, which executes it."""
    ended: dict[int, int] = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "words" in request:
            if (child := os.fork()) == 0:
                return dict(request)
            with contextlib.suppress(OSError):  # the child does the same, and may be first
                os.setpgid(child, child)
            print(child, flush=True)
            continue
        number, end = request["wait"], time.monotonic() + request["seconds"]
        while number not in ended:
            process_id, status = os.waitpid(number, os.WNOHANG)
            if process_id:
                ended[number] = os.waitstatus_to_exitcode(status)
            elif time.monotonic() >= end:
                break
            else:
                time.sleep(0.02)
        print(json.dumps(ended.get(number)), flush=True)
    return None


def carry_out(request: Mapping[str, object]) -> None:
    """Run a program as `python -m` does."""
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    os.chdir(str(request["folder"]))
    log, flags = str(request["log"]), os.O_CREAT | os.O_WRONLY | os.O_TRUNC
    for number, name, mode in (
        (0, str(request["stdin"]), os.O_RDONLY),
        (1, f"{log}.out", flags),
        (2, f"{log}.err", flags),
    ):
        opened = os.open(name, mode)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    os.environ.update(request["environment"])  # type: ignore[call-overload]
    arm = getattr(ctypes.CDLL(None), "campaign_arm", None)  # of the library that makes calls fail
    if arm is not None:
        arm()
    for name, most in request["limits"].items():  # type: ignore[attr-defined]
        resource.setrlimit(LIMITS[name], (most, most))
    program, *words = request["words"]  # type: ignore[misc]
    sys.argv = [program, *words]
    sys.path[0] = str(request["folder"])
    module = "bert_elmo_jax" if program == "bert-elmo-jax" else f"experiments.{program}"
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    warm_up()
    print("0", flush=True)
    if request := serve():
        carry_out(request)
