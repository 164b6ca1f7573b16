"""Our encoding of texts, and of one text: `load(folder).encode(texts)`."""

from pathlib import Path
from typing import Any

import jax

from bert_elmo_jax import load

from .._inputs import read_settings
from . import about


def make_passes(folder: Path, precision: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the encoding of all texts, and of one; both tokenise, plan the rows and copy the vectors out."""
    settings = read_settings(folder)
    texts, size = settings["texts"], settings["batch_size"]
    dtype: Any = precision
    # On a GPU in 16 bits attention is cuDNN's, as SDPA is on the other side.
    fused = jax.default_backend() == "gpu" and precision == "bfloat16"
    encoder = load(folder, dtype=dtype, attention="fused" if fused else None)

    def encode() -> None:
        encoder.encode(texts, batch_size=size, progress=False)

    def one_text() -> int:
        for _ in range(10):
            encoder.encode([settings["one"]])
        return 10

    last = encoder.encode(texts[:4]).last
    pieces = sum(len(encoder.tokenizer.encode(text).ids) for text in texts)
    record = {**about(), "check": [float(x) for x in last[:, 0, :4].ravel()], "pieces": pieces}
    return {"encode": encode, "one_text": one_text}, record
