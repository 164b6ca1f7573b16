"""Our first call in a new process and the tenth."""

import json
import time
from pathlib import Path


def main(folder: Path, precision: str) -> None:
    """Load the model, encode one text ten times, and print a line after the first and after the tenth."""
    from bert_elmo_jax import load
    from bert_elmo_jax.compilation_cache import share_compiled

    share_compiled()  # as programs do; the environment may turn it off
    text = json.loads((folder / "settings.json").read_text(encoding="utf-8"))["one"]
    encoder, seconds = load(folder), []
    for call in range(10):
        start = time.perf_counter()
        encoder.encode([text])
        seconds.append(time.perf_counter() - start)
        if call == 0:
            print("first", flush=True)
    from . import about

    print(json.dumps({**about(), "tenth": seconds[-1]}), flush=True)
