"""The files of a Hugging Face folder that are the same whatever model they are of: weights and vocabulary."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_elmo_jax.weights.safetensors import read_safetensors
from bert_elmo_jax.weights.shards import read_shards
from bert_elmo_jax.weights.stored import StoredTensor
from bert_elmo_jax.weights.torch_pickle import read_torch_pickle

# In the order in which transformers looks for them; all that are there are taken to hold the same weights.
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
ELSEWHERE = ("tf_model.h5", "flax_model.msgpack", "rust_model.ot")  # the same weights for programs that are gone


def read_folder(folder: str | Path) -> tuple[str, dict[str, StoredTensor]]:
    """Return where the weights of a folder were found, and all tensors by name; safetensors are preferred.

    >>> source, tensors = read_folder("tests/goldens/bert_tiny")
    >>> Path(source).name, tensors["cls.predictions.bias"].shape
    ('model.safetensors', (200,))
    """
    folder = Path(folder)
    there = [name for name in WEIGHTS if (folder / name).is_file()]
    if not there:
        gone = [name for name in ELSEWHERE if (folder / name).is_file()]
        raise FileNotFoundError(
            f"{folder} holds no weights that can be read: none of {', '.join(WEIGHTS)} is there"
            + (f" ({', '.join(gone)} is, which is not read: convert it with transformers)" if gone else "")
        )
    name = there[0]
    read_one = read_safetensors if "safetensors" in name else read_torch_pickle
    stored = read_shards(folder / name, read_one) if name.endswith(".json") else read_one(folder / name)
    beside = f" (not read: {', '.join(there[1:])} beside it)" if there[1:] else ""
    return f"{folder / name}{beside}", stored


def tokenizer_files(
    vocab: Sequence[str], tokenizer: Mapping[str, Any], vocab_size: int, max_positions: int
) -> dict[str, str]:
    r"""Return the text of `vocab.txt` and `tokenizer_config.json`, for a model of so many embeddings and positions.

    >>> tokenizer_files(["[PAD]", "강"], {"do_lower_case": False}, 2, 512)["vocab.txt"]
    '[PAD]\n강\n'
    """
    if len(vocab) > vocab_size:
        raise ValueError(f"the vocabulary has {len(vocab)} pieces and the model {vocab_size} embeddings")
    broken = [repr(piece) for piece in vocab if "\n" in piece or not piece]
    if broken:
        raise ValueError(f"vocab.txt is one piece a line, which these cannot be: {', '.join(broken)}")
    content = {"tokenizer_class": "BertTokenizer", "model_max_length": max_positions, **tokenizer}
    return {
        "vocab.txt": "".join(f"{piece}\n" for piece in vocab),
        "tokenizer_config.json": json.dumps(content, indent=2, ensure_ascii=False) + "\n",
    }
