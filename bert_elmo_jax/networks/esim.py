"""The enhanced sequential inference model (ESIM), a classifier of pairs of texts.

Chen et al. 2017, https://arxiv.org/abs/1609.06038: each word is compared with its aligned words of the other text.
With ELMo, Peters et al. 2018, https://arxiv.org/abs/1802.05365: the place "output" comes before the alignment.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32, Int, PRNGKeyArray

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
from bert_elmo_jax.nn import Dense, align, bilstm, dropout, init_bilstm, variational_dropout
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.pooling import max_pool, mean_pool


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

    num_labels: int
    lstm_size: int = 300
    dropout: float = 0.5


class Esim(nn.Module):
    """Words -> scores of every label; the two texts of a pair are adjacent rows.

    `deterministic=False` needs `rngs={"dropout": key}`. Dropout is variational (one mask for all words of a text) at
    the input of each BiLSTM. It is ordinary on the mixtures, at the input of the last two layers and, with an encoder,
    after the alignment.

    >>> import jax, jax.numpy as jnp
    >>> from bert_elmo_jax.networks import Esim, EsimConfig
    >>> config = EsimConfig(num_labels=3, num_words=9, lstm_size=4)
    >>> words, lengths = jnp.zeros((2, 5), jnp.int32), jnp.array([5, 2])
    >>> init = lambda key: Esim(config).init_with_output(key, words, lengths)
    >>> (scores, penalty), variables = jax.eval_shape(init, jax.random.key(0))
    >>> scores.shape, sorted(variables["params"])
    ((1, 3), ['composition', 'encoder_lstm', 'hidden', 'labels', 'project', 'words'])
    """

    config: EsimConfig

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
        """Return the scores of each pair, and the penalty on the mixture weights."""
        c = self.config
        lengths = jnp.asarray(lengths)
        real = jnp.arange(words.shape[1])[None, :] < lengths[:, None]
        mixed, penalty = mix_at_places(self, c, layers, real, deterministic)

        def key() -> PRNGKeyArray | None:
            return None if deterministic or not c.dropout else self.make_rng("dropout")

        def read(x: Array, name: str) -> Array:
            x = variational_dropout(x, c.dropout, key())
            return bilstm(x, self.param(name, init_bilstm, x.shape[-1], c.lstm_size), lengths)

        x = WordInput(c.num_specials, c.num_words, c.word_size, c.characters, name="words")(words, characters, brought)
        x = beside(jnp.where(real[..., None], x, 0.0), mixed, "input")
        x = beside(read(x, "encoder_lstm"), mixed, "output")
        found = align(x, other_of_pair(x), other_of_pair(real))
        x = jnp.concatenate([x, found, x - found, x * found], axis=-1)
        x = dropout(x, c.dropout, key()) if mixed else x
        x = jax.nn.relu(Dense(c.lstm_size, (2 / x.shape[-1]) ** 0.5, name="project")(x))
        x = read(x, "composition")
        y = jnp.concatenate([mean_pool(x, real), max_pool(x, real)], axis=-1)
        y = dropout(y.reshape(len(y) // 2, 2 * y.shape[1]), c.dropout, key())
        y = jnp.tanh(Dense(c.lstm_size, y.shape[-1] ** -0.5, name="hidden")(y))
        return Dense(c.num_labels, y.shape[-1] ** -0.5, name="labels")(dropout(y, c.dropout, key())), penalty


def init_esim(
    config: EsimConfig, key: PRNGKeyArray, specials: Float[AnyArray, "S D"], words: Float[AnyArray, "V D"]
) -> dict[str, Any]:
    """Return new parameters with the given word vectors.

    >>> import jax, numpy as np
    >>> from bert_elmo_jax.networks import EsimConfig, init_esim
    >>> config, tables = EsimConfig(num_labels=3, num_words=9), (np.zeros((1, 100)), np.ones((9, 100)))
    >>> jax.eval_shape(lambda key: init_esim(config, key, *tables), jax.random.key(0))["hidden"]["kernel"].shape
    (2400, 300)
    """
    return init_network(Esim(config), config, key, specials, words, rows=2)


def esim_shapes(config: EsimConfig) -> Any:
    """Return the shape and type of every parameter except the encoder's."""
    return network_shapes(Esim(config), config, rows=2)


def esim_scores(
    config: EsimConfig, params: Any, batch: Batch, key: PRNGKeyArray | None = None, encode: Encode | None = None
) -> tuple[Float32[Array, "B K"], Float32[Array, ""]]:
    """Return the scores and penalty of a batch of pairs (see `label_scores`)."""
    return label_scores(Esim(config), config, True, params, batch, key, encode)


def esim_loss(
    config: EsimConfig, encode: Encode | None = None
) -> Callable[[Any, Batch, PRNGKeyArray | None, Any], tuple[Sums, Sums, Any]]:
    """Return a loss for `train.make_step` (see `label_loss`)."""
    return label_loss(Esim(config), config, True, encode)
