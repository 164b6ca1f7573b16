"""Find the weights of a CoVe, cheaply: nothing that reads tensors is imported where no file can hold them."""

from collections.abc import Mapping
from pathlib import Path

from bert_elmo_jax.lazy_imports import lazy_function
from bert_elmo_jax.weights.stored import StoredTensor

read_safetensors = lazy_function("bert_elmo_jax.weights.huggingface_files", "read_safetensors")
read_torch_pickle = lazy_function("bert_elmo_jax.weights.torch_pickle", "read_torch_pickle")

Tensors = Mapping[str, StoredTensor]

TORCH = (".pth", ".pt")
WRITTEN = "wmtlstm.safetensors"  # the file that `write` makes
FIRST = "weight_ih_l0"  # every LSTM of torch has this tensor
PREFIXES = ("", "rnn.")


def candidates(folder: Path) -> list[Path]:
    """Return the files of a folder whose names a CoVe may have.

    >>> [file.name for file in candidates(Path("tests/goldens/cove_tiny"))]
    ['wmtlstm.pth']
    """
    return sorted(file for file in folder.iterdir() if _may_hold(file))


def cove_files(folder: str | Path) -> list[str]:
    """Return the names of the files in a folder that hold the weights of a CoVe."""
    return [file.name for file in candidates(Path(folder)) if is_cove(file)]


def is_cove(path: Path) -> bool:
    """Return True for a file with the tensors of a CoVe's LSTM; only names and shapes are read."""
    if not _may_hold(path):
        return False
    try:
        return find_prefix(read_tensors(path)) is not None
    except (ValueError, OSError):
        return False


def advice(folder: Path) -> str:
    """Return why the files of a folder that end with .pth cannot be read."""
    problems = []
    for file in candidates(folder):
        try:
            read_tensors(file)
        except (ValueError, OSError) as error:
            problems.append(str(error))
    return " ".join(problems)


def find_weights(path: str | Path) -> Path:
    """Return the file of weights of a folder, or the file that is given."""
    path = Path(path)
    if not path.is_dir():
        return path
    names = cove_files(path)
    if not names:
        raise FileNotFoundError(f"{path} has no CoVe: no .pth file in it holds {FIRST}")
    if len(names) > 1:
        listed = ", ".join(names)
        raise ValueError(f"{path} has {len(names)} CoVes, give the path of one: {listed} (such as {path / names[0]})")
    return path / names[0]


def read_tensors(file: Path) -> Tensors:
    """Return the tensors of a file by name; numbers are read on demand."""
    tensors: Tensors = (read_safetensors if file.suffix.lower() == ".safetensors" else read_torch_pickle)(file)
    return tensors


def find_prefix(stored: Tensors) -> str | None:
    """Return what the names of the LSTM's tensors begin with; None if there is no such LSTM."""
    return next((prefix for prefix in PREFIXES if prefix + FIRST in stored), None)


def _may_hold(path: Path) -> bool:
    return (path.suffix.lower() in TORCH or path.name == WRITTEN) and path.is_file()
