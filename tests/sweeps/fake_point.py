"""A stand-in for `pretrain` and `finetune`: milliseconds instead of minutes, and a score that depends on its arguments.

The field `text` asks for trouble: `fail`, `once` (the first time only), or `saves` (wait for SIGTERM, and a second
more; once a point has saved, none waits).
"""

import hashlib
import json
import signal
import sys
import time
from pathlib import Path

from bert_elmo_jax.files import lock


def train(config, workdir, **options):
    """Run as the config says, and return an exit status."""
    with lock(workdir / "lock"):
        started = workdir / "started.txt"
        first = not started.exists()
        with open(started, "a", encoding="ascii") as file:
            file.write("started\n")
        print(f"seed {config.seed}", flush=True)
        trouble = config.get("text")
        if trouble == "fail" or (trouble == "once" and first):
            print("강가에 배가 없다", file=sys.stderr)
            sys.exit(3)
        if trouble == "saves" and not list(workdir.parent.glob("*/saved.txt")):
            signals = []
            signal.signal(signal.SIGTERM, lambda *_: signals.append(1))
            while not signals:
                time.sleep(0.05)
            time.sleep(1)
            (workdir / "saved.txt").write_text("saved")
            return 75
        if "init" in options:
            assert (Path(options["init"]) / "report.html").is_file(), "its need is missing"
        time.sleep(0.03)
        config_text = json.dumps(config.to_dict(), sort_keys=True, default=str)
        score = int(hashlib.sha256(config_text.encode()).hexdigest()[:4], 16) / 0xFFFF
        partial = workdir / "result.partial"
        if "task" in config:
            partial.write_text(json.dumps({"step": 1, "score": "f1", "dev": {"f1": score}}))
            partial.replace(workdir / "result.json")
        else:
            partial.write_text("<html>")
            partial.replace(workdir / "report.html")
    return 0
