"""The sampled softmax, which compares each target with a shared sample of words: Jean et al. 2015, arXiv:1412.2007.

It is a training loss, as in the original ELMo. Use `full_softmax` for perplexity. The negatives are distinct words from
a log-uniform distribution.

In a vocabulary sorted by frequency, word k is drawn with probability log((k + 2) / (k + 1)) / log(V + 1), close to
Zipf's law. Words are drawn one by one until `count` different ones have been seen. After `tries` draws, a word is
expected 1 - (1 - p)^tries times, which the sampled softmax divides out.

An accelerator cannot draw one by one, but two methods with fixed shapes have exactly the same distribution:

- *by draws*, for a large vocabulary: make enough draws at once, drop repetitions and, rarely, repeat.
- *by arrival*, for most of a small vocabulary, which would need many draws: if draws arrive as a Poisson process of
  rate 1, each word first arrives after an exponential time of rate p. The first `count` arrivals are the words in
  order, and the number of repetitions in between is a Poisson number.
"""

import functools
import math
from dataclasses import dataclass
from typing import no_type_check

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Float32, Int, Int32, PRNGKeyArray

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


@no_type_check  # tree operations also put other leaves than arrays of these shapes here
@functools.partial(jax.tree_util.register_dataclass, data_fields=["ids", "tries"], meta_fields=["vocab_size"])
@dataclass(frozen=True)
class Negatives:
    """Distinct words in the order of drawing, and the number of draws that it took.

    >>> Negatives(jnp.array([0, 7, 1]), jnp.array(4), vocab_size=1000).expected(jnp.array([0, 1])).round(3).tolist()
    [0.3450000286102295, 0.2150000035762787]
    """

    ids: Int32[Array, " S"]
    tries: Int32[Array, ""]
    vocab_size: int

    def expected(self, ids: Int[Array, "*B"]) -> Float32[Array, "*B"]:
        """Return the expected counts of these words among the negatives."""
        return -jnp.expm1(self.tries.astype(jnp.float32) * jnp.log1p(-probability(ids, self.vocab_size)))


def probability(ids: Int[Array, "*B"], vocab_size: int) -> Float32[Array, "*B"]:
    """Return the probability of drawing a word: log((id + 2) / (id + 1)) / log(V + 1)."""
    return jnp.log1p(1 / (ids.astype(jnp.float32) + 1)) / math.log(vocab_size + 1)


def draw_negatives(key: PRNGKeyArray, count: int, vocab_size: int) -> Negatives:
    """Draw until `count` different words have been seen.

    >>> negatives = draw_negatives(jax.random.key(0), 64, vocab_size=100_000)
    >>> len(set(negatives.ids.tolist())), 64 <= int(negatives.tries) < 128
    (64, True)
    """
    if not 0 < count < vocab_size:
        problem = f"cannot draw {count} different negatives from a vocabulary of {vocab_size} words"
        raise ValueError(f"{problem}: draw at least 1 and fewer than {vocab_size}, or use full_softmax, which is exact")
    draws = enough_draws(count, vocab_size)
    ids, tries = by_draws(key, count, vocab_size, draws) if draws < vocab_size else by_arrival(key, count, vocab_size)
    return Negatives(ids, tries, vocab_size)


@functools.cache
def enough_draws(count: int, vocab_size: int) -> int:
    """Return a number of draws that almost surely gives `count` different words, but at most `vocab_size`."""
    never = np.log1p(-np.log1p(1 / np.arange(1.0, vocab_size + 1)) / math.log(vocab_size + 1))
    draws = count
    while draws < vocab_size:
        missing = np.exp(draws * never)
        # Words are negatively correlated, so the sum of their variances is an upper bound. Keep five deviations.
        different, variance = np.sum(1 - missing), np.sum(missing * (1 - missing))
        if different - 5 * math.sqrt(variance) >= count:
            return draws
        draws += max(1, draws // 32)
    return vocab_size


def by_draws(key: PRNGKeyArray, count: int, vocab_size: int, draws: int) -> tuple[Int32[Array, " S"], Int32[Array, ""]]:
    """Return the first `count` different words and the number of tries, making `draws` draws at a time."""
    place = jnp.arange(draws, dtype=jnp.int32)

    def more(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        drawn_before, first, ids, distinct = carry
        drawn = log_uniform(jax.random.fold_in(key, drawn_before), draws, vocab_size)
        first = first.at[drawn].min(drawn_before + place)  # the first draw of every word
        new = first[drawn] == drawn_before + place
        rank = distinct + jnp.cumsum(new, dtype=jnp.int32)
        ids = ids.at[jnp.where(new, rank - 1, jnp.full_like(rank, count))].set(drawn, mode="drop")
        return drawn_before + draws, first, ids, rank[-1]

    never = jnp.iinfo(jnp.int32).max
    start = jnp.int32(0), jnp.full(vocab_size, never, jnp.int32), jnp.zeros(count, jnp.int32), jnp.int32(0)
    _, first, ids, _ = lax.while_loop(lambda carry: carry[3] < count, more, start)
    return ids, first[ids[-1]] + 1


def by_arrival(key: PRNGKeyArray, count: int, vocab_size: int) -> tuple[Int32[Array, " S"], Int32[Array, ""]]:
    """Return the words that arrive first and the number of tries, from exponential arrival times."""
    for_times, for_repetitions = jax.random.split(key)
    rates = probability(jnp.arange(vocab_size), vocab_size)
    negative_times, ids = lax.top_k(-jax.random.exponential(for_times, (vocab_size,)) / rates, count)
    ids = ids.astype(jnp.int32)
    waiting = jnp.sum(rates[ids] * (negative_times - negative_times[-1]))
    # jax.random.poisson supports only this generator.
    for_repetitions = jax.random.wrap_key_data(jax.random.bits(for_repetitions, (2,), jnp.uint32), impl="threefry2x32")
    return ids, count + jax.random.poisson(for_repetitions, waiting, dtype=jnp.int32)


STRETCHES = 4096


def log_uniform(key: PRNGKeyArray, count: int, vocab_size: int) -> Int32[Array, " N"]:
    """Draw words independently, as floor(x) - 1 where log(x) is uniform between 0 and log(V + 1).

    In float32, x would be off by half a word at 800,000. So the interval is divided into stretches of equal probability
    that begin at float64 constants, and only the offset within a stretch is float32.
    """
    step = math.log(vocab_size + 1) / STRETCHES
    begin = np.exp(step * np.arange(STRETCHES))
    floors = np.floor(begin)
    for_stretch, for_rest = jax.random.split(key)
    stretch = jax.random.randint(for_stretch, (count,), 0, STRETCHES)
    way = jnp.asarray(begin, jnp.float32)[stretch] * jnp.expm1(step * jax.random.uniform(for_rest, (count,)))
    offset = jnp.floor(jnp.asarray(begin - floors, jnp.float32)[stretch] + way).astype(jnp.int32)
    x = jnp.asarray(floors, jnp.int32)[stretch] + offset
    return jnp.minimum(x - 1, vocab_size - 1)  # rounding may reach the end of the last stretch
