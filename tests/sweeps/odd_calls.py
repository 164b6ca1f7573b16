"""Calls for the tests of processes; they end in every possible way."""

import os
import signal
import sys
import time


def behave(config, workdir, action):
    """Do what `action` names."""
    print(action, os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
    if action == "wait":
        signals = []
        signal.signal(signal.SIGTERM, lambda *_: signals.append(1))
        print("waiting", flush=True)
        until = time.monotonic() + 60
        while not signals and time.monotonic() < until:
            time.sleep(0.02)
        print("saved", flush=True)
        return 75
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "refuse":
        raise ValueError("강가에")
    elif action == "break":
        raise KeyError("강가에")
    elif action == "text":
        sys.exit("in words")
    elif action == "cores":
        print(*os.sched_getaffinity(0))
        time.sleep(0.3)
    return 7 if action == "7" else None
