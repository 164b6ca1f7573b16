"""Encoding in PyTorch as a careful user writes it: sorted by length, in batches, inference mode; BERT by SDPA.

On a GPU, if torch finds one, compiled for any length.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from .step import DEVICE, about

NAME = "transformers on PyTorch: sorted by length, SDPA, inference mode"
OWN_NAME = "transformers on PyTorch: sorted by length, DeBERTa's own attention, inference mode"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def make_passes(folder: Path, precision: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the encoding of all texts, and of one; both tokenise."""
    settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    texts, size = settings["texts"], settings["batch_size"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    is_bert = transformers.AutoConfig.from_pretrained(folder).model_type == "bert"
    attention = "sdpa" if is_bert else "eager"  # transformers has no other for DeBERTa
    model: Any = transformers.AutoModel.from_pretrained(folder, attn_implementation=attention, dtype=DTYPES[precision])
    model.eval()
    model.to(DEVICE)
    run = torch.compile(model, dynamic=True) if DEVICE == "cuda" else model

    def encode(texts: list[str]) -> list[np.ndarray]:
        rows = [torch.tensor(ids) for ids in tokenizer(texts)["input_ids"]]
        order = sorted(range(len(rows)), key=lambda n: -len(rows[n]))
        vectors: list[Any] = [None] * len(rows)
        with torch.inference_mode():
            for at in range(0, len(order), size):
                places = order[at : at + size]
                tokens = torch.nn.utils.rnn.pad_sequence([rows[n] for n in places], batch_first=True)
                mask = (torch.arange(tokens.shape[1])[None] < torch.tensor([len(rows[n]) for n in places])[:, None]) * 1
                out = run(tokens.to(DEVICE), attention_mask=mask.to(DEVICE)).last_hidden_state.float().cpu().numpy()
                for row, n in enumerate(places):
                    vectors[n] = out[row, : len(rows[n])]
        return vectors

    def one_text() -> int:
        for _ in range(10):
            encode([settings["one"]])
        return 10

    check = [float(x) for vectors in encode(texts[:4]) for x in vectors[0, :4]]
    pieces = sum(map(len, tokenizer(texts)["input_ids"]))
    name = (NAME if is_bert else OWN_NAME) + ", compiled" * (DEVICE == "cuda")
    record = {**about(name, precision), "check": check, "pieces": pieces}
    return {"encode": lambda: encode(texts) and None, "one_text": one_text}, record
