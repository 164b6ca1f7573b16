"""The training loss of sentence vectors: an example is two texts or three, laid out like choices."""

from collections.abc import Sequence
from typing import Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from bert_elmo_jax.heads.task_head import TaskHead, task_outputs
from bert_elmo_jax.losses.loss_types import Batch, Loss, Terms
from bert_elmo_jax.losses.similarity import cosent_loss, in_batch_loss, score_loss, triplet_loss

SentenceLoss = Literal["in_batch", "triplets", "scores", "cosent"]
TEXTS = ("anchors", "positives", "negatives")  # entries of a batch: numbers, equal for equal texts
TARGETS = (*TEXTS, "scores", "weights")
OF_WHOLE_BATCH = ("in_batch", "cosent")  # losses that compare the examples of a batch with each other


def sentence_loss(
    encoder: nn.Module,
    head: TaskHead,
    kind: SentenceLoss,
    *,
    scale: float = 20.0,
    margin: float = 1.0,
    both_ways: bool = False,
    widths: Sequence[int] = (),
    parts: int = 1,
    frozen: bool = False,
    axis: str | None = None,
) -> Loss:
    """Return `loss(params, batch, key, carry)`; the negatives of an anchor are all other examples of the batch.

    The batch is the whole batch of a step, over any number of devices; `axis` is the axis of `pmap`'s devices.
    With `widths` it is the sum of the losses of the first numbers of each vector, so that cut vectors are good vectors
    (Kusupati et al. 2022, arXiv:2205.13147). With `parts`, the rows are encoded in parts one after the other, and again
    for the gradient: memory holds one part and all vectors, and the loss is over the whole batch (Gao et al. 2021,
    arXiv:2101.06983).
    """

    def gather(tree: Any) -> Any:
        """Return the rows of all devices; each computes the whole loss, and the step averages these."""
        return tree if axis is None else jax.lax.all_gather(tree, axis, tiled=True)

    def encode(params: Any, batch: Batch, key: PRNGKeyArray | None) -> Any:
        if parts == 1:
            return task_outputs(encoder, head, params, batch, key, frozen)
        split = jax.tree.map(lambda x: x.reshape(parts, -1, *x.shape[1:]), batch)
        keys = None if key is None else jax.random.split(key, parts)

        @jax.checkpoint
        def encode_part(part: Any) -> Any:
            rows, part_key = part
            return task_outputs(encoder, head, params, rows, part_key, frozen)

        vectors = jax.lax.map(encode_part, (split, keys))
        return vectors.reshape(-1, *vectors.shape[2:])

    def compare(first: Any, second: Any, third: Any, batch: Batch, weights: Any, copies: Any) -> Any:
        if kind == "scores":
            return score_loss(first, second, batch["scores"], weights)
        if kind == "cosent":
            return cosent_loss(first, second, batch["scores"], weights, scale=scale)
        if kind == "triplets":
            return triplet_loss(first, second, third, weights, margin=margin)
        return in_batch_loss(first, second, weights, third, scale=scale, both_ways=both_ways, excluded=copies)

    def loss(params: Any, batch: Batch, key: PRNGKeyArray | None, carry: Any) -> tuple[Terms, Terms, Any]:
        batch = jax.tree.map(jnp.asarray, dict(batch))
        vectors = encode(params, batch, key)
        vectors = vectors.reshape(-1, *vectors.shape[-2:])
        targets = {name: batch[name].reshape(-1) for name in TARGETS if name in batch}
        if kind in OF_WHOLE_BATCH:
            vectors, targets = gather((vectors, targets))
        first, second, *more = jnp.moveaxis(vectors, 1, 0)
        third = more[0] if more else None
        copies = same_texts(*(targets[name] for name in TEXTS if name in targets)) if kind == "in_batch" else None
        total = jnp.zeros(())
        for width in widths or (first.shape[-1],):
            cut = first[:, :width], second[:, :width], None if third is None else third[:, :width]
            part, weight = compare(*cut, targets, targets["weights"], copies)
            total += part
        return {"sentences": (total, weight)}, {}, carry

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
