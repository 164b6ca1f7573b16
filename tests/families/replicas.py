"""Small replicas of released models: the settings of their config.json, small sizes, and weights drawn from names.

This file imports neither JAX nor torch, because tests/goldens/make_released_models.py uses it, too.
"""

import json
import zlib
from pathlib import Path

import numpy as np

MODELS = Path(__file__).parents[2] / "docs" / "models.json"
VOCABULARY = 60
# Sizes by the names that configurations give them; numbers of layers, heads and positions stay small as well.
SIZES = {
    **dict.fromkeys(("hidden_size", "dim", "n_embd", "d_model", "pooler_hidden_size"), 16),
    **dict.fromkeys(("intermediate_size", "hidden_dim", "encoder_ffn_dim", "decoder_ffn_dim"), 24),
    **dict.fromkeys(("num_hidden_layers", "n_layers", "n_layer", "encoder_layers", "decoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "n_heads", "n_head", "num_key_value_heads"), 2),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 2),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx"), 24),
    "vocab_size": VOCABULARY,
    "local_attention": 4,
    "position_buckets": 4,
}


def read_models() -> list[dict]:
    """Return the entries of docs/models.json."""
    return json.loads(MODELS.read_text(encoding="utf-8"))


def shrink(config: dict) -> dict:
    """Return a configuration with small sizes; ids of special pieces fit into the vocabulary."""
    small = {name: SIZES.get(name, value) for name, value in config.items()}
    if config.get("embedding_size", config.get("hidden_size")) != config.get("hidden_size"):
        small["embedding_size"] = 8
    elif "embedding_size" in config:
        small["embedding_size"] = SIZES["hidden_size"]
    if config["model_type"] == "modernbert":
        small["num_hidden_layers"] = 4  # the fourth is global again
    if config["model_type"] in ("roberta", "xlm-roberta", "mpnet"):
        small["max_position_embeddings"] += 2  # positions begin behind the padding id
    ids = sorted({value for name, value in config.items() if name.endswith("_token_id") and value >= VOCABULARY})
    return {
        name: 50 + ids.index(value) if name.endswith("_token_id") and value >= VOCABULARY else value
        for name, value in small.items()
    }


def draw_weight(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return the weights of a parameter: large enough that every detail of the mathematics shows."""
    draw = np.random.default_rng(zlib.crc32(name.encode()))
    values = draw.normal(size=shape, scale=0.3).astype(np.float32)
    return values + (1 if len(shape) == 1 and name.endswith("weight") else 0)  # the factors of layer norms


def draw_batch(config: dict) -> tuple[np.ndarray, np.ndarray]:
    """Return tokens [2, 10] without special pieces inside, and a mask [2, 10]; the second row is padded."""
    draw = np.random.default_rng(0)
    tokens = draw.integers(5, 45, (2, 10))
    mask = np.ones_like(tokens)
    mask[1, 7:] = 0
    return np.where(mask > 0, tokens, config.get("pad_token_id") or 0), mask
