"""The training loss of sentence vectors: an example is two texts or three, laid out like choices."""

from typing import Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from bert_elmo_jax.heads.task_head import TaskHead, task_outputs
from bert_elmo_jax.losses.loss_types import Batch, Loss, Terms
from bert_elmo_jax.losses.similarity import in_batch_loss, score_loss, triplet_loss

SentenceLoss = Literal["in_batch", "triplets", "scores"]


def sentence_loss(
    encoder: nn.Module,
    head: TaskHead,
    kind: SentenceLoss,
    *,
    scale: float = 20.0,
    margin: float = 1.0,
    frozen: bool = False,
    axis: str | None = None,
) -> Loss:
    """Return `loss(params, batch, key, carry)`; the negatives of an anchor are all other examples of the batch.

    The batch is the whole batch of a step, on however many devices it lies; `axis` is the axis of those of `pmap`.
    """

    def gather(tree: Any) -> Any:
        """Return the rows of all devices; each computes the whole loss, and the step averages these."""
        return tree if axis is None else jax.lax.all_gather(tree, axis, tiled=True)

    def loss(params: Any, batch: Batch, key: PRNGKeyArray | None, carry: Any) -> tuple[Terms, Terms, Any]:
        batch = jax.tree.map(jnp.asarray, dict(batch))
        vectors = task_outputs(encoder, head, params, batch, key, frozen)
        first, second, *third = jnp.moveaxis(vectors.reshape(-1, *vectors.shape[-2:]), 1, 0)
        weights = batch["weights"].reshape(-1)
        if kind == "scores":
            return {"sentences": score_loss(first, second, batch["scores"].reshape(-1), weights)}, {}, carry
        if kind == "triplets":
            return {"sentences": triplet_loss(first, second, third[0], weights, margin=margin)}, {}, carry
        first, second, third, weights = gather((first, second, third, weights))
        ids = [batch[name].reshape(-1) for name in ("anchors", "positives", "negatives")[: 2 + len(third)]]
        ids = gather(ids)
        terms = in_batch_loss(
            first, second, weights, third[0] if third else None, scale=scale, excluded=same_texts(*ids)
        )
        return {"sentences": terms}, {}, carry

    return loss


def same_texts(
    anchors: Int[Array, " N"], positives: Int[Array, " N"], negatives: Int[Array, " N"] | None = None
) -> Bool[Array, "N M"]:
    """Return the candidates that are no negatives of an anchor: its own texts again, or the positive of its copy.

    Texts are given by numbers, equal for equal texts.

    >>> same_texts(jnp.array([1, 2, 1]), jnp.array([5, 5, 6])).astype(int).tolist()
    [[1, 1, 1], [1, 1, 0], [1, 0, 1]]
    """
    candidates, of = positives, anchors
    if negatives is not None:
        candidates = jnp.concatenate([positives, negatives])
        of = jnp.concatenate([anchors, jnp.full_like(anchors, -1)])  # −1: no anchor's positive
    copies = (candidates[None, :] == positives[:, None]) | (candidates[None, :] == anchors[:, None])
    return copies | (of[None, :] == anchors[:, None])
