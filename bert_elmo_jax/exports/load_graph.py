"""Loads a model file of this folder: onnx/NAME.onnx with onnxruntime, or NAME.stablehlo with jax.

With QUANTIZED=1 in the environment, it is onnx/NAME_quantized.onnx.
"""

import functools
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent


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

    file = FOLDER / "onnx" / (f"{name}_quantized.onnx" if os.environ.get("QUANTIZED") else f"{name}.onnx")
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    return lambda arrays: session.run(list(outputs), arrays)


def use_utf8() -> None:
    """Read standard input and write standard output as UTF-8, also where the system's encoding is another."""
    streams: list[Any] = [sys.stdin, sys.stdout]
    for stream in streams:
        stream.reconfigure(encoding="utf-8", errors="strict")
