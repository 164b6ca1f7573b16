"""Find the files of an ELMo in a folder: weights, options, and word vectors in a separate file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_elmo_jax.weights.stored import what_is

ENDINGS = (".hdf5", ".h5")
OTHERS = ("tf_model.h5",)  # files of other models with such a name
PREFIXES = ("", "lm/", "bilm/")  # the scopes of a training run and of its inference graph; released files have none
LSTMS = tuple(f"{prefix}RNN_{direction}" for prefix in PREFIXES for direction in (0, 1))
EMBEDDINGS = tuple(f"{prefix}embedding" for prefix in PREFIXES)


def elmo_files(folder: str | Path) -> list[str]:
    """Return the names of the ELMo files in a folder, or none unless it has both weights and options."""
    weights, options = named_weights(Path(folder)), named_options(Path(folder))
    return [file.name for file in options + weights] if weights and options else []


def named_weights(folder: Path) -> list[Path]:
    """Return the files of a folder with an HDF5 ending."""
    files = (file for file in folder.iterdir() if file.name.lower().endswith(ENDINGS) and file.is_file())
    return sorted(file for file in files if file.name not in OTHERS)


def named_options(folder: Path) -> list[Path]:
    """Return the files of a folder named `*options*.json`."""
    return sorted(file for file in folder.glob("*options*.json") if file.is_file())


def find_weights(path: str | Path) -> tuple[Path, list[Path]]:
    """Return the file with an ELMo's LSTMs, and those with its word vectors, for a folder or a file."""
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    files = named_weights(folder)
    if not files:
        raise FileNotFoundError(f"{folder} has no ELMo: no file ends with {' or '.join(ENDINGS)}")
    if not path.is_dir():
        return path, [file for file in files if file != path and _holds(file, EMBEDDINGS) is True]
    if len(files) == 1:
        return files[0], []
    found = {file: _holds(file, LSTMS) for file in files}
    weights = [file for file, answer in found.items() if answer is True]
    if len(weights) > 1:
        listed = ", ".join(file.name for file in weights)
        raise ValueError(f"{folder} has {len(weights)} ELMos, give the path of one: {listed} (such as {weights[0]})")
    if not weights:
        listed = "; ".join(
            answer if isinstance(answer, str) else f"{file.name} has no LSTM (RNN_0)" for file, answer in found.items()
        )
        raise ValueError(f"{folder} has no readable ELMo: {listed}")
    return weights[0], [file for file in files if file != weights[0] and _holds(file, EMBEDDINGS) is True]


def _holds(file: Path, names: tuple[str, ...]) -> bool | str:
    """Return whether a file holds any of these names, or the error message if it cannot be read."""
    from bert_elmo_jax.weights.hdf5 import holds

    try:
        return holds(file, names)
    except (ValueError, OSError) as problem:
        return str(problem)


def find_options(weights: Path) -> Path:
    """Return the options file for a file of weights: the only one in its folder, or the one with a matching name."""
    options = named_options(weights.parent)
    if len(options) == 1:
        return options[0]
    if not options:
        raise FileNotFoundError(
            f"{weights.parent} has no options.json (or *options*.json), which holds the sizes of the ELMo: copy it "
            "there, or give config="
        )
    alike = [file for file in options if file.stem.replace("options", "weights") == weights.stem]
    if len(alike) == 1:
        return alike[0]
    raise ValueError(
        f"{weights.parent} has {len(options)} options files ({', '.join(file.name for file in options)}), and none "
        f"matches the name of {weights.name}: move the options of other models away"
    )


def read_options(path: Path) -> Mapping[str, Any]:
    """Return the content of an `options.json`."""
    try:
        options = json.loads(path.read_text(encoding="utf-8-sig"))
    except (json.JSONDecodeError, UnicodeDecodeError) as problem:
        what = what_is(path)
        instead = "" if what == "a JSON text" else f" but {what}"
        raise ValueError(f"{path} is not a JSON file{instead}: {problem}") from None
    if not isinstance(options, dict):
        raise ValueError(f"{path} holds a JSON {type(options).__name__}, expected an object")
    return options
