"""Stands for any program: milliseconds instead of minutes, a score that hangs on its words alone, failures by request.

`--text=` asks for one: `fail`, `once` (only the first time), `slow` (half a second), `saves` (until it is asked to
stop, and then a second more).
"""

import fcntl
import hashlib
import json
import signal
import sys
import time
from pathlib import Path


def main():
    """Run, as the words say."""
    words = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:])
    run = Path(words["workdir"])
    with open(run / "lock", "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        started = run / "started.txt"
        first = not started.exists()
        with open(started, "a") as file:
            file.write("started\n")
        print(f"begun with seed {words.get('config.seed')}", flush=True)
        trouble = words.get("text")
        if trouble == "fail" or (trouble == "once" and first):
            print("강가에 배가 없다", file=sys.stderr)
            sys.exit(3)
        if trouble == "saves" and not (run / "saved.txt").exists():
            asked = []
            signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
            while not asked:
                time.sleep(0.05)
            time.sleep(1)
            (run / "saved.txt").write_text("saved")
            sys.exit(75)
        if "init" in words:
            assert (Path(words["init"]) / "report.html").is_file(), "what it needs is not there"
        time.sleep(0.5 if trouble == "slow" else 0.03)
        told = " ".join(f"{name}={value}" for name, value in sorted(words.items()) if "/" not in value)
        score = int(hashlib.sha256(told.encode()).hexdigest()[:4], 16) / 0xFFFF
        partial = run / "result.partial"
        if "task" in words:
            partial.write_text(json.dumps({"step": 1, "score": "f1", "dev": {"f1": score}}))
            partial.replace(run / "result.json")
        else:
            partial.write_text("<html>")
            partial.replace(run / "report.html")


if __name__ == "__main__":  # the doctests of the tests import it
    main()
