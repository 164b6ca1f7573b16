"""Our generation: `load(folder).generate(tokens=…)`, greedy and with beams."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bert_elmo_jax import load

from .._inputs import read_settings
from . import about


def make_passes(folder: Path, precision: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the generation of each case; nothing ends a text."""
    settings = read_settings(folder)
    dtype: Any = precision
    writer = load(folder, dtype=dtype)

    def write(prompts: list[list[int]], new: int, beams: int) -> None:
        writer.generate(tokens=prompts, max_new=new, beams=beams, ends=[])

    logits = writer.forward(np.array(settings["cases"]["one"]["prompts"])).logits[0, -1, :8]
    record = {**about(), "check": [float(x) for x in np.asarray(logits, np.float32)]}
    return {name: partial(write, **case) for name, case in settings["cases"].items()}, record
