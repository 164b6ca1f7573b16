"""A family in one file: embeddings and one mixing layer, pretrained to guess masked pieces.

Importing this file registers the family; it is also the config of a pretraining run.
"""

from dataclasses import dataclass

import flax.linen as nn
import jax.numpy as jnp
from ml_collections import ConfigDict

from bert_elmo_jax.families import register
from bert_elmo_jax.families.family import Family, Head, Output
from bert_elmo_jax.families.piece_objective import piece_objective
from bert_elmo_jax.families.pieces import Pieces


@dataclass(frozen=True)
class BagConfig:
    """The sizes of a bag."""

    vocab_size: int = 100
    hidden_size: int = 32
    max_positions: int = 128
    pad_id: int = 0
    num_layers: int = 1
    initializer_range: float = 0.02
    head_dropout: float = 0.0
    dtype: str = "float32"


class Bag(nn.Module):
    """A layer that adds the mean of its text to each piece, through a dense layer."""

    config: BagConfig

    @nn.compact
    def __call__(
        self, tokens, types=None, positions=None, segments=None, *, layers=None, attentions=False, deterministic=True
    ):
        c = self.config
        init = nn.initializers.normal(c.initializer_range)
        table = self.param("embeddings", lambda key: {"word": init(key, (c.vocab_size, c.hidden_size))})["word"]
        x = jnp.take(table, tokens, axis=0)
        segments = jnp.ones_like(tokens) if segments is None else segments
        same = (segments[:, :, None] == segments[:, None, :]) & (segments > 0)[:, None, :]
        weights = same / jnp.maximum(same.sum(-1, keepdims=True), 1)
        mean = jnp.einsum("bts,bsd->btd", weights.astype(x.dtype), x)
        y = x + nn.gelu(nn.Dense(c.hidden_size, name="layer_0")(jnp.concatenate([x, mean], axis=-1)))
        every = jnp.stack([x, y])
        return Output(y, None if layers is None else every[jnp.array([n % 2 for n in layers])])


class Guess(nn.Module):
    """A head that scores every piece with the transposed embeddings."""

    config: BagConfig

    @nn.compact
    def __call__(self, hidden, words, positions=None):
        if positions is not None:
            hidden = jnp.take_along_axis(hidden, positions[:, :, None], axis=1)
        bias = self.param("bias", nn.initializers.zeros, (self.config.vocab_size,))
        return jnp.einsum("btd,vd->btv", hidden, words) + bias[None, None]


FAMILY = register(
    Family(
        name="bag",
        called="a bag",
        config=BagConfig,
        module=Bag,
        inputs=Pieces(),
        objectives={"documents": lambda config, model: piece_objective(FAMILY, config, model)},
        heads={"mlm": Head(Guess)},
        presets={"bag": {"hidden_size": 32}},
    )
)


def get_config() -> ConfigDict:
    """Return the config of a pretraining on the toy world, small enough for a test."""
    optimizer = {"name": "adamw", "schedule": "constant", "learning_rate": 3e-3, "warmup": 0.0, "decay": 0.0}
    return ConfigDict({
        "family": "bag", "model": {"hidden_size": 32, "max_positions": 128}, "objective": "documents",
        "data": "toyworld", "toyworld": {"language": "en,ko", "topics": 2, "words": 2, "documents": 60,
                                         "vocab_size": 1000, "heldout": 0.1},
        "steps": 12, "batch_size": 8, "accumulate": 1, "seed": 0, "length": 32, "long_share": 0.0, "long_length": 64,
        "long_batch_size": 0, "short_share": 0.1, "short_per": "document", "sequences": 2, "copies": 0,
        "masking": {"kind": "token", "rate": 0.15, "split": (0.8, 0.1, 0.1), "predictions": None},
        "log_every": 1, "eval_every": 6, "eval_batches": 2, "checkpoint_every": 3, "keep": 3,
        "stop_after_failures": 10, "workers": 0, "mesh": {"data": -1, "fsdp": 1, "tensor": 1},
        "optimizer": {**optimizer, "long_learning_rate": 0.0, "long_warmup": 0.0, "clip": 1.0, "gradient_scale": 1.0},
    })  # fmt: skip
