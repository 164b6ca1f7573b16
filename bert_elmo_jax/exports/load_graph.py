"""Loads a model file of this folder: onnx/NAME.onnx with onnxruntime, or NAME.stablehlo with jax.

With QUANTIZED=1 in the environment, it is onnx/NAME_quantized.onnx.
"""

import functools
import itertools
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent
AT_ONCE = 32  # texts that are computed together


@functools.cache
def load_graph(name: str, outputs: tuple[str, ...]) -> Any:
    """Return the function from arrays, in the order of the inputs, to the list of outputs."""
    if (FOLDER / f"{name}.stablehlo").exists():
        import jax.export

        exported = jax.export.deserialize(bytearray((FOLDER / f"{name}.stablehlo").read_bytes()))

        def run(arrays: Any) -> Any:
            narrow = [array.astype(np.int32) if array.dtype == np.int64 else array for array in arrays.values()]
            return [np.asarray(x) for x in exported.call(*narrow)]

        return run
    import onnxruntime

    quantized = os.environ.get("QUANTIZED", "") not in ("", "0")
    file = FOLDER / "onnx" / (f"{name}_quantized.onnx" if quantized else f"{name}.onnx")
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    return lambda arrays: session.run(list(outputs), arrays)


def choose_width(longest: int, most: Any) -> int:
    """Return the width of rows: the longest one's, or for jax, which compiles every width, one of few widths."""
    if not any(FOLDER.glob("*.stablehlo")):
        return longest
    width = max(16, 1 << (longest - 1).bit_length())
    return width if most is None else min(width, int(most))


def find_tokenizer() -> str:
    """Return the path of tokenizer.json; raise ValueError if the folder has none."""
    file = FOLDER / "tokenizer.json"
    if not file.exists():
        raise ValueError(
            "this folder has no tokenizer.json, which reading texts needs: copy the folder again, or if the export "
            "warned that this tokenizer has no such file, give ids to the model's files"
        )
    return str(file)


def print_lines(predict: Any, texts: Any) -> None:
    """Print a line of JSON for each text, a few texts at a time; `predict` also gets the number of the first one."""
    remaining = iter(texts)
    for first in itertools.count(0, AT_ONCE):
        part = list(itertools.islice(remaining, AT_ONCE))
        if not part:
            return
        for prediction in predict(part, first):
            print(json.dumps(prediction, ensure_ascii=False), flush=True)


def use_utf8() -> None:
    """Read standard input and write standard output as UTF-8, also where the system's encoding is another.

    A byte-order mark, which programs of Windows write, is no part of the first text.
    """
    streams: list[Any] = [sys.stdin, sys.stdout]
    for stream, encoding in zip(streams, ("utf-8-sig", "utf-8")):
        stream.reconfigure(encoding=encoding, errors="strict")
