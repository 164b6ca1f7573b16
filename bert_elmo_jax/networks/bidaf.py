"""BiDAF with self-attention, a reader that answers a question with a span of a context.

Clark and Gardner 2018, https://arxiv.org/abs/1710.10723: the network, with a score for "no answer".
Peters et al. 2018, https://arxiv.org/abs/1802.05365: ELMo concatenated to the words and to the first BiLSTM's output.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.linen.initializers import normal
from jaxtyping import Array, Bool, Float, Float32, PRNGKeyArray

from bert_elmo_jax.losses import answer_loss
from bert_elmo_jax.networks.word_input import WordInput
from bert_elmo_jax.networks.word_network import Batch, Encode, NetworkConfig, Sums, beside, mix_at_places, with_vectors
from bert_elmo_jax.nn import Dense, bilstm, init_bilstm, variational_dropout
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.pooling import attention_flow, init_similarity, masked_softmax, self_attention_flow

QUESTION = "question_"  # prefix of the entries of a batch that belong to the question
NOWHERE = -1e9  # the score of padding
NONE_SIZE = 80  # of the hidden layer of the no-answer score


@dataclass(frozen=True, kw_only=True)
class BidafConfig(NetworkConfig):
    """The sizes of a reader, and where it reads an encoder's layers.

    `places` are input (with the words), output (with the output of the first BiLSTM, before the attention), or both.
    `lstm_size` is the size of each direction of every BiLSTM; all other layers are twice as wide. With `unanswerable`
    questions "no answer" has a score too.

    >>> BidafConfig(num_words=100).at
    ('input', 'output')
    """

    CALLED: ClassVar[str] = "a reader"
    SIZES: ClassVar[tuple[str, ...]] = ("lstm_size",)
    RATES: ClassVar[tuple[str, ...]] = ("dropout",)

    lstm_size: int = 90
    dropout: float = 0.2
    unanswerable: bool = False
    places: str = "input,output"
    mix_l2: float = 0.0


class Text(NamedTuple):
    """A batch of texts: words [B, T], lengths [B]; characters [B, T, C], brought [B, T, D], layers [L, B, T, W]."""

    words: Any
    lengths: Any
    characters: Any = None
    brought: Any = None
    layers: Any = None


class AnswerScores(NamedTuple):
    """The scores of starting and ending the answer at each word of the context, and of "no answer".

    Padding has scores far below all others. `none` is -inf if every question has an answer.
    """

    start: Float32[Array, "B T"]
    end: Float32[Array, "B T"]
    none: Float32[Array, " B"]


class Bidaf(nn.Module):
    """Context and question -> scores of every word of the context.

    `deterministic=False` needs `rngs={"dropout": key}`. Dropout is variational (one mask for all words of a text) at
    the input of each BiLSTM and each linear layer, and ordinary on the mixtures of an encoder's layers.

    >>> import jax, jax.numpy as jnp
    >>> from bert_elmo_jax.networks.bidaf import Bidaf, BidafConfig, Text
    >>> context = Text(jnp.zeros((2, 5), jnp.int32), jnp.array([5, 2]))
    >>> question = Text(jnp.zeros((2, 3), jnp.int32), jnp.array([3, 1]))
    >>> reader = Bidaf(BidafConfig(num_words=9, lstm_size=4))
    >>> (scores, _), variables = jax.eval_shape(reader.init_with_output, jax.random.key(0), context, question)
    >>> scores.start.shape, sorted(variables["params"])  # doctest: +NORMALIZE_WHITESPACE
    ((2, 5), ['end', 'end_layer', 'first_layer', 'flow', 'merge', 'self_flow', 'self_layer', 'self_merge', 'start',
    'start_layer', 'words'])
    """

    config: BidafConfig

    @nn.compact
    def __call__(
        self, context: Text, question: Text, deterministic: bool = True
    ) -> tuple[AnswerScores, Float32[Array, ""]]:
        """Return the scores, and the penalty on the mixture weights."""
        c, width = self.config, context.words.shape[1]
        lengths = jnp.asarray(context.lengths)
        there, asked = (_real(text) for text in (context, question))
        layers = None
        if context.layers is not None:
            layers = jnp.concatenate([jnp.asarray(x.layers) for x in (context, question)], axis=2)
        # Both texts at once, because they share the mixtures.
        both, penalty = mix_at_places(self, c, layers, jnp.concatenate([there, asked], axis=1), deterministic)
        words = WordInput(c.num_specials, c.num_words, c.word_size, c.characters, name="words")

        def drop(x: Array) -> Array:
            key = None if deterministic or not c.dropout else self.make_rng("dropout")
            return variational_dropout(x, c.dropout, key)

        def layer(name: str, x: Array) -> Array:
            return bilstm(drop(x), self.param(f"{name}_layer", init_bilstm, x.shape[-1], c.lstm_size), lengths)

        def merge(name: str, x: Array) -> Array:
            return nn.relu(Dense(2 * c.lstm_size, x.shape[-1] ** -0.5, name=name)(drop(x)))

        def embedded(text: Text, real: Array, mixed: dict[str, Array]) -> Array:
            x = jnp.where(real[..., None], words(text.words, text.characters, text.brought), 0.0)
            return drop(beside(x, mixed, "input"))

        mixed = [{place: x[:, part] for place, x in both.items()} for part in (slice(width), slice(width, None))]
        x, y = embedded(context, there, mixed[0]), embedded(question, asked, mixed[1])
        first = self.param("first_layer", init_bilstm, x.shape[-1], c.lstm_size)
        x = beside(bilstm(x, first, lengths), mixed[0], "output")
        y = beside(bilstm(y, first, jnp.asarray(question.lengths)), mixed[1], "output")
        flow = self.param("flow", init_similarity, x.shape[-1])
        x = merge("merge", attention_flow(x, y, flow, there, asked))
        inner = self_attention_flow(
            layer("self", x), self.param("self_flow", init_similarity, 2 * c.lstm_size, False), there
        )
        x = x + merge("self_merge", inner)
        from_start = layer("start", x)
        from_end = layer("end", jnp.concatenate([x, from_start], axis=-1))

        def score(name: str, x: Array) -> Array:
            # A bias would not change the softmax.
            scores = drop(x) @ self.param(name, normal(x.shape[-1] ** -0.5), (x.shape[-1],))
            return jnp.where(there, scores, NOWHERE)

        start, end = score("start", from_start), score("end", from_end)
        if not c.unanswerable:
            return AnswerScores(start, end, jnp.full(len(start), -jnp.inf)), penalty
        sides = ((start, from_start), (end, from_end), (score("none_flow", x), x))
        whole = [(masked_softmax(scores[:, None, :], there[:, None, :]) @ values)[:, 0] for scores, values in sides]
        hidden = jnp.concatenate(whole, axis=-1)
        hidden = nn.relu(Dense(NONE_SIZE, hidden.shape[-1] ** -0.5, name="none_hidden")(hidden))
        none = Dense(1, NONE_SIZE**-0.5, name="none")(hidden)[:, 0]
        return AnswerScores(start, end, none), penalty


def init_bidaf(
    config: BidafConfig, key: PRNGKeyArray, specials: Float[AnyArray, "S D"], words: Float[AnyArray, "V D"]
) -> dict[str, Any]:
    """Return new parameters with the given word vectors.

    >>> import jax, numpy as np
    >>> from bert_elmo_jax.networks import BidafConfig, init_bidaf
    >>> config, tables = BidafConfig(num_words=9, lstm_size=4), (np.zeros((1, 100)), np.ones((9, 100)))
    >>> jax.eval_shape(lambda key: init_bidaf(config, key, *tables), jax.random.key(0))["merge"]["kernel"].shape
    (32, 8)
    """
    return with_vectors(config, jax.jit(partial(_init, config))(key), specials, words)


def bidaf_shapes(config: BidafConfig) -> Any:
    """Return the shape and type of every parameter except the encoder's."""
    return jax.eval_shape(partial(_init, config), jax.random.key(0))


def scores_of(
    config: BidafConfig, params: Any, batch: Batch, key: PRNGKeyArray | None = None, encode: Encode | None = None
) -> tuple[AnswerScores, Float32[Array, ""]]:
    """Return the scores and penalty of a batch; without a key there is no dropout.

    A batch has the entries of `run_network` for the contexts, and the same for the questions with the prefix
    `question_`.
    """
    own, *for_encoder = (None, None, None) if key is None else jax.random.split(key, 3)
    asked = {name.removeprefix(QUESTION): x for name, x in batch.items() if name.startswith(QUESTION)}
    texts = []
    for of_text, text_key in zip((batch, asked), for_encoder):
        layers: Any = None
        if encode is not None:
            layers = encode(params["encoder"], of_text, text_key)
        elif config.encoder_layers:
            layers = jnp.moveaxis(jnp.asarray(of_text["layers"]), 1, 0)
        parts = (of_text["words"], of_text["lengths"], of_text.get("characters"), of_text.get("brought"), layers)
        texts.append(Text(*parts))
    rest = {name: part for name, part in params.items() if name != "encoder"}
    found: Any = Bidaf(config).apply(
        {"params": rest}, *texts, deterministic=key is None, rngs={} if own is None else {"dropout": own}
    )
    return found


def answer_scores(config: BidafConfig, params: Any, batch: Batch, encode: Encode | None = None) -> AnswerScores:
    """Return the scores of a batch, from which `data.tasks.question_answers` finds the answers."""
    return scores_of(config, params, batch, encode=encode)[0]


def bidaf_loss(
    config: BidafConfig, encode: Encode | None = None
) -> Callable[[Any, Batch, PRNGKeyArray | None, Any], tuple[Sums, Sums, Any]]:
    """Return a loss for `train.make_step`, with the terms of `bidaf_coefficients`.

    `answer` is the mean over questions (see `losses.answer_loss`), `mix_l2` is λ·‖w‖² of the mixture weights.

    >>> import jax, numpy as np
    >>> from bert_elmo_jax.networks.bidaf import BidafConfig, bidaf_loss, bidaf_shapes
    >>> config, ones = BidafConfig(num_words=9, word_size=4, lstm_size=4), np.ones((2, 5), np.int32)
    >>> batch = {"words": ones, "lengths": ones[:, 0], "question_words": ones, "question_lengths": ones[:, 0]}
    >>> batch |= {"answers": np.zeros((2, 1, 2), np.int32), "weights": np.ones(2, np.float32)}
    >>> sorted(jax.eval_shape(bidaf_loss(config), bidaf_shapes(config), batch, None, None)[0])
    ['answer']
    """

    def loss(params: Any, batch: Batch, key: PRNGKeyArray | None, carry: Any) -> tuple[Sums, Sums, Any]:
        batch = {name: jnp.asarray(values) for name, values in batch.items()}
        (start, end, none), penalty = scores_of(config, params, batch, key, encode)
        terms: Sums = {
            "answer": answer_loss(start, end, none if config.unanswerable else None, batch["answers"], batch["weights"])
        }
        if config.encoder_layers:
            terms["mix_l2"] = (penalty, jnp.ones(()))
        return terms, {}, carry

    return loss


def bidaf_coefficients(config: BidafConfig) -> dict[str, float]:
    """Return the coefficients of the terms of the loss.

    >>> from bert_elmo_jax.networks.bidaf import BidafConfig, bidaf_coefficients
    >>> bidaf_coefficients(BidafConfig(num_words=9))
    {'answer': 1.0}
    """
    return {"answer": 1.0} | ({"mix_l2": 1.0} if config.encoder_layers else {})


def _real(text: Text) -> Bool[Array, "B T"]:
    return jnp.arange(text.words.shape[1])[None, :] < jnp.asarray(text.lengths)[:, None]


def _init(config: BidafConfig, key: PRNGKeyArray) -> dict[str, Any]:
    characters = jnp.ones((1, 1, 3), jnp.int32) if config.characters else None
    layers = jnp.zeros((config.encoder_layers, 1, 1, config.encoder_width)) if config.encoder_layers else None
    text = Text(jnp.zeros((1, 1), jnp.int32), jnp.ones(1, jnp.int32), characters, None, layers)
    return dict(Bidaf(config).init(key, text, text)["params"])
