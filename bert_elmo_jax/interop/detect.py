"""Which weight format a folder holds."""

from pathlib import Path
from typing import Literal

from bert_elmo_jax.interop.huggingface_files import ELSEWHERE, WEIGHTS
from bert_elmo_jax.interop.sorted_table import is_table

Format = Literal["huggingface", "google"]


def detect(path: str | Path) -> Format:
    """Return the format of a folder's weights, or of the checkpoint whose prefix is given.

    Hugging Face's own files may lie beside each other, as they do on the hub; its weights beside a Google checkpoint
    are an error, because nothing says that they are the same.

    >>> detect("tests/goldens/bert_tiny"), detect("tests/goldens/bert_tiny_tf/bert_model.ckpt")
    ('huggingface', 'google')
    """
    path = Path(path)
    if not path.is_dir():
        if path.with_name(path.name.removesuffix(".index") + ".index").is_file() or is_table(path):
            return "google"
        if path.is_file():
            raise ValueError(f"{path} is a file: give the folder it is in, whose configuration is needed too")
        raise FileNotFoundError(
            f"{path} is neither a folder nor the prefix of a TensorFlow checkpoint (there is no {path.name}.index)"
        )
    hugging_face = [name for name in WEIGHTS if (path / name).is_file()]
    google = sorted(index.name for index in path.glob("*.index"))
    if hugging_face and google:
        raise ValueError(
            f"{path} holds two models: Hugging Face's ({', '.join(hugging_face)}) and Google's ({', '.join(google)}). "
            'Say which is meant, format="huggingface" or format="google", or move one away.'
        )
    if hugging_face:
        return "huggingface"
    if google:
        return "google"
    raise FileNotFoundError(_nothing(path))


def _nothing(path: Path) -> str:
    here = sorted(child.name + "/" * child.is_dir() for child in path.iterdir())
    shown = ", ".join(here[:20]) + (f" and {len(here) - 20} more" if len(here) > 20 else "")
    text = (
        f"{path} holds no weights. Looked for Hugging Face's ({', '.join(WEIGHTS)}) and Google's (a TensorFlow "
        f"checkpoint, *.index); it holds {shown or 'nothing'}."
    )
    gone = [name for name in ELSEWHERE if name in here]
    if gone:
        text += f" {', '.join(gone)} is not read: convert it with transformers."
    inside = [
        child.name
        for child in sorted(path.iterdir())
        if child.is_dir() and (any((child / name).is_file() for name in WEIGHTS) or any(child.glob("*.index")))
    ]
    return text + (f" There are weights one folder down, in {', '.join(inside)}: give that path." if inside else "")
