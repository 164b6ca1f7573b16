"""Read `.safetensors` files, with errors that describe the actual content."""

from functools import partial
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from bert_elmo_jax.weights.stored import StoredTensor, what_is

DTYPES = {"BOOL": "bool", "BF16": "bfloat16", "F16": "float16", "F32": "float32", "F64": "float64"}
DTYPES |= {f"{kind[0].upper()}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}


def read_safetensors(path: str | Path) -> dict[str, StoredTensor]:
    """Return all tensors of a file by name; numbers are read on demand.

    >>> import tempfile
    >>> from safetensors.numpy import save_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_file({"a": np.ones((2, 3), np.float32)}, f"{folder}/model.safetensors")
    ...     read_safetensors(f"{folder}/model.safetensors")["a"].read().tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    path = Path(path)
    size = path.stat().st_size  # raises Python's own error for a missing file
    try:
        file = safe_open(path, "numpy")
    except SafetensorError as problem:
        with path.open("rb") as start:
            header = int.from_bytes(start.read(8), "little")
            opening = start.read(1)
        if opening == b"{" and header < size + (1 << 27):
            raise ValueError(
                f"{path} of {size:,} bytes is cut short or damaged ({problem}): copy or download it again."
            ) from None
        raise ValueError(f"{path} is not a safetensors file but {what_is(path)} ({problem}).") from None
    tensors = {}
    for name in file.keys():  # noqa: SIM118 - not a dictionary
        about = file.get_slice(name)
        dtype = DTYPES.get(about.get_dtype(), about.get_dtype())
        tensors[name] = StoredTensor(tuple(about.get_shape()), dtype, partial(_read, file, path, name))
    return tensors


def _read(file: safe_open, path: Path, name: str) -> np.ndarray:
    try:
        return file.get_tensor(name)
    except (SafetensorError, TypeError, AttributeError, KeyError) as problem:
        raise ValueError(f"{name} in {path} cannot be read as a numpy array: {problem}.") from None
