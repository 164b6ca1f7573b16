"""The files of a folder that hold an ELMo: weights, options, and token vectors in a file of their own."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_elmo_jax.weights.hdf5 import holds
from bert_elmo_jax.weights.stored import what_is

ENDINGS = (".hdf5", ".h5")
OTHERS = ("tf_model.h5",)  # what other models leave under such a name
PREFIXES = ("", "lm/", "bilm/")  # the scopes of a training run and of its inference graph; released files have none
LSTMS = tuple(f"{prefix}RNN_{direction}" for prefix in PREFIXES for direction in (0, 1))
EMBEDDINGS = tuple(f"{prefix}embedding" for prefix in PREFIXES)


def elmo_files(folder: str | Path) -> list[str]:
    """Return the names of the files that speak of an ELMo: none unless there are both weights and options.

    >>> elmo_files("tests/goldens/elmo_tiny")
    ['options.json', 'weights.hdf5']
    """
    weights, options = named_weights(Path(folder)), named_options(Path(folder))
    return [file.name for file in options + weights] if weights and options else []


def named_weights(folder: Path) -> list[Path]:
    """Return the files of a folder that are named as HDF5 is.

    >>> [file.name for file in named_weights(Path("tests/goldens/elmo_tiny"))]
    ['weights.hdf5']
    """
    return sorted(
        file
        for file in folder.iterdir()
        if file.name.lower().endswith(ENDINGS) and file.name not in OTHERS and file.is_file()
    )


def named_options(folder: Path) -> list[Path]:
    """Return the files of a folder that are named as ELMo's options are.

    >>> [file.name for file in named_options(Path("tests/goldens/elmo_tiny"))]
    ['options.json']
    """
    return sorted(file for file in folder.glob("*options*.json") if file.is_file())


def find_weights(path: str | Path) -> tuple[Path, list[Path]]:
    """Return the file of a folder that holds an ELMo's LSTMs, or the path itself where it is a file.

    Also the files beside it that hold the vectors of words (`embedding`), which bilm-tf keeps apart.

    >>> find_weights("tests/goldens/elmo_tiny")[0].name
    'weights.hdf5'
    """
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    files = named_weights(folder)
    if not files:
        raise FileNotFoundError(f"{folder} holds no ELMo: there is no file that ends with {' or '.join(ENDINGS)}")
    if not path.is_dir():
        return path, [file for file in files if file != path and _holds(file, EMBEDDINGS) is True]
    if len(files) == 1:
        return files[0], []
    found = {file: _holds(file, LSTMS) for file in files}
    weights = [file for file, answer in found.items() if answer is True]
    if len(weights) > 1:
        listed = ", ".join(file.name for file in weights)
        raise ValueError(f"{folder} holds {len(weights)} ELMos, give the path of one: {listed} (such as {weights[0]})")
    if not weights:
        listed = "; ".join(
            answer if isinstance(answer, str) else f"{file.name} has no LSTM (RNN_0)" for file, answer in found.items()
        )
        raise ValueError(f"{folder} holds no ELMo that can be read: {listed}")
    return weights[0], [file for file in files if file != weights[0] and _holds(file, EMBEDDINGS) is True]


def _holds(file: Path, names: tuple[str, ...]) -> bool | str:
    """Whether a file holds any of these names, or what is wrong with it: it may be of no concern."""
    try:
        return holds(file, names)
    except (ValueError, OSError) as problem:
        return str(problem)


def find_options(weights: Path) -> Path:
    """Return the options that belong to a file of weights: the only ones beside it, or those that are named alike.

    >>> find_options(Path("tests/goldens/elmo_tiny/weights.hdf5")).name
    'options.json'
    """
    options = named_options(weights.parent)
    if len(options) == 1:
        return options[0]
    if not options:
        raise FileNotFoundError(
            f"{weights.parent} has no options.json (or a file named *options*.json), which says how many layers its "
            "ELMo has and how it clips: copy it there, or give config="
        )
    alike = [file for file in options if file.stem.replace("options", "weights") == weights.stem]
    if len(alike) == 1:
        return alike[0]
    raise ValueError(
        f"{weights.parent} holds {len(options)} files of options ({', '.join(file.name for file in options)}), and "
        f"none is named as {weights.name} is: move those of other models away"
    )


def read_options(path: Path) -> Mapping[str, Any]:
    """Return what an `options.json` holds.

    >>> read_options(Path("tests/goldens/elmo_tiny/options.json"))["lstm"]["dim"]
    48
    """
    try:
        options = json.loads(path.read_text(encoding="utf-8-sig"))
    except (json.JSONDecodeError, UnicodeDecodeError) as problem:
        what = what_is(path)
        instead = "" if what == "a JSON text" else f" but {what}"
        raise ValueError(f"{path} is not a JSON file{instead}: {problem}") from None
    if not isinstance(options, dict):
        raise ValueError(f"{path} holds a JSON {type(options).__name__}; ELMo's options are an object with fields")
    return options
