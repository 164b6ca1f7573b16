"""Weights of Hugging Face models: safetensors or pickles, else files of Flax or of TensorFlow, maybe in shards."""

import json
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from bert_elmo_jax.files import read_json
from bert_elmo_jax.lazy_imports import lazy_function
from bert_elmo_jax.weights.stored import StoredTensor, unreadable

PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
FLAX = ("flax_model.msgpack", "flax_model.msgpack.index.json")
KERAS = ("tf_model.h5", "tf_model.h5.index.json")
# In the order of preference; all of them are assumed to hold the same weights.
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", *PICKLES, *FLAX, *KERAS)
ELSEWHERE = ("rust_model.ot",)  # the same weights for other frameworks
DTYPES = {"BOOL": "bool", "BF16": "bfloat16", "F16": "float16", "F32": "float32", "F64": "float64"}
DTYPES |= {f"{kind[0].upper()}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}


def read_folder(folder: str | Path) -> tuple[str, dict[str, StoredTensor]]:
    """Return the source of a folder's weights and all tensors by name; safetensors are preferred."""
    folder = Path(folder)
    names = [name for name in WEIGHTS if (folder / name).is_file()]
    if not names:
        gone = [name for name in ELSEWHERE if (folder / name).is_file()]
        raise FileNotFoundError(
            f"{folder} has no readable weights: none of {', '.join(WEIGHTS)} exists"
            + (f" ({', '.join(gone)} is not supported: convert it with transformers)" if gone else "")
        )
    path = folder / names[0]
    sharded = path.suffix == ".json"
    read_one, turn_name = _choose_reader(path.name, sharded)
    stored = read_shards(path, read_one, turn_name) if sharded else read_one(path)
    return f"{path} (not read: {', '.join(names[1:])})" if names[1:] else str(path), stored


def _choose_reader(name: str, sharded: bool) -> tuple[Callable[..., Any], Callable[[str], str]]:
    """Return the function that reads a kind of file, and the one that turns names in its index into PyTorch's."""
    # Only the reader that is needed is imported.
    if name in FLAX:
        module = "bert_elmo_jax.weights.flax_msgpack"
        return lazy_function(module, "read_flax"), lazy_function(module, "turn_name")
    if name in KERAS:
        module = "bert_elmo_jax.weights.keras_hdf5"
        return partial(lazy_function(module, "read_keras"), shard=sharded), lazy_function(module, "turn_name")
    if name in PICKLES:
        return lazy_function("bert_elmo_jax.weights.torch_pickle", "read_torch_pickle"), str
    return read_safetensors, str


def read_model_type(folder: str | Path) -> str:
    """Return the `model_type` of a folder's `config.json`, "" if there is none.

    >>> read_model_type("tests/goldens/bert_tiny")
    'bert'
    """
    path = Path(folder) / "config.json"
    model_type = read_json(path, default={}).get("model_type")
    if model_type is not None and not isinstance(model_type, str):
        raise ValueError(f"{path}: model_type is {model_type!r}; it must be a name such as 'bert'")
    return model_type or ""


def read_safetensors(path: str | Path) -> dict[str, StoredTensor]:
    """Return all tensors of a file by name; numbers are read on demand."""
    path = Path(path)
    size = path.stat().st_size  # raises Python's own error for a missing file
    try:
        file = safe_open(path, "numpy")
    except SafetensorError as problem:
        with path.open("rb") as start:
            header = int.from_bytes(start.read(8), "little")
            opening = start.read(1)
        looks_right = opening == b"{" and header < size + (1 << 27)
        raise unreadable(path, "a safetensors file", looks_right, problem) from None
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


def read_shards(
    index: str | Path, read_one: Callable[[Path], dict[str, StoredTensor]], turn_name: Callable[[str], str] = str
) -> dict[str, StoredTensor]:
    """Return all tensors listed by an index (`….index.json`); raise if files or tensors are missing, naming all.

    `turn_name` returns the name that `read_one` gives to a tensor of the index.
    """
    index = Path(index)
    try:
        places = read_json(index)["weight_map"]
        places = {turn_name(name): file for name, file in places.items()}
        files = sorted(set(places.values()))
        foreign = [file for file in files if file != Path(file).name or file in ("", ".", "..") or "\\" in file]
    except (KeyError, TypeError, AttributeError):
        raise ValueError(f'{index} is not an index of weights: expected {{"weight_map": {{tensor: file}}}}') from None
    if foreign:
        raise ValueError(f"{index} lists files outside its folder, which is refused: {', '.join(map(repr, foreign))}")
    missing = [file for file in files if not (index.parent / file).is_file()]
    if missing:
        raise FileNotFoundError(
            f"{index} lists {len(files)} files, but {len(missing)} of them are missing: {', '.join(missing)}"
        )
    tensors: dict[str, StoredTensor] = {}
    absent = []
    for file in files:
        tensors_in_file = read_one(index.parent / file)
        absent += [
            f"{name} in {file}" for name, place in places.items() if place == file and name not in tensors_in_file
        ]
        twice = sorted(tensors.keys() & tensors_in_file.keys())
        if twice:
            raise ValueError(f"{file} and an earlier file of {index} hold the same tensors: {', '.join(twice)}")
        tensors |= tensors_in_file
    if absent:
        raise ValueError(f"{index} lists tensors that are not in their files: {', '.join(absent)}")
    return tensors


def write_model(folder: str | Path, files: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> None:
    """Write JSON files and `model.safetensors`; the weights appear last, so that a folder with them is complete."""
    folder = Path(folder)
    existing = [name for name in WEIGHTS if (folder / name).exists()]
    if existing:
        raise FileExistsError(f"{folder} already holds weights ({', '.join(existing)}): write to another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    unfinished = folder / "model.safetensors.unfinished"
    write_safetensors(unfinished, tensors, {"format": "pt"})
    unfinished.chmod((folder / "config.json").stat().st_mode)  # safetensors makes its files private
    unfinished.replace(folder / WEIGHTS[0])


def write_safetensors(path: Path, tensors: Mapping[str, np.ndarray], metadata: dict[str, str] | None = None) -> None:
    """Write a file of safetensors; a full disk is an `OSError` with the file's name, and leaves no file."""
    try:
        save_file(dict(tensors), path, metadata=metadata)
    except SafetensorError as problem:
        path.unlink(missing_ok=True)
        match = re.search(r"\(os error (\d+)\)", str(problem))
        if match is None:
            raise
        raise OSError(int(match[1]), os.strerror(int(match[1])), str(path)) from problem
