"""Calls for the tests of processes; they end in every possible way."""

import os
import signal
import sys
import time


def behave(config, workdir, what):
    """Do what `what` says."""
    print(what, os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
    if what == "wait":
        asked = []
        signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
        print("waiting", flush=True)
        until = time.monotonic() + 60
        while not asked and time.monotonic() < until:
            time.sleep(0.02)
        print("saved", flush=True)
        return 75
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "refuse":
        raise ValueError("강가에")
    elif what == "break":
        raise KeyError("강가에")
    elif what == "text":
        sys.exit("in words")
    elif what == "cores":
        print(*os.sched_getaffinity(0))
        time.sleep(0.3)
    return 7 if what == "7" else None
