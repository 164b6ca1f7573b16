"""Our vectors of sentences, in float32 or int8: `load(folder).sentences(texts)`."""

from pathlib import Path
from typing import Any

from bert_elmo_jax import load

from .._inputs import read_settings
from . import about


def make_passes(folder: Path, precision: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the vectors of all texts, and of one."""
    settings = read_settings(folder)
    dtype: Any = precision
    encoder = load(folder, dtype=dtype)

    def sentences() -> None:
        encoder.sentences(settings["texts"], batch_size=settings["batch_size"], progress=False)

    def one_text() -> int:
        for _ in range(10):
            encoder.sentences([settings["one"]])
        return 10

    check = encoder.sentences(settings["texts"][:4])[:, :8].ravel()
    pieces = sum(len(encoder.tokenizer.encode(text).ids) for text in settings["texts"])
    record = {**about(), "check": [float(x) for x in check], "pieces": pieces}
    return {"sentences": sentences, "one_text": one_text}, record
