"""A BiLSTM tagger with a conditional random field (CRF), which can read an encoder's layers.

Peters et al. 2018, https://arxiv.org/abs/1802.05365: named entities, ELMo at the input of the first of two BiLSTMs.
Peters et al. 2017 (TagLM), https://arxiv.org/abs/1705.00108: the language model between the BiLSTMs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Int, Int32, PRNGKeyArray

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.losses import crf_loss, cross_entropy, marginals, viterbi
from bert_elmo_jax.losses.crf import forbid
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
    run_network,
)
from bert_elmo_jax.nn import Dense, bilstm, init_bilstm, variational_dropout
from bert_elmo_jax.nn.any_array import AnyArray


@dataclass(frozen=True, kw_only=True)
class TaggerConfig(NetworkConfig):
    """The sizes of a tagger, and where it reads an encoder's layers.

    `places` are one or several of input (with the words), between (with the output of the first BiLSTM) and output
    (with the output of the last one), separated by commas; each has its own mixture. `scheme` is that of the tags.

    >>> TaggerConfig(num_tags=9, num_words=100, places="input,output").at
    ('input', 'output')
    """

    CALLED: ClassVar[str] = "a tagger"
    PLACES: ClassVar[tuple[str, ...]] = ("input", "between", "output")
    SIZES: ClassVar[tuple[str, ...]] = ("num_tags", "lstm_layers", "lstm_size")
    RATES: ClassVar[tuple[str, ...]] = ("dropout",)

    num_tags: int
    lstm_layers: int = 2
    lstm_size: int = 200
    dropout: float = 0.5
    output: Literal["crf", "softmax"] = "crf"
    scheme: Literal["", "IOB1", "IOB2", "BIOES"] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output not in ("crf", "softmax"):
            hint = did_you_mean(self.output, ("crf", "softmax"))
            raise ValueError(f"output={self.output!r} is not known; use crf or softmax{hint}")
        if "between" in self.at and self.lstm_layers < 2:
            raise ValueError(f"places={self.places!r}: `between` needs two BiLSTMs; use lstm_layers=2 or more")


class Tagger(nn.Module):
    """Words -> scores of every tag at every word.

    `deterministic=False` needs `rngs={"dropout": key}`. Dropout is variational (one mask for all words of a sentence)
    at the input of each BiLSTM and of the output layer, and ordinary on the mixtures of an encoder's layers.

    >>> import jax, jax.numpy as jnp
    >>> from bert_elmo_jax.networks import Tagger, TaggerConfig
    >>> config = TaggerConfig(num_tags=3, num_words=9, lstm_size=4, encoder_layers=3, encoder_width=8)
    >>> words, lengths, layers = jnp.zeros((2, 5), jnp.int32), jnp.array([5, 2]), jnp.ones((3, 2, 5, 8))
    >>> init = lambda key: Tagger(config).init_with_output(key, words, lengths, layers=layers)
    >>> (scores, transitions, penalty), variables = jax.eval_shape(init, jax.random.key(0))
    >>> scores.shape, transitions.shape, sorted(variables["params"])
    ((2, 5, 3), (4, 4), ['layer_0', 'layer_1', 'mix', 'tags', 'transitions', 'words'])
    """

    config: TaggerConfig

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
    ) -> tuple[Float32[Array, "B T K"], Float32[Array, "N N"], Float32[Array, ""]]:
        """Return the scores, the transitions (zeros for a softmax), and the penalty on the mixture weights."""
        c = self.config
        lengths = jnp.asarray(lengths)
        real = jnp.arange(words.shape[1])[None, :] < lengths[:, None]
        mixed, penalty = mix_at_places(self, c, layers, real, deterministic)

        def entering(x: Array, place: str) -> Array:
            key = None if deterministic or not c.dropout else self.make_rng("dropout")
            return variational_dropout(beside(x, mixed, place), c.dropout, key)

        x = WordInput(c.num_specials, c.num_words, c.word_size, c.characters, name="words")(words, characters, brought)
        x = jnp.where(real[..., None], x, 0.0)
        for n in range(c.lstm_layers):
            x = entering(x, ("input", "between")[n] if n < 2 else "")
            x = bilstm(x, self.param(f"layer_{n}", init_bilstm, x.shape[-1], c.lstm_size), lengths)
        x = entering(x, "output")
        scores = Dense(c.num_tags, x.shape[-1] ** -0.5, name="tags")(x)
        size = (c.num_tags + 1, c.num_tags + 1)
        if c.output == "softmax":
            return scores, jnp.zeros(size), penalty
        return scores, self.param("transitions", nn.initializers.normal(0.1), size), penalty


def init_tagger(
    config: TaggerConfig, key: PRNGKeyArray, specials: Float[AnyArray, "S D"], words: Float[AnyArray, "V D"]
) -> dict[str, Any]:
    """Return new parameters with the given word vectors.

    >>> import jax, numpy as np
    >>> from bert_elmo_jax.networks import TaggerConfig, init_tagger
    >>> config, tables = TaggerConfig(num_tags=3, num_words=9), (np.zeros((1, 100)), np.ones((9, 100)))
    >>> jax.eval_shape(lambda key: init_tagger(config, key, *tables), jax.random.key(0))["tags"]["kernel"].shape
    (400, 3)
    """
    return init_network(Tagger(config), config, key, specials, words)


def tagger_shapes(config: TaggerConfig) -> Any:
    """Return the shape and type of every parameter except the encoder's."""
    return network_shapes(Tagger(config), config)


def scores_of(
    config: TaggerConfig, params: Any, batch: Batch, key: PRNGKeyArray | None = None, encode: Encode | None = None
) -> tuple[Float32[Array, "B T K"], Float32[Array, "N N"], Float32[Array, ""]]:
    """Return the scores, transitions and penalty of a batch (see `run_network`); without a key there is no dropout."""
    found: tuple[Array, Array, Array] = run_network(Tagger(config), config, params, batch, key, encode)
    return found


def best_tags(
    config: TaggerConfig,
    legal: Bool[np.ndarray, "N N"],
    params: Any,
    batch: Batch,
    encode: Encode | None = None,
) -> tuple[Int32[Array, "B T"], Float32[Array, "B T"]]:
    """Return the best legal path of each row and the probability of each of its tags.

    The probabilities of a CRF are marginals over all legal paths.
    """
    scores, transitions, _ = scores_of(config, params, batch, encode=encode)
    if config.output == "softmax":
        scores = jax.nn.log_softmax(scores, axis=-1)
    path, _ = viterbi(scores, transitions, batch["lengths"], legal)
    if config.output == "softmax":
        probabilities = jnp.exp(scores)
    else:
        probabilities = marginals(scores, forbid(transitions, legal), batch["lengths"])
    return path, jnp.take_along_axis(probabilities, path[:, :, None], axis=2)[:, :, 0]


def tagger_loss(
    config: TaggerConfig, encode: Encode | None = None
) -> Callable[[Any, Batch, PRNGKeyArray | None, Any], tuple[Sums, Sums, Any]]:
    """Return a loss for `train.make_step`, with the terms of `tagger_coefficients`.

    `crf` is the mean over sentences, `cross_entropy` over words; `mix_l2` is λ·‖w‖² of the mixture weights.

    >>> import jax, numpy as np
    >>> from bert_elmo_jax.networks import TaggerConfig, tagger_loss
    >>> config = TaggerConfig(num_tags=3, num_words=9, word_size=4, lstm_size=4)
    >>> batch = {name: np.ones((2, 5), np.int32) for name in ("words", "tags")} | {"lengths": np.array([5, 0])}
    >>> sorted(jax.eval_shape(tagger_loss(config), tagger_shapes(config), batch, None, None)[0])
    ['crf']
    """

    def loss(params: Any, batch: Batch, key: PRNGKeyArray | None, carry: Any) -> tuple[Sums, Sums, Any]:
        batch = {name: jnp.asarray(values) for name, values in batch.items()}
        scores, transitions, penalty = scores_of(config, params, batch, key, encode)
        tags, lengths = batch["tags"], batch["lengths"]
        terms: Sums = {}
        if config.output == "crf":
            terms["crf"] = crf_loss(scores, transitions, lengths, tags)
        else:
            real = jnp.arange(tags.shape[1])[None, :] < lengths[:, None]
            terms["cross_entropy"] = cross_entropy(scores, tags, real.astype(jnp.float32))
        if config.encoder_layers:
            terms["mix_l2"] = (penalty, jnp.ones(()))
        return terms, {}, carry

    return loss


def tagger_coefficients(config: TaggerConfig) -> dict[str, float]:
    """Return the coefficients of the terms of the loss.

    >>> tagger_coefficients(TaggerConfig(num_tags=3, num_words=9, output="softmax"))
    {'cross_entropy': 1.0}
    """
    own = "crf" if config.output == "crf" else "cross_entropy"
    return {own: 1.0} | ({"mix_l2": 1.0} if config.encoder_layers else {})
