"""An encoder's layers with a vector for each word of a batch, as pure functions: for networks that train it along."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bert_elmo_jax.families.bert.model import Bert, BertConfig
from bert_elmo_jax.families.elmo.model import Elmo, ElmoConfig


def word_layers(
    config: BertConfig | ElmoConfig, params: Any, batch: Mapping[str, Any], key: PRNGKeyArray | None
) -> Float[Array, "L B T D"]:
    """All layers; without a key there is no dropout. What stands behind a row's end means nothing.

    Of an ELMo a batch has `elmo_words` [B, T + 2] between their marks and `elmo_lengths` [B], and for character input
    `elmo_characters`, each row's own [B, U, C]. Of a BERT `pieces` and `segments` [B, P], and `first` [B, T], where the
    first piece of each word is: that stands for the word, as in Devlin et al. 2018.

    >>> import jax, jax.numpy as jnp
    >>> from bert_elmo_jax.families.elmo.init_params import init_elmo_params
    >>> config = ElmoConfig(input="words", vocab_size=9, cell_size=8, projection_size=4)
    >>> batch = {"elmo_words": jnp.array([[0, 5, 6, 1]]), "elmo_lengths": jnp.array([4])}
    >>> params = jax.eval_shape(lambda: init_elmo_params(config, jax.random.key(0)))["encoder"]
    >>> jax.eval_shape(lambda params: word_layers(config, params, batch, None), params).shape
    (3, 1, 2, 8)
    """
    how: dict[str, Any] = {"deterministic": key is None, "rngs": {} if key is None else {"dropout": key}}
    output: Any
    if isinstance(config, ElmoConfig):
        output = Elmo(config).apply(
            {"params": params}, batch["elmo_words"], batch["elmo_lengths"], characters=batch.get("elmo_characters"),
            **how,
        )  # fmt: skip
        return output.layers[:, :, 1:-1].astype(jnp.float32)
    output = Bert(config, add_pooler=False).apply(
        {"params": params}, batch["pieces"], None, None, batch["segments"],
        layers=tuple(range(config.num_layers + 1)), **how,
    )  # fmt: skip
    layers = output.layers.astype(jnp.float32)
    first = jnp.broadcast_to(jnp.asarray(batch["first"])[None, :, :, None], (len(layers), *batch["first"].shape, 1))
    return jnp.take_along_axis(layers, first, axis=2)
