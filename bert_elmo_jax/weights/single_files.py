"""Models that are stored as one file of torch or of safetensors, and are recognised by the names of their tensors."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from bert_elmo_jax.lazy_imports import lazy_function
from bert_elmo_jax.weights.stored import StoredTensor

# Nothing that reads tensors is imported where no file can hold them.
read_safetensors = lazy_function("bert_elmo_jax.weights.huggingface_files", "read_safetensors")
read_torch_pickle = lazy_function("bert_elmo_jax.weights.torch_pickle", "read_torch_pickle")

TORCH = (".pth", ".pt")


def read_tensors(file: Path) -> Mapping[str, StoredTensor]:
    """Return the tensors of a file by name; numbers are read on demand."""
    read = read_safetensors if file.suffix.lower() == ".safetensors" else read_torch_pickle
    tensors: Mapping[str, StoredTensor] = read(file)
    return tensors


@dataclass(frozen=True)
class SingleFiles:
    """The files of one kind of model."""

    called: str  # "CoVe"
    sign: str  # a tensor that each of them has, for messages
    written: Collection[str]  # the names of files that are written here, besides torch's
    is_model: Callable[[Collection[str]], bool]  # from the names of a file's tensors

    def is_file(self, path: Path) -> bool:
        """Return True for a file with such a model; only names and shapes are read."""
        try:
            return self._may_hold(path) and self.is_model(read_tensors(path).keys())
        except (ValueError, OSError):
            return False

    def find(self, folder: str | Path) -> list[str]:
        """Return the names of the files in a folder that hold such a model."""
        return [file.name for file in self._candidates(Path(folder)) if self.is_file(file)]

    def find_weights(self, path: str | Path) -> Path:
        """Return the file of weights of a folder, or the file that is given."""
        path = Path(path)
        if not path.is_dir():
            return path
        names = self.find(path)
        if not names:
            raise FileNotFoundError(f"{path} has no {self.called}: no .pth file in it holds {self.sign}")
        if len(names) > 1:
            listed = f"{', '.join(names)} (such as {path / names[0]})"
            raise ValueError(f"{path} has {len(names)} {self.called}s, give the path of one: {listed}")
        return path / names[0]

    def explain(self, folder: Path) -> str:
        """Return why the files of a folder that end like torch's cannot be read."""
        problems = []
        for file in self._candidates(folder):
            try:
                read_tensors(file)
            except (ValueError, OSError) as error:
                problems.append(str(error))
        return " ".join(problems)

    def _candidates(self, folder: Path) -> list[Path]:
        return sorted(file for file in folder.iterdir() if self._may_hold(file))

    def _may_hold(self, path: Path) -> bool:
        return (path.suffix.lower() in TORCH or path.name in self.written) and path.is_file()
