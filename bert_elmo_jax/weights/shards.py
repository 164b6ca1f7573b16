"""Weights split over several files, with a JSON index that maps tensors to files."""

import json
from collections.abc import Callable
from pathlib import Path

from bert_elmo_jax.weights.stored import StoredTensor


def read_shards(index: str | Path, read_one: Callable[[Path], dict[str, StoredTensor]]) -> dict[str, StoredTensor]:
    """Return all tensors listed by an index (`model.safetensors.index.json`, `pytorch_model.bin.index.json`).

    Raise if files or tensors are missing, naming all of them.
    """
    index = Path(index)
    try:
        places = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        files = sorted(set(places.values()))
        foreign = [file for file in files if file != Path(file).name or file in ("", ".", "..") or "\\" in file]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
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
        found = read_one(index.parent / file)
        absent += [f"{name} in {file}" for name, place in places.items() if place == file and name not in found]
        twice = sorted(tensors.keys() & found.keys())
        if twice:
            raise ValueError(f"{file} and an earlier file of {index} hold the same tensors: {', '.join(twice)}")
        tensors |= found
    if absent:
        raise ValueError(f"{index} lists tensors that are not in their files: {', '.join(absent)}")
    return tensors
