"""Files that every Hugging Face model has: weights and vocabulary."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_elmo_jax.weights.safetensors import read_safetensors
from bert_elmo_jax.weights.shards import read_shards
from bert_elmo_jax.weights.stored import StoredTensor
from bert_elmo_jax.weights.torch_pickle import read_torch_pickle

# In the search order of transformers; all of them are assumed to hold the same weights.
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
ELSEWHERE = ("tf_model.h5", "flax_model.msgpack", "rust_model.ot")  # the same weights for other frameworks


def read_folder(folder: str | Path) -> tuple[str, dict[str, StoredTensor]]:
    """Return the source of a folder's weights and all tensors by name; safetensors are preferred."""
    folder = Path(folder)
    names = [name for name in WEIGHTS if (folder / name).is_file()]
    if not names:
        gone = [name for name in ELSEWHERE if (folder / name).is_file()]
        raise FileNotFoundError(
            f"{folder} has no readable weights: none of {', '.join(WEIGHTS)} exists"
            + (f" ({', '.join(gone)} is not supported: convert it with transformers)" if gone else "")
        )
    path = folder / names[0]
    read_one = read_safetensors if "safetensors" in path.name else read_torch_pickle
    stored = read_shards(path, read_one) if path.suffix == ".json" else read_one(path)
    return f"{path} (not read: {', '.join(names[1:])})" if names[1:] else str(path), stored


def tokenizer_files(
    vocab: Sequence[str], tokenizer: Mapping[str, Any], vocab_size: int, max_positions: int
) -> dict[str, str]:
    """Return the text of `vocab.txt` and `tokenizer_config.json`, given the model's vocabulary and position limits."""
    if len(vocab) > vocab_size:
        raise ValueError(f"the vocabulary has {len(vocab)} pieces, but the model only {vocab_size} embeddings")
    broken = [repr(piece) for piece in vocab if "\n" in piece or not piece]
    if broken:
        raise ValueError(
            f"vocab.txt has one piece per line, so pieces must be non-empty and have no newline: {', '.join(broken)}"
        )
    content = {"tokenizer_class": "BertTokenizer", "model_max_length": max_positions, **tokenizer}
    return {
        "vocab.txt": "".join(f"{piece}\n" for piece in vocab),
        "tokenizer_config.json": json.dumps(content, indent=2, ensure_ascii=False) + "\n",
    }
