"""Encoding with ONNX Runtime as a careful user deploys a BERT: fused layers, sorted by length, dynamic int8.

PyTorch exports the model, ONNX Runtime's optimiser fuses its layers, and int8 kernels have a scale for each output.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
import transformers
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers import optimizer

NAME = "ONNX Runtime: fused layers, sorted by length"
INPUTS = ("input_ids", "attention_mask")


def write_model(folder: Path, int8: bool) -> Path:
    """Export the folder's BERT with fused layers; return the file, quantised if asked."""
    model = transformers.BertModel.from_pretrained(folder, attn_implementation="eager").eval().requires_grad_(False)

    class Last(torch.nn.Module):
        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    ids = torch.randint(5, 20, (2, 9))
    axes = {name: {0: "rows", 1: "length"} for name in (*INPUTS, "last")}
    exported, fused, quantised = (folder / f"{name}.onnx" for name in ("exported", "fused", "quantised"))
    torch.onnx.export(
        Last(), (ids, torch.ones_like(ids)), str(exported), input_names=[*INPUTS], output_names=["last"],
        dynamic_axes=axes, opset_version=17, dynamo=False,
    )  # fmt: skip
    heads, size = model.config.num_attention_heads, model.config.hidden_size
    changed = optimizer.optimize_model(str(exported), model_type="bert", num_heads=heads, hidden_size=size, opt_level=1)
    changed.save_model_to_file(str(fused))
    if not int8:
        return fused
    options = {"DefaultTensorType": onnx.TensorProto.FLOAT}
    quantize_dynamic(fused, quantised, weight_type=QuantType.QInt8, per_channel=True, extra_options=options)
    return quantised


def make_passes(folder: Path, precision: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the encoding of all texts; it tokenises."""
    settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    texts, size = settings["texts"], settings["batch_size"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    options = onnxruntime.SessionOptions()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    options.intra_op_num_threads = cores or 1
    file = write_model(folder, precision == "int8")
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])

    def encode(texts: list[str]) -> list[np.ndarray]:
        rows = tokenizer(texts)["input_ids"]
        order = sorted(range(len(rows)), key=lambda n: -len(rows[n]))
        vectors: list[Any] = [None] * len(rows)
        for at in range(0, len(order), size):
            places = order[at : at + size]
            tokens = np.zeros((len(places), len(rows[places[0]])), np.int64)
            mask = np.zeros_like(tokens)
            for row, n in enumerate(places):
                tokens[row, : len(rows[n])] = rows[n]
                mask[row, : len(rows[n])] = 1
            (out,) = session.run(None, dict(zip(INPUTS, (tokens, mask), strict=True)))
            for row, n in enumerate(places):
                vectors[n] = out[row, : len(rows[n])]
        return vectors

    check = [float(x) for vectors in encode(texts[:4]) for x in vectors[0, :4]]
    pieces = sum(map(len, tokenizer(texts)["input_ids"]))
    version = f"{onnxruntime.__version__}, transformers {transformers.__version__}"
    about = {"peer": {"name": NAME, "version": version, "precision": precision}, "device": "cpu"}
    return {"encode": lambda: encode(texts) and None}, {**about, "check": check, "pieces": pieces}
