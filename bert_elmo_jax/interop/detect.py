"""Detection of weight formats."""

from pathlib import Path
from typing import Literal

from bert_elmo_jax.interop.elmo_files import ENDINGS, elmo_files, named_options, named_weights
from bert_elmo_jax.interop.huggingface_files import ELSEWHERE, WEIGHTS
from bert_elmo_jax.interop.sorted_table import is_table

Format = Literal["huggingface", "google", "elmo"]
OWNERS = {"huggingface": "Hugging Face", "google": "Google", "elmo": "ELMo"}


def detect(path: str | Path) -> Format:
    """Return the weight format of a folder, a checkpoint prefix or a file of ELMo weights.

    A folder may hold the same Hugging Face weights in several files, as on the hub. Raise if it holds more than one
    format.

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
            raise ValueError(f"{path} is a file: give its folder, which also holds the configuration")
        raise FileNotFoundError(
            f"{path} is neither a folder nor the prefix of a TensorFlow checkpoint ({path.name}.index does not exist)"
        )
    found = _weights_in(path)
    if len(found) > 1:
        listed = " and ".join(f"{OWNERS[format]} ({', '.join(files)})" for format, files in found.items())
        choices = " or ".join(f'format="{format}"' for format in found)
        raise ValueError(
            f"{path} holds weights in {len(found)} formats: {listed}. Choose one ({choices}), or move the others away."
        )
    if not found:
        raise FileNotFoundError(_describe_no_weights(path))
    return next(iter(found))


def _weights_in(folder: Path) -> dict[Format, list[str]]:
    """Return the weight files of each format in a folder."""
    files: dict[Format, list[str]] = {
        "huggingface": [name for name in WEIGHTS if (folder / name).is_file()],
        "google": sorted(index.name for index in folder.glob("*.index")),
        "elmo": elmo_files(folder),
    }
    return {format: names for format, names in files.items() if names}


def _describe_no_weights(path: Path) -> str:
    here = sorted(child.name + "/" * child.is_dir() for child in path.iterdir())
    shown = ", ".join(here[:20]) + (f" and {len(here) - 20} more" if len(here) > 20 else "")
    text = (
        f"{path} holds no weights. Looked for Hugging Face ({', '.join(WEIGHTS)}), Google (a TensorFlow checkpoint, "
        f"*.index) and ELMo (weights, *{' or *'.join(ENDINGS)}, and options.json). Found {shown or 'nothing'}."
    )
    gone = [name for name in ELSEWHERE if name in here]
    if gone:
        text += f" {', '.join(gone)} is not supported: convert it with transformers."
    half = [file.name for file in named_options(path) + named_weights(path)]
    if half:
        text += f" An ELMo needs both weights and options, found only {', '.join(half)}: add the other file."
    inside = [child.name for child in sorted(path.iterdir()) if child.is_dir() and _weights_in(child)]
    return text + (f" Subfolders with weights: {', '.join(inside)}; give that path." if inside else "")
