"""Classifiers of texts and of pairs of texts, which are adjacent rows, on the layers of any encoder.

The biattentive classification network (BCN): McCann et al. 2017 (CoVe), https://arxiv.org/abs/1708.00107, section 5. A
single text is aligned with itself and pooled once. Like AllenNLP's network it has dropout between the maxout layers
instead of CoVe's batch normalisation, which would need a state.

The enhanced sequential inference model (ESIM), for pairs: Chen et al. 2017, https://arxiv.org/abs/1609.06038. Each word
is compared with its aligned words of the other text.

With ELMo, Peters et al. 2018, https://arxiv.org/abs/1802.05365.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.losses import cross_entropy
from bert_elmo_jax.networks.word_network import (
    Batch,
    Encode,
    Key,
    Loss,
    NetworkConfig,
    WordNetwork,
    add_mixture,
    make_loss,
    run_network,
)
from bert_elmo_jax.nn import Dense, align, bilstm, dropout, init_bilstm, variational_dropout
from bert_elmo_jax.nn.pooling import masked_softmax, max_pool, mean_pool, min_pool

POOL = 4  # a maxout layer of a BCN is the maximum of this many linear maps
TARGETS = ("labels", "weights")  # entries of a batch with one number per text or pair


@dataclass(frozen=True, kw_only=True)
class BcnConfig(NetworkConfig):
    """The sizes of a BCN, and where it reads an encoder's layers.

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

    def module(self) -> "Bcn":
        """Return the network."""
        return Bcn(self)


class Bcn(WordNetwork):
    """Words -> scores of every label; the two texts of a pair are adjacent rows.

    >>> network, ones = Bcn(BcnConfig(num_labels=3, num_words=9)), jnp.ones((2, 5), jnp.int32)
    >>> jax.eval_shape(network.init_with_output, jax.random.key(0), ones, ones[:, 0])[0][0].shape
    (2, 3)
    """

    config: BcnConfig

    def compute(
        self, x: Float32[Array, "B T E"], mixed: Any, real: Bool[Array, "B T"], lengths: Int[Array, " B"], key: Key
    ) -> tuple[Float32[Array, "P K"]]:
        """Return the scores of each text or pair."""
        c = self.config

        def dropped(x: Array, rate: float) -> Array:
            return dropout(x, rate, key(rate))

        x = add_mixture(dropped(x, c.word_dropout), mixed, "input")
        x = dropped(jax.nn.relu(Dense(c.feed_size, (2 / x.shape[-1]) ** 0.5, name="feed")(x)), c.dropout)
        x = bilstm(x, self.param("encoder_lstm", init_bilstm, c.feed_size, c.lstm_size), lengths)
        aligned = align(x, other_of_pair(x), other_of_pair(real)) if c.pairs else align(x, x, real)
        x = jnp.concatenate([x, x - aligned, x * aligned], axis=-1)
        x = bilstm(x, self.param("integrator", init_bilstm, x.shape[-1], c.lstm_size), lengths)
        x = add_mixture(x, mixed, "output")
        attend = self.param("attend", nn.initializers.normal(x.shape[-1] ** -0.5), (x.shape[-1],))
        pools = [max_pool(x, real), mean_pool(x, real), min_pool(x, real), attentive_pool(x, attend, real)]
        y = jnp.concatenate(pools, axis=-1)
        y = y.reshape(len(y) // 2, 2 * y.shape[1]) if c.pairs else y
        for n, size in enumerate((4 * c.lstm_size, 2 * c.lstm_size, c.num_labels)):
            y = Dense(size * POOL, y.shape[-1] ** -0.5, name=f"maxout_{n}")(dropped(y, c.dropout))
            y = y.reshape(len(y), size, POOL).max(axis=-1)
        return (y,)


def attentive_pool(
    x: Float[Array, "B T D"], attend: Float[Array, " D"], real: Bool[Array, "B T"]
) -> Float[Array, "B D"]:
    """Return each row's mean over real positions, weighted by a softmax of their product with a learned vector.

    >>> attentive_pool(
    ...     jnp.array([[[1.0], [3.0], [9.0]]]), jnp.zeros(1), jnp.array([[True, True, False]])
    ... ).tolist()
    [[2.0]]
    """
    return jnp.einsum("bt,btd->bd", masked_softmax(x @ attend, real), x)


@dataclass(frozen=True, kw_only=True)
class EsimConfig(NetworkConfig):
    """The sizes of an ESIM, and where it reads an encoder's layers.

    `places` are input (with the words), output (with the output of the first BiLSTM), or both; each has its own
    mixture. `lstm_size` is the size of each direction of both BiLSTMs, and of the layers between and after them.

    >>> EsimConfig(num_labels=3, num_words=100, places="input,output").at
    ('input', 'output')
    """

    CALLED: ClassVar[str] = "an ESIM"
    SIZES: ClassVar[tuple[str, ...]] = ("num_labels", "lstm_size")
    RATES: ClassVar[tuple[str, ...]] = ("dropout",)
    pairs: ClassVar[bool] = True

    num_labels: int
    lstm_size: int = 300
    dropout: float = 0.5

    def module(self) -> "Esim":
        """Return the network."""
        return Esim(self)


class Esim(WordNetwork):
    """Words -> scores of every label; the two texts of a pair are adjacent rows.

    Dropout is variational (one mask for all words of a text) at
    the input of each BiLSTM. It is ordinary on the mixtures, at the input of the last two layers and, with an encoder,
    after the alignment.

    >>> network, ones = Esim(EsimConfig(num_labels=3, num_words=9)), jnp.ones((2, 5), jnp.int32)
    >>> jax.eval_shape(network.init_with_output, jax.random.key(0), ones, ones[:, 0])[0][0].shape
    (1, 3)
    """

    config: EsimConfig

    def compute(
        self, x: Float32[Array, "B T E"], mixed: Any, real: Bool[Array, "B T"], lengths: Int[Array, " B"], key: Key
    ) -> tuple[Float32[Array, "P K"]]:
        """Return the scores of each pair."""
        c = self.config

        def dropped(x: Array) -> Array:
            return dropout(x, c.dropout, key(c.dropout))

        def read(x: Array, name: str) -> Array:
            x = variational_dropout(x, c.dropout, key(c.dropout))
            return bilstm(x, self.param(name, init_bilstm, x.shape[-1], c.lstm_size), lengths)

        x = add_mixture(read(add_mixture(x, mixed, "input"), "encoder_lstm"), mixed, "output")
        aligned = align(x, other_of_pair(x), other_of_pair(real))
        x = jnp.concatenate([x, aligned, x - aligned, x * aligned], axis=-1)
        x = dropped(x) if mixed else x
        x = jax.nn.relu(Dense(c.lstm_size, (2 / x.shape[-1]) ** 0.5, name="project")(x))
        x = read(x, "composition")
        y = jnp.concatenate([mean_pool(x, real), max_pool(x, real)], axis=-1)
        y = dropped(y.reshape(len(y) // 2, 2 * y.shape[1]))
        y = jnp.tanh(Dense(c.lstm_size, y.shape[-1] ** -0.5, name="hidden")(y))
        return (Dense(c.num_labels, y.shape[-1] ** -0.5, name="labels")(dropped(y)),)


TextConfig = BcnConfig | EsimConfig


def flatten_pairs(batch: Batch) -> dict[str, Any]:
    """Reshape a batch of pairs [B, 2, …] to a batch of texts [2B, …], the two of a pair adjacent.

    >>> import numpy as np
    >>> batch = {"words": np.array([[[1, 2], [3, 0]]]), "lengths": np.array([[2, 1]]), "labels": np.array([0])}
    >>> {name: array.tolist() for name, array in flatten_pairs(batch).items()}
    {'words': [[1, 2], [3, 0]], 'lengths': [2, 1], 'labels': [0]}
    """
    texts = {name: jnp.asarray(array) for name, array in batch.items() if name not in TARGETS}
    flat = {name: array.reshape(array.shape[0] * 2, *array.shape[2:]) for name, array in texts.items()}
    return flat | {name: batch[name] for name in TARGETS if name in batch}


def other_of_pair(x: Array) -> Array:
    """Swap the two rows of each pair.

    >>> other_of_pair(jnp.arange(4)).tolist()
    [1, 0, 3, 2]
    """
    return x.reshape(x.shape[0] // 2, 2, *x.shape[1:])[:, ::-1].reshape(x.shape)


def label_scores(
    config: TextConfig, params: Any, batch: Batch, key: PRNGKeyArray | None = None, encode: Encode | None = None
) -> tuple[Float32[Array, "B K"], Float32[Array, ""]]:
    """Return the score of each label and the penalty on the mixture weights; without a key there is no dropout.

    The batch has the entries of `run_network`; for pairs all its arrays are [B, 2, …].
    """
    batch = flatten_pairs(batch) if config.pairs else batch
    outputs: tuple[Array, Array] = run_network(config, params, batch, key, encode)
    return outputs


def label_loss(config: TextConfig, encode: Encode | None = None) -> Loss:
    """Return a loss for `train.make_step`: `cross_entropy` of `labels` [B] with `weights` [B]."""

    def run(params: Any, batch: Batch, key: PRNGKeyArray | None) -> tuple[Any, Any]:
        scores, penalty = label_scores(config, params, batch, key, encode)
        return cross_entropy(scores, batch["labels"], batch["weights"]), penalty

    return make_loss(config, run)
