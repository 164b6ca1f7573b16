"""Vectors of sentences by sentence-transformers with its ONNX backend, from the folder that our export wrote."""

import json
from pathlib import Path
from typing import Any

import onnxruntime
import sentence_transformers

NAME = "sentence-transformers with ONNX Runtime"


def make_passes(folder: Path, precision: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the vectors of all texts, and of one."""
    settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    file = f"onnx/model{'_quantized' if precision == 'int8' else ''}.onnx"
    options = {"file_name": file, "provider": "CPUExecutionProvider", "export": False}
    model = sentence_transformers.SentenceTransformer(str(folder / "exported"), backend="onnx", model_kwargs=options)

    def encode(texts: list[str]) -> Any:
        return model.encode(texts, batch_size=settings["batch_size"], show_progress_bar=False)

    def one_text() -> int:
        for _ in range(10):
            encode([settings["one"]])
        return 10

    check = [float(x) for x in encode(settings["texts"][:4])[:, :8].ravel()]
    pieces = sum(map(len, model.tokenizer(settings["texts"])["input_ids"]))
    version = f"{sentence_transformers.__version__}, {onnxruntime.__version__}"
    about = {"peer": {"name": NAME, "version": version, "precision": precision}, "device": "cpu"}
    passes = {"sentences": lambda: encode(settings["texts"]) is None, "one_text": one_text}
    return passes, {**about, "check": check, "pieces": pieces}
