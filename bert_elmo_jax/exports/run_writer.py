"""Writes with the model of this folder, without the package that trained it: the likeliest piece, one after the other.

  python run.py "a text to continue, or to translate"          # or one text per line on standard input
  MAX_NEW=64 python run.py …                                   # more pieces than 32

It needs numpy, tokenizers, and onnxruntime (for onnx/) or jax (for the .stablehlo files). With QUANTIZED=1 it uses the
quantised files.
"""

import json
import os
import sys
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from bert_elmo_jax.exports.load_graph import FOLDER, find_tokenizer, load_graph, print_lines, use_utf8


def run_graph(model: Any, name: str, arrays: Any) -> dict[str, Any]:
    """Return the outputs of a graph by name."""
    graph = model["graphs"][name]
    outputs = load_graph(name, tuple(graph["outputs"]))({key: arrays[key] for key in graph["inputs"]})
    return {key.replace("present", "past_key_values"): x for key, x in zip(graph["outputs"], outputs)}


def find_repeats(pieces: list[int], size: int) -> list[int]:
    """Return the pieces that would repeat a sequence of `size` pieces; none if the size is 0."""
    starts = range(len(pieces) - size + 1) if size else ()
    before = pieces[len(pieces) - size + 1 :]
    return [pieces[n + size - 1] for n in starts if pieces[n : n + size - 1] == before]


def write(ids: list[int], most: int) -> list[int]:
    """Return up to `most` pieces that follow these, or that translate them, with the piece that ends the text."""
    model: dict[str, Any] = json.loads((FOLDER / "export.json").read_text("utf-8"))
    read = np.array([ids], np.int64)
    if model["first"] is None:
        sizes = {"batch": 1, "past": 1}
        memory = {
            key: np.zeros([sizes.get(size, size) for size in shape], dtype)
            for key, (shape, dtype) in model["empty_memory"].items()
        }
        name = "model"
    else:
        memory = run_graph(model, "encoder_model", {"input_ids": read, "attention_mask": np.ones_like(read)})
        name, read = "decoder_model", np.array([[model["first"]]], np.int64)
    mask = np.zeros((1, 1), np.int64)  # the first slot of the memory is empty
    past = ids if model["first"] is None else [model["first"]]
    written: list[int] = []
    while len(written) < most and not (written and written[-1] in model["ends"]):
        mask = np.concatenate([mask, np.ones_like(read)], axis=1)
        outputs = run_graph(model, name, {"input_ids": read, "attention_mask": mask, **memory})
        scores = np.array(outputs.pop("logits")[0, -1])
        memory |= outputs
        scores[model["forbidden"] + find_repeats([*past, *written], model["no_repeat_ngram_size"])] = -np.inf
        if len(written) < min(model["min_new"], most):
            scores[model["ends"]] = -np.inf
        piece = int(scores.argmax())
        if not written and model["forced_first"] is not None:
            piece = model["forced_first"]
        elif len(written) == most - 1 and model["forced_end"] is not None:
            piece = model["forced_end"]
        written.append(piece)
        read = np.array([[piece]], np.int64)
    return written


def predict(texts: Any, most: int = 32, first: int = 0) -> list[str]:
    """Return what the model writes after each text, or its translation; errors count the texts from `first`."""
    model: dict[str, Any] = json.loads((FOLDER / "export.json").read_text("utf-8"))
    tokenizer = Tokenizer.from_file(find_tokenizer())
    answers = []
    for number, text in enumerate(texts, first):
        translates = model["first"] is not None
        ids = tokenizer.encode(text, add_special_tokens=translates).ids
        ids = ids if translates else [*model["before"], *ids]
        free_places = model["most"] if translates or model["most"] is None else model["most"] - len(ids) + 1
        if not ids or (free_places is not None and (free_places < 1 or (translates and len(ids) > free_places))):
            raise ValueError(f"text {number} has {len(ids)} pieces; the model reads 1 to {model['most']}")
        written = write(ids, most if free_places is None else min(most, free_places))
        text = tokenizer.decode([piece for piece in written if piece not in model["ends"]])
        answers.append(text)
    return answers


if __name__ == "__main__":
    if sys.argv[1:] in (["--help"], ["-h"]):
        print(__doc__.strip())
        sys.exit()
    use_utf8()
    try:
        lines = sys.argv[1:] or (line.rstrip("\n") for line in sys.stdin)
        most = int(os.environ.get("MAX_NEW", "32"))
        print_lines(lambda texts, first: predict(texts, most, first), lines)
    except ValueError as error:
        sys.exit(f"run.py: {error}")
    except Exception as error:  # of the libraries, about files that are missing or damaged
        sys.exit(f"run.py: {type(error).__name__}: {str(error).strip() or 'the folder is not complete'}")
