"""A process that imports the library once and forks itself for every point; see `forks`.

Orders come in on standard input, a line of JSON each; ends go out on standard output. A point runs in a child as if it
had been typed in: `runpy` starts its program as `__main__`, with its words and with flags of its own. When standard
input ends, whoever gave the orders is gone: every child sees it too, and asks itself to save and to stop, as by
SIGTERM; what it has cost is left beside its log.
"""

import json
import os
import runpy
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module, util
from pathlib import Path
from typing import Any, NoReturn

from bert_elmo_jax.runs.start_cost import COUNTED, add_unheard, note_device

# What the programs import, but not the programs: their flags must be nobody's until one of them is started.
PRELOADED = (
    "bert_elmo_jax.runs.finetuning",
    "bert_elmo_jax.runs.grid",
    "bert_elmo_jax.runs.adaptation",
    "experiments.command_line.endings",
)
COMMANDS = 0  # the file that orders come from; its other end is held by the sweep alone


def serve(preloaded: Sequence[str] = PRELOADED) -> None:
    """Take orders until there is nobody to give any, and all children have ended."""
    for number in (signal.SIGINT, signal.SIGTERM):  # the sweep's to pass on; also where all processes are sent it
        signal.signal(number, signal.SIG_IGN)
    for name in preloaded:
        import_module(name)
    check_forkable()
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    children: dict[int, tuple[dict[str, Any], float]] = {}  # with the order, and since when
    heard, open_ = b"", True
    _tell({"ready": os.getpid()})
    while open_ or children:
        for file in select.select([woken, COMMANDS] if open_ else [woken], [], [])[0]:
            if file == woken:
                os.read(woken, 4096)
                continue
            some = os.read(COMMANDS, 1 << 16)
            *lines, heard = (heard + some).split(b"\n")
            open_ = bool(some)
            for order in map(json.loads, lines):
                if "stop" in order:
                    for pid in [pid for pid, (given, _) in children.items() if given["start"] == order["stop"]]:
                        os.kill(pid, order["signal"])
                    continue
                pid = os.fork()
                if not pid:
                    _become(order)
                children[pid] = (order, time.monotonic())
        while children:
            pid, status, used = os.wait4(-1, os.WNOHANG)
            if not pid:
                break
            order, began = children.pop(pid)
            seconds, processor = time.monotonic() - began, used.ru_utime + used.ru_stime
            end = {"status": os.waitstatus_to_exitcode(status), "seconds": seconds, "processor": processor}
            if not open_ or not _tell({"key": order["start"], **end}):
                add_unheard(Path(order["log"]).parent, end)


def check_forkable() -> None:
    """A fork has none of its parent's threads, and no device: neither may be there before."""
    others = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    backends = getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", {})
    if others or backends:
        raise RuntimeError(f"what is preloaded must not start threads ({others}) nor devices ({list(backends)})")


def _become(order: Mapping[str, Any]) -> NoReturn:
    """In a child: run a program, and leave as it leaves."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    if order["cores"]:
        os.sched_setaffinity(0, order["cores"])
    commands = os.dup(COMMANDS)
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for file, place in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(file, place)
    os.environ.update(order["environment"])
    os.environ[COUNTED] = "1"
    threading.Thread(target=_watch, args=(commands,), daemon=True).start()
    try:
        status = _run(order["module"], order["words"])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    note_device(Path(order["log"]).parent)
    sys.exit(status)


def _run(module: str, words: list[str]) -> int:
    sys.modules.pop(module, None)  # the library may know it by its name; here it is the program
    found = util.find_spec(module)
    assert found is not None and found.origin is not None
    sys.argv = [found.origin, *words]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except KeyboardInterrupt:
        return 130
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _watch(commands: int) -> None:
    """When the sweep is gone, this process is asked to stop, as by whoever would stop it by hand."""
    poll = select.poll()
    poll.register(commands, 0)  # nothing but that the other end is closed: the orders are for the server
    poll.poll()
    os.kill(os.getpid(), signal.SIGTERM)


def _tell(what: Mapping[str, Any]) -> bool:
    """Whether somebody is there to hear of it."""
    try:
        os.write(1, json.dumps(what).encode() + b"\n")
    except BrokenPipeError:
        return False
    return True
