"""The sampled softmax, which compares each target with a shared sample of words: Jean et al. 2015, arXiv:1412.2007.

It is a training loss, as in the original ELMo. Use `full_softmax` for perplexity.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from bert_elmo_jax.losses.cross_entropy import Sums, inside


def sampled_softmax(
    hidden: Float[Array, "N D"],
    table: Float[Array, "R D"],
    bias: Float[Array, " R"],
    targets: Int[Array, " N"],
    negatives: Int[Array, " S"],
    target_expected: Float[Array, " N"],
    negative_expected: Float[Array, " S"],
    weights: Float[Array, " N"] | Int[Array, " N"],
    *,
    remove_hits: bool = True,
) -> Sums:
    """Return Σ weight · cross entropy of the target against the negatives, and Σ weight, with float32 logits.

    `targets` and `negatives` index `table`, which may hold the whole vocabulary or only the rows in use (see
    `bert_elmo_jax.optim.rows`). Each logit is reduced by the log of the word's expected count among the negatives. With
    `remove_hits`, a negative that equals a position's target is ignored there.

    >>> from bert_elmo_jax.losses import draw_negatives
    >>> targets, drawn = jnp.array([3, 1, 4, 1]), draw_negatives(jax.random.key(2), 32, vocab_size=5000)
    >>> inputs = jnp.ones((4, 8)), jnp.ones((5000, 8)), jnp.zeros(5000), targets, drawn.ids
    >>> float(sampled_softmax(*inputs, drawn.expected(targets), drawn.expected(drawn.ids), jnp.ones(4))[1])
    4.0
    """
    weights = weights.astype(jnp.float32)
    counts = weights != 0
    hidden = jnp.where(counts[:, None], hidden, jnp.zeros_like(hidden))
    targets = inside(targets, counts, table.shape[0])
    target_expected = jnp.where(counts, target_expected, jnp.ones_like(target_expected))
    wide = jnp.float32

    rows = jnp.take(table, targets, axis=0, mode="fill").astype(hidden.dtype)
    chosen = jnp.einsum("nd,nd->n", hidden, rows, preferred_element_type=wide)
    chosen = chosen + jnp.take(bias, targets, mode="fill").astype(wide) - jnp.log(target_expected.astype(wide))

    rows = jnp.take(table, negatives, axis=0, mode="fill").astype(hidden.dtype)
    against = jnp.einsum("nd,sd->ns", hidden, rows, preferred_element_type=wide)
    correction = jnp.take(bias, negatives, mode="fill").astype(wide) - jnp.log(negative_expected.astype(wide))
    against = against + correction[None, :]
    if remove_hits:
        # Finite, so that the gradient is defined even if every negative is a hit.
        against = jnp.where(targets[:, None] == negatives[None, :], jnp.finfo(wide).min, against)
    losses = jnp.logaddexp(chosen, jax.nn.logsumexp(against, axis=1)) - chosen
    return jnp.sum(weights * jnp.where(counts, losses, jnp.zeros_like(losses))), weights.sum()
