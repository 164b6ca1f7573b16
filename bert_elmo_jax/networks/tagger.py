"""A tagger of BiLSTMs or BiGRUs with a conditional random field (CRF), which can read an encoder's layers.

Peters et al. 2018, https://arxiv.org/abs/1802.05365: named entities, ELMo at the input of the first of two BiLSTMs.
Peters et al. 2017 (TagLM), https://arxiv.org/abs/1705.00108: the language model between two BiGRUs.
Collobert et al. 2011, https://arxiv.org/abs/1103.0398: a layer on a window of words, with a CRF or without.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int, Int32, PRNGKeyArray

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.losses import crf_loss, cross_entropy, marginals, viterbi
from bert_elmo_jax.losses.crf import forbid
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
from bert_elmo_jax.nn import Dense, bigru, bilstm, init_bigru, init_bilstm, variational_dropout
from bert_elmo_jax.nn.word_window import init_window, pad_words, window_layer

CELLS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "lstm": (init_bilstm, bilstm),
    "gru": (init_bigru, bigru),
    "window": (init_window, window_layer),
}
LINEAR = "linear"


@dataclass(frozen=True, kw_only=True)
class TaggerConfig(NetworkConfig):
    """The sizes of a tagger, and where it reads an encoder's layers.

    It has `lstm_layers` bidirectional layers of a `cell`, LSTMs or GRUs, with `lstm_size` cells in each direction. The
    cell `window` is a layer of `lstm_size` units that reads the words around each word, `window` in all. `linear` has
    no layers: each word and feature has a weight for each tag at each place of the window, in place of its vector.
    `places` are one or several of input (with the words), between (with the output of the first layer) and output (with
    the output of the last one), separated by commas; each has its own mixture. `scheme` is the tags' scheme.

    >>> TaggerConfig(num_tags=9, num_words=100, places="input,output").at
    ('input', 'output')
    """

    CALLED: ClassVar[str] = "a tagger"
    PLACES: ClassVar[tuple[str, ...]] = ("input", "between", "output")
    SIZES: ClassVar[tuple[str, ...]] = ("num_tags", "lstm_layers", "lstm_size")
    RATES: ClassVar[tuple[str, ...]] = ("dropout",)
    ADDED: ClassVar[tuple[str, ...]] = (*NetworkConfig.ADDED, "cell", "window")

    num_tags: int
    lstm_layers: int = 2
    lstm_size: int = 200
    dropout: float = 0.5
    output: Literal["crf", "softmax"] = "crf"
    scheme: Literal["", "IOB1", "IOB2", "BIOES"] = ""
    cell: Literal["lstm", "gru", "window", "linear"] = "lstm"
    window: int = 11

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output not in ("crf", "softmax"):
            hint = did_you_mean(self.output, ("crf", "softmax"))
            raise ValueError(f"output={self.output!r} is not known; use crf or softmax{hint}")
        if self.cell not in (cells := (*CELLS, LINEAR)):
            raise ValueError(
                f"cell={self.cell!r} is not known; use one of {', '.join(cells)}{did_you_mean(self.cell, cells)}"
            )
        if self.window < 1 or self.window % 2 == 0:
            raise ValueError(
                f"window={self.window}: expected an odd number of words, with the tagged one in the middle"
            )
        if self.cell == LINEAR and (self.encoder_layers or self.characters):
            problem = "cell=linear reads neither an encoder's layers nor characters"
            raise ValueError(f"{problem}: leave out encoder and character_vectors, and use unknown=unk or classes")
        if "between" in self.at and self.lstm_layers < 2:
            raise ValueError(f"places={self.places!r}: `between` needs two layers; use lstm_layers=2 or more")

    @classmethod
    def fixed_width(cls, fields: Mapping[str, Any], num_labels: int) -> int:
        """Return the width of the vectors of words and features: of a linear tagger, their weights."""
        return fields["window"] * num_labels if fields["cell"] == LINEAR else 0

    @property
    def feature_scale(self) -> float:
        """The deviation of the first vectors of hand-made features."""
        return 0.0 if self.cell == LINEAR else super().feature_scale

    @property
    def term(self) -> str:
        """The name of the network's own term of the loss."""
        return "crf" if self.output == "crf" else "cross_entropy"

    def module(self) -> "Tagger":
        """Return the network."""
        return Tagger(self)


class Tagger(WordNetwork):
    """Words -> scores of every tag at every word.

    Dropout is variational (one mask for all words of a sentence)
    at the input of each layer, and ordinary on the mixtures of an encoder's layers.

    >>> network, ones = Tagger(TaggerConfig(num_tags=3, num_words=9)), jnp.ones((2, 5), jnp.int32)
    >>> jax.eval_shape(network.init_with_output, jax.random.key(0), ones, ones[:, 0])[0][0].shape
    (2, 5, 3)
    """

    config: TaggerConfig

    def compute(
        self, x: Float32[Array, "B T E"], mixed: Any, real: Bool[Array, "B T"], lengths: Int[Array, " B"], key: Key
    ) -> tuple[Float32[Array, "B T K"], Float32[Array, "N N"]]:
        """Return the scores, and the transitions (zeros for a softmax)."""
        c = self.config

        def entering(x: Array, place: str) -> Array:
            return variational_dropout(add_mixture(x, mixed, place), c.dropout, key(c.dropout))

        if c.cell == LINEAR:
            scores = self.sum_weights(entering(x, "input"), lengths)
        else:
            init, run = CELLS[c.cell]
            options = {"window": c.window} if c.cell == "window" else {}
            for n in range(c.lstm_layers):
                x = entering(x, ("input", "between")[n] if n < 2 else "")
                x = run(x, self.param(f"layer_{n}", init, x.shape[-1], c.lstm_size, **options), lengths)
            x = entering(x, "output")
            scores = Dense(c.num_tags, x.shape[-1] ** -0.5, name="tags")(x)
        size = (c.num_tags + 1, c.num_tags + 1)
        if c.output == "softmax":
            return scores, jnp.zeros(size)
        return scores, self.param("transitions", nn.initializers.normal(0.1), size)

    def sum_weights(self, x: Float32[Array, "B T E"], lengths: Int[Array, " B"]) -> Float32[Array, "B T K"]:
        """Return the scores of tags: sums of the weights [window, K] of the words and features in each window."""
        c, zeros = self.config, nn.initializers.zeros
        weights = x.reshape(*x.shape[:2], -1, c.window, c.num_tags).sum(axis=2)
        outside = self.param("padding", zeros, (c.window, c.num_tags))
        weights = pad_words(weights, lengths, outside, c.window // 2)
        places = [weights[:, n : n + x.shape[1], n] for n in range(c.window)]
        return sum(places, start=self.param("bias", zeros, (c.num_tags,))[None, None])


def best_tags(
    config: TaggerConfig, legal: Bool[np.ndarray, "N N"], params: Any, batch: Batch, encode: Encode | None = None
) -> tuple[Int32[Array, "B T"], Float32[Array, "B T"]]:
    """Return the best legal path of each row and the probability of each of its tags.

    The probabilities of a CRF are marginals over all legal paths.
    """
    scores, transitions, _ = run_network(config, params, batch, encode=encode)
    if config.output == "softmax":
        scores = jax.nn.log_softmax(scores, axis=-1)
        probabilities = jnp.exp(scores)
    else:
        probabilities = marginals(scores, forbid(transitions, legal), batch["lengths"])
    path, _ = viterbi(scores, transitions, batch["lengths"], legal)
    return path, jnp.take_along_axis(probabilities, path[:, :, None], axis=2)[:, :, 0]


def tagger_loss(config: TaggerConfig, encode: Encode | None = None) -> Loss:
    """Return a loss for `train.make_step`, with the terms of `network_coefficients`.

    `crf` is the mean over sentences, `cross_entropy` over words; `mix_l2` is λ·‖w‖² of the mixture weights.

    >>> config, ones = TaggerConfig(num_tags=3, num_words=9), jnp.ones((2, 5), jnp.int32)
    >>> batch = {"words": ones, "tags": ones, "lengths": ones[:, 0]}
    >>> from bert_elmo_jax.networks import network_shapes
    >>> sorted(jax.eval_shape(tagger_loss(config), network_shapes(config), batch, None, None)[0])
    ['crf']
    """

    def run(params: Any, batch: Batch, key: PRNGKeyArray | None) -> tuple[Any, Any]:
        scores, transitions, penalty = run_network(config, params, batch, key, encode)
        tags, lengths = batch["tags"], batch["lengths"]
        if config.output == "crf":
            return crf_loss(scores, transitions, lengths, tags), penalty
        real = jnp.arange(tags.shape[1])[None, :] < lengths[:, None]
        return cross_entropy(scores, tags, real.astype(jnp.float32)), penalty

    return make_loss(config, run)
