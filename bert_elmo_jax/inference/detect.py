"""Which weight format a folder holds."""

from pathlib import Path
from typing import Literal

from bert_elmo_jax.families.elmo.files import ENDINGS, elmo_files, named_options, named_weights
from bert_elmo_jax.weights.huggingface_files import ELSEWHERE, WEIGHTS
from bert_elmo_jax.weights.sorted_table import is_table

Format = Literal["huggingface", "google", "elmo"]
OWNERS = {"huggingface": "Hugging Face's", "google": "Google's", "elmo": "an ELMo's"}


def detect(path: str | Path) -> Format:
    """Return the format of a folder's weights, of the checkpoint whose prefix is given, or of a file of ELMo's weights.

    Hugging Face's own files may lie beside each other, as they do on the hub; other weights beside them are an error,
    because nothing says that they are the same.

    >>> detect("tests/goldens/bert_tiny"), detect("tests/goldens/bert_tiny_tf/bert_model.ckpt")
    ('huggingface', 'google')
    >>> detect("tests/goldens/elmo_tiny")
    'elmo'
    """
    path = Path(path)
    if not path.is_dir():
        if path.with_name(path.name.removesuffix(".index") + ".index").is_file() or is_table(path):
            return "google"
        if path.is_file() and path in named_weights(path.parent):
            return "elmo"
        if path.is_file():
            raise ValueError(f"{path} is a file: give the folder it is in, whose configuration is needed too")
        raise FileNotFoundError(
            f"{path} is neither a folder nor the prefix of a TensorFlow checkpoint (there is no {path.name}.index)"
        )
    found = _weights_in(path)
    if len(found) > 1:
        listed = " and ".join(f"{OWNERS[format]} ({', '.join(files)})" for format, files in found.items())
        choices = " or ".join(f'format="{format}"' for format in found)
        raise ValueError(
            f"{path} holds {'two' if len(found) == 2 else 'three'} models: {listed}. "
            f"Say which is meant, {choices}, or move the others away."
        )
    if not found:
        raise FileNotFoundError(_nothing(path))
    return next(iter(found))


def _weights_in(folder: Path) -> dict[Format, list[str]]:
    """The files of each format that a folder holds."""
    files: dict[Format, list[str]] = {
        "huggingface": [name for name in WEIGHTS if (folder / name).is_file()],
        "google": sorted(index.name for index in folder.glob("*.index")),
        "elmo": elmo_files(folder),
    }
    return {format: names for format, names in files.items() if names}


def _nothing(path: Path) -> str:
    here = sorted(child.name + "/" * child.is_dir() for child in path.iterdir())
    shown = ", ".join(here[:20]) + (f" and {len(here) - 20} more" if len(here) > 20 else "")
    text = (
        f"{path} holds no weights. Looked for Hugging Face's ({', '.join(WEIGHTS)}) and Google's (a TensorFlow "
        f"checkpoint, *.index) and an ELMo's (a file of weights, *{' or *'.join(ENDINGS)}, beside options.json); "
        f"it holds {shown or 'nothing'}."
    )
    gone = [name for name in ELSEWHERE if name in here]
    if gone:
        text += f" {', '.join(gone)} is not read: convert it with transformers."
    half = [file.name for file in named_options(path) + named_weights(path)]
    if half:
        text += f" Of an ELMo's two files only one kind is there ({', '.join(half)}): put the other beside it."
    inside = [child.name for child in sorted(path.iterdir()) if child.is_dir() and _weights_in(child)]
    return text + (f" There are weights one folder down, in {', '.join(inside)}: give that path." if inside else "")
