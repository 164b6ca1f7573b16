"""The loss of ULMFiT's classifier on an encoder that reads documents, and its running figures after each step."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from bert_elmo_jax.heads.pool_classifier import classify_pooled, train_pooled, with_figures
from bert_elmo_jax.losses import accuracy, cross_entropy
from bert_elmo_jax.losses.loss_types import Batch, Loss, Terms

NAME = "classifier"  # of the head in the parameter tree


def document_loss(
    pool: Callable[..., Any],
    rates: Sequence[float],
    class_weights: Sequence[float] | None = None,
    axis: str | None = None,
) -> Loss:
    """Return `loss(params, batch, key, carry)`, whose carry are the running figures of batch norm.

    `pool(encoder, words, lengths, key)` returns the pooled vectors of a batch, `rates` are the dropout rates of the
    classifier's layers. The loss is cross entropy, with each example weighted by its label's `class_weights`. Without a
    key there is no dropout, and batch norm uses the running figures of the parameters. With the `axis` of `pmap`, batch
    norm uses the batch of all devices.
    """
    scale = None if class_weights is None else np.asarray(class_weights, np.float32)

    def loss(params: Any, batch: Batch, key: PRNGKeyArray | None, carry: Any) -> tuple[Terms, Terms, Any]:
        batch = jax.tree.map(jnp.asarray, dict(batch))
        keys = (None, None) if key is None else tuple(jax.random.split(key))
        pooled = pool(params["encoder"], batch["words"], batch["lengths"], keys[0])
        labels, weights = batch["labels"], batch["weights"]
        if key is None:
            logits = classify_pooled(params[NAME], pooled)
        else:
            logits, carry = train_pooled(params[NAME], pooled, keys[1], rates, weights, axis)
        scaled = weights if scale is None else weights * jnp.asarray(scale)[labels]
        terms = {"cross_entropy": cross_entropy(logits, labels, scaled)}
        return terms, {"accuracy": accuracy(logits, labels, weights)}, carry

    return loss


def keep_figures(step: Callable[[Any, Any], tuple[Any, Any]]) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Return a training step that then copies the running figures from the carry into the parameters.

    So they are in every checkpoint, and the optimizer does not change them. A skipped step leaves the carry, and so
    the figures, as they were.
    """

    def stepped(state: Any, batch: Any) -> tuple[Any, Any]:
        state, metrics = step(state, batch)
        head_params = with_figures(state.params[NAME], state.carry)
        return dataclasses.replace(state, params={**state.params, NAME: head_params}), metrics

    return stepped
