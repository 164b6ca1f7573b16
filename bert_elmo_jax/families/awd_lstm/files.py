"""Find the files of an AWD-LSTM: weights by the names of their tensors, and the vocabulary in the same folder."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TORCH = (".pth", ".pt")
WRITTEN = {"forward": "lm.safetensors", "backward": "lm_bwd.safetensors"}  # the files that `write` makes
# The first layer's input matrix, after any prefix: it shows that a file holds an AWD-LSTM.
FIRST = re.compile(r"(.*\.)?rnns\.0\.(module\.weight_ih_l0|layers\.0\.linear\.weight)")
BACKWARD = re.compile(r"(?<![a-z])(bwd|backwards?)(?![a-z])", re.IGNORECASE)


def candidates(folder: Path) -> list[Path]:
    """Return the files of a folder whose names an AWD-LSTM may have."""
    return sorted(file for file in folder.iterdir() if _may_hold(file))


def awd_lstm_files(folder: str | Path) -> list[str]:
    """Return the names of the files in a folder that hold the weights of an AWD-LSTM."""
    return [file.name for file in candidates(Path(folder)) if is_awd_lstm(file)]


def is_awd_lstm(path: Path) -> bool:
    """Return True for a file with the tensors of an AWD-LSTM; only names and shapes are read."""
    if not _may_hold(path):
        return False
    try:
        return any(FIRST.fullmatch(name) for name in read_tensors(path))
    except (ValueError, OSError):
        return False


def read_tensors(file: Path) -> Mapping[str, Any]:
    """Return the tensors of a file by name; numbers are read on demand."""
    if file.suffix.lower() == ".safetensors":
        from bert_elmo_jax.weights.huggingface_files import read_safetensors

        return read_safetensors(file)
    from bert_elmo_jax.weights.torch_pickle import read_torch_pickle

    return read_torch_pickle(file)


def find_weights(path: str | Path) -> Path:
    """Return the file of weights of a folder, or the file that is given.

    >>> find_weights("tests/goldens/awd_lstm_tiny").name
    'lm.pth'
    """
    path = Path(path)
    if not path.is_dir():
        return path
    names = awd_lstm_files(path)
    if not names:
        raise FileNotFoundError(f"{path} has no AWD-LSTM: no .pth file in it holds rnns.0.module.weight_ih_l0")
    if len(names) > 1:
        listed = ", ".join(names)
        raise ValueError(
            f"{path} has {len(names)} AWD-LSTMs, give the path of one: {listed} (such as {path / names[0]})"
        )
    return path / names[0]


def direction_of(file: Path) -> str:
    """Return "backward" for a file that is named so, because its tensors do not show it.

    >>> direction_of(Path("lstm_bwd.pth")), direction_of(Path("lm.pth"))
    ('backward', 'forward')
    """
    return "backward" if BACKWARD.search(file.stem.replace("_", " ")) else "forward"


def _may_hold(path: Path) -> bool:
    return (path.suffix.lower() in TORCH or path.name in WRITTEN.values()) and path.is_file()
