"""The biattentive classification network (BCN), a classifier of texts or of pairs of texts.

McCann et al. 2017 (CoVe), https://arxiv.org/abs/1708.00107, section 5; with ELMo, Peters et al. 2018,
https://arxiv.org/abs/1802.05365. A single text is aligned with itself and pooled once. Like AllenNLP's network it has
dropout between the maxout layers instead of CoVe's batch normalisation, which would need a state.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.networks.texts import label_loss, label_scores, other_of_pair
from bert_elmo_jax.networks.word_input import WordInput
from bert_elmo_jax.networks.word_network import (
    Batch,
    Encode,
    NetworkConfig,
    Sums,
    beside,
    init_network,
    mix_at_places,
    network_shapes,
)
from bert_elmo_jax.nn import Dense, align, bilstm, dropout, init_bilstm
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.pooling import masked_softmax, max_pool, mean_pool, min_pool

POOL = 4  # a maxout layer is the maximum of this many linear maps


@dataclass(frozen=True, kw_only=True)
class BcnConfig(NetworkConfig):
    """The sizes of a biattentive classification network, and where it reads an encoder's layers.

    `places` are input (with the words), output (with the output of the integrator), or both; each has its own mixture.
    `word_dropout` applies to the words, `dropout` after the feed-forward layer and before each maxout layer.

    >>> BcnConfig(num_labels=5, num_words=100, places="input,output").at
    ('input', 'output')
    """

    CALLED: ClassVar[str] = "a biattentive classification network"
    SIZES: ClassVar[tuple[str, ...]] = ("num_labels", "feed_size", "lstm_size")
    RATES: ClassVar[tuple[str, ...]] = ("word_dropout", "dropout")

    num_labels: int
    pairs: bool = False
    feed_size: int = 300
    lstm_size: int = 300
    word_dropout: float = 0.5
    dropout: float = 0.2


class Bcn(nn.Module):
    """Words -> scores of every label; the two texts of a pair are adjacent rows.

    `deterministic=False` needs `rngs={"dropout": key}`.

    >>> import jax, jax.numpy as jnp
    >>> from bert_elmo_jax.networks import Bcn, BcnConfig
    >>> config = BcnConfig(num_labels=3, num_words=9, feed_size=4, lstm_size=4)
    >>> words, lengths = jnp.zeros((2, 5), jnp.int32), jnp.array([5, 2])
    >>> init = lambda key: Bcn(config).init_with_output(key, words, lengths)
    >>> (scores, penalty), variables = jax.eval_shape(init, jax.random.key(0))
    >>> scores.shape, sorted(variables["params"])
    ((2, 3), ['attend', 'encoder_lstm', 'feed', 'integrator', 'maxout_0', 'maxout_1', 'maxout_2', 'words'])
    """

    config: BcnConfig

    @nn.compact
    def __call__(
        self,
        words: Int[AnyArray, "B T"],
        lengths: Int[AnyArray, " B"],
        *,
        characters: Int[AnyArray, "B T C"] | None = None,
        brought: Float32[AnyArray, "B T D"] | None = None,
        layers: Float[AnyArray, "L B T W"] | None = None,
        deterministic: bool = True,
    ) -> tuple[Float32[Array, "P K"], Float32[Array, ""]]:
        """Return the scores of each text or pair, and the penalty on the mixture weights."""
        c = self.config
        lengths = jnp.asarray(lengths)
        real = jnp.arange(words.shape[1])[None, :] < lengths[:, None]
        mixed, penalty = mix_at_places(self, c, layers, real, deterministic)

        def dropped(x: Array, rate: float) -> Array:
            return dropout(x, rate, None if deterministic or not rate else self.make_rng("dropout"))

        x = WordInput(c.num_specials, c.num_words, c.word_size, c.characters, name="words")(words, characters, brought)
        x = beside(dropped(jnp.where(real[..., None], x, 0.0), c.word_dropout), mixed, "input")
        x = dropped(jax.nn.relu(Dense(c.feed_size, (2 / x.shape[-1]) ** 0.5, name="feed")(x)), c.dropout)
        x = bilstm(x, self.param("encoder_lstm", init_bilstm, c.feed_size, c.lstm_size), lengths)
        found = align(x, other_of_pair(x), other_of_pair(real)) if c.pairs else align(x, x, real)
        x = jnp.concatenate([x, x - found, x * found], axis=-1)
        x = bilstm(x, self.param("integrator", init_bilstm, x.shape[-1], c.lstm_size), lengths)
        x = beside(x, mixed, "output")
        attend = self.param("attend", nn.initializers.normal(x.shape[-1] ** -0.5), (x.shape[-1],))
        pools = [max_pool(x, real), mean_pool(x, real), min_pool(x, real), attentive_pool(x, attend, real)]
        y = jnp.concatenate(pools, axis=-1)
        y = y.reshape(len(y) // 2, 2 * y.shape[1]) if c.pairs else y
        for n, size in enumerate((4 * c.lstm_size, 2 * c.lstm_size, c.num_labels)):
            y = Dense(size * POOL, y.shape[-1] ** -0.5, name=f"maxout_{n}")(dropped(y, c.dropout))
            y = y.reshape(len(y), size, POOL).max(axis=-1)
        return y, penalty


def attentive_pool(
    x: Float[Array, "B T D"], attend: Float[Array, " D"], real: Bool[Array, "B T"]
) -> Float[Array, "B D"]:
    """Return each row's mean over real positions, weighted by a softmax of their product with a learned vector."""
    return jnp.einsum("bt,btd->bd", masked_softmax(x @ attend, real), x)


def init_bcn(
    config: BcnConfig, key: PRNGKeyArray, specials: Float[AnyArray, "S D"], words: Float[AnyArray, "V D"]
) -> dict[str, Any]:
    """Return new parameters with the given word vectors.

    >>> import jax, numpy as np
    >>> from bert_elmo_jax.networks import BcnConfig, init_bcn
    >>> config, tables = BcnConfig(num_labels=3, num_words=9), (np.zeros((1, 100)), np.ones((9, 100)))
    >>> jax.eval_shape(lambda key: init_bcn(config, key, *tables), jax.random.key(0))["maxout_2"]["bias"].shape
    (12,)
    """
    return init_network(Bcn(config), config, key, specials, words, 1 + config.pairs)


def bcn_shapes(config: BcnConfig) -> Any:
    """Return the shape and type of every parameter except the encoder's."""
    return network_shapes(Bcn(config), config, 1 + config.pairs)


def bcn_scores(
    config: BcnConfig, params: Any, batch: Batch, key: PRNGKeyArray | None = None, encode: Encode | None = None
) -> tuple[Float32[Array, "B K"], Float32[Array, ""]]:
    """Return the scores and penalty of a batch (see `label_scores`)."""
    return label_scores(Bcn(config), config, config.pairs, params, batch, key, encode)


def bcn_loss(
    config: BcnConfig, encode: Encode | None = None
) -> Callable[[Any, Batch, PRNGKeyArray | None, Any], tuple[Sums, Sums, Any]]:
    """Return a loss for `train.make_step` (see `label_loss`)."""
    return label_loss(Bcn(config), config, config.pairs, encode)
