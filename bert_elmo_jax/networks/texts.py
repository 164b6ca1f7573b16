"""Shared parts of text classifiers: pairs as adjacent rows, scores and loss."""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float32, PRNGKeyArray

from bert_elmo_jax.losses import cross_entropy
from bert_elmo_jax.networks.word_network import Batch, Encode, NetworkConfig, Sums, run_network

TARGETS = ("labels", "weights")  # entries of a batch with one number per text or pair


def flatten_pairs(batch: Batch) -> dict[str, Any]:
    """Reshape a batch of pairs [B, 2, …] to a batch of texts [2B, …], the two of a pair adjacent."""
    texts = {name: jnp.asarray(array) for name, array in batch.items() if name not in TARGETS}
    flat = {name: array.reshape(array.shape[0] * 2, *array.shape[2:]) for name, array in texts.items()}
    return flat | {name: batch[name] for name in TARGETS if name in batch}


def other_of_pair(x: Array) -> Array:
    """Swap the two rows of each pair."""
    return x.reshape(x.shape[0] // 2, 2, *x.shape[1:])[:, ::-1].reshape(x.shape)


def label_scores(
    module: nn.Module,
    config: NetworkConfig,
    pairs: bool,
    params: Any,
    batch: Batch,
    key: PRNGKeyArray | None = None,
    encode: Encode | None = None,
) -> tuple[Float32[Array, "B K"], Float32[Array, ""]]:
    """Return the score of each label and the penalty on the mixture weights; without a key there is no dropout.

    The batch has the entries of `run_network`; for pairs all its arrays are [B, 2, …].
    """
    found: tuple[Array, Array] = run_network(
        module, config, params, flatten_pairs(batch) if pairs else batch, key, encode
    )
    return found


def label_loss(
    module: nn.Module, config: NetworkConfig, pairs: bool, encode: Encode | None = None
) -> Callable[[Any, Batch, PRNGKeyArray | None, Any], tuple[Sums, Sums, Any]]:
    """Return a loss for `train.make_step`: `cross_entropy` of `labels` [B] with `weights` [B].

    With an encoder it also has the term `mix_l2`, which is λ·‖w‖² of the mixture weights.
    """

    def loss(params: Any, batch: Batch, key: PRNGKeyArray | None, carry: Any) -> tuple[Sums, Sums, Any]:
        batch = {name: jnp.asarray(values) for name, values in batch.items()}
        scores, penalty = label_scores(module, config, pairs, params, batch, key, encode)
        terms: Sums = {"cross_entropy": cross_entropy(scores, batch["labels"], batch["weights"])}
        if config.encoder_layers:
            terms["mix_l2"] = (penalty, jnp.ones(()))
        return terms, {}, carry

    return loss


def label_coefficients(config: NetworkConfig) -> dict[str, float]:
    """Return the coefficients of the terms of the loss."""
    return {"cross_entropy": 1.0} | ({"mix_l2": 1.0} if config.encoder_layers else {})
