"""The first call in a new process and the tenth, by transformers on PyTorch."""

import json
import time
from pathlib import Path

import torch
import transformers

from .step import about

NAME = "transformers on PyTorch: AutoModel, SDPA, inference mode"


def main(folder: Path, precision: str) -> None:
    """Load the model, encode one text ten times, and print a line after the first and after the tenth."""
    text = json.loads((folder / "settings.json").read_text(encoding="utf-8"))["one"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="sdpa").eval()
    seconds = []
    for call in range(10):
        start = time.perf_counter()
        with torch.inference_mode():
            model(**tokenizer(text, return_tensors="pt")).last_hidden_state.numpy()
        seconds.append(time.perf_counter() - start)
        if call == 0:
            print("first", flush=True)
    print(json.dumps({**about(NAME, precision), "tenth": seconds[-1]}), flush=True)
