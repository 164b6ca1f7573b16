"""BiDAF with self-attention, a reader that answers a question with a span of a context.

Clark and Gardner 2018, https://arxiv.org/abs/1710.10723: the network, with a score for "no answer".
Peters et al. 2018, https://arxiv.org/abs/1802.05365: ELMo concatenated to the words and to the first BiLSTM's output.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.linen.initializers import normal
from jaxtyping import Array, Bool, Float32, PRNGKeyArray

from bert_elmo_jax.losses import answer_loss
from bert_elmo_jax.networks.word_network import (
    Batch,
    Encode,
    Loss,
    NetworkConfig,
    WordInput,
    add_mixture,
    apply_network,
    dropout_keys,
    encoder_layers,
    make_loss,
    mix_at_places,
)
from bert_elmo_jax.nn import Dense, bilstm, init_bilstm, variational_dropout
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

    @property
    def term(self) -> str:
        """The name of the network's own term of the loss."""
        return "answer"

    def module(self) -> "Bidaf":
        """Return the network."""
        return Bidaf(self)

    def smallest_inputs(self) -> dict[str, Any]:
        """Return the inputs of the smallest batch."""
        return dict.fromkeys(("context", "question"), Text(**super().smallest_inputs()))


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

    >>> network, text = Bidaf(BidafConfig(num_words=9)), Text(jnp.ones((2, 5), jnp.int32), jnp.array([5, 2]))
    >>> jax.eval_shape(network.init_with_output, jax.random.key(0), text, text)[0][0].start.shape
    (2, 5)
    """

    config: BidafConfig

    @nn.compact
    def __call__(
        self, context: Text, question: Text, deterministic: bool = True
    ) -> tuple[AnswerScores, Float32[Array, ""]]:
        """Return the scores, and the penalty on the mixture weights."""
        c, width, key = self.config, context.words.shape[1], dropout_keys(self, deterministic)
        lengths = jnp.asarray(context.lengths)
        context_mask, question_mask = (_real(text) for text in (context, question))
        layers = None
        if context.layers is not None:
            layers = jnp.concatenate([jnp.asarray(x.layers) for x in (context, question)], axis=2)
        # Both texts at once, because they share the mixtures.
        mask = jnp.concatenate([context_mask, question_mask], axis=1)
        both, penalty = mix_at_places(self, layers, mask, deterministic)
        words = WordInput(c.num_specials, c.num_words, c.word_size, c.characters, c.character_reader, name="words")

        def drop(x: Array) -> Array:
            return variational_dropout(x, c.dropout, key(c.dropout))

        def layer(name: str, x: Array) -> Array:
            return bilstm(drop(x), self.param(f"{name}_layer", init_bilstm, x.shape[-1], c.lstm_size), lengths)

        def merge(name: str, x: Array) -> Array:
            return nn.relu(Dense(2 * c.lstm_size, x.shape[-1] ** -0.5, name=name)(drop(x)))

        def embedded(text: Text, real: Array, mixed: dict[str, Array]) -> Array:
            x = jnp.where(real[..., None], words(text.words, text.characters, text.brought), 0.0)
            return drop(add_mixture(x, mixed, "input"))

        mixed = [{place: x[:, part] for place, x in both.items()} for part in (slice(width), slice(width, None))]
        x, y = embedded(context, context_mask, mixed[0]), embedded(question, question_mask, mixed[1])
        first = self.param("first_layer", init_bilstm, x.shape[-1], c.lstm_size)
        x = add_mixture(bilstm(x, first, lengths), mixed[0], "output")
        y = add_mixture(bilstm(y, first, jnp.asarray(question.lengths)), mixed[1], "output")
        flow = self.param("flow", init_similarity, x.shape[-1])
        x = merge("merge", attention_flow(x, y, flow, context_mask, question_mask))
        inner = self_attention_flow(
            layer("self", x), self.param("self_flow", init_similarity, 2 * c.lstm_size, False), context_mask
        )
        x = x + merge("self_merge", inner)
        from_start = layer("start", x)
        from_end = layer("end", jnp.concatenate([x, from_start], axis=-1))

        def score(name: str, x: Array) -> Array:
            # A bias would not change the softmax.
            scores = drop(x) @ self.param(name, normal(x.shape[-1] ** -0.5), (x.shape[-1],))
            return jnp.where(context_mask, scores, NOWHERE)

        start, end = score("start", from_start), score("end", from_end)
        if not c.unanswerable:
            return AnswerScores(start, end, jnp.full(len(start), -jnp.inf)), penalty
        sides = ((start, from_start), (end, from_end), (score("none_flow", x), x))
        summaries = [
            (masked_softmax(scores[:, None, :], context_mask[:, None, :]) @ values)[:, 0] for scores, values in sides
        ]
        hidden = jnp.concatenate(summaries, axis=-1)
        hidden = nn.relu(Dense(NONE_SIZE, hidden.shape[-1] ** -0.5, name="none_hidden")(hidden))
        none = Dense(1, NONE_SIZE**-0.5, name="none")(hidden)[:, 0]
        return AnswerScores(start, end, none), penalty


def scores_of(
    config: BidafConfig, params: Any, batch: Batch, key: PRNGKeyArray | None = None, encode: Encode | None = None
) -> tuple[AnswerScores, Float32[Array, ""]]:
    """Return the scores and penalty of a batch; without a key there is no dropout.

    A batch has the entries of `run_network` for the contexts, and the same for the questions with the prefix
    `question_`.
    """
    reader_key, *for_encoder = (None, None, None) if key is None else jax.random.split(key, 3)
    question = {name.removeprefix(QUESTION): x for name, x in batch.items() if name.startswith(QUESTION)}
    texts = []
    for part, text_key in zip((batch, question), for_encoder):
        layers = encoder_layers(config, params, part, encode, text_key)
        texts.append(Text(part["words"], part["lengths"], part.get("characters"), part.get("brought"), layers))
    outputs: tuple[AnswerScores, Array] = apply_network(config, params, reader_key, *texts)
    return outputs


def answer_scores(config: BidafConfig, params: Any, batch: Batch, encode: Encode | None = None) -> AnswerScores:
    """Return the scores of a batch, from which `data.tasks.answers` finds the answers."""
    return scores_of(config, params, batch, encode=encode)[0]


def bidaf_loss(config: BidafConfig, encode: Encode | None = None) -> Loss:
    """Return a loss for `train.make_step`, with the terms of `network_coefficients`.

    `answer` is the mean over questions (see `losses.answer_loss`), `mix_l2` is λ·‖w‖² of the mixture weights.

    >>> config, ones = BidafConfig(num_words=9), jnp.ones((2, 5), jnp.int32)
    >>> batch = {"words": ones, "lengths": ones[:, 0], "question_words": ones, "question_lengths": ones[:, 0]}
    >>> batch |= {"answers": jnp.zeros((2, 1, 2), jnp.int32), "weights": jnp.ones(2)}
    >>> from bert_elmo_jax.networks import network_shapes
    >>> sorted(jax.eval_shape(bidaf_loss(config), network_shapes(config), batch, None, None)[0])
    ['answer']
    """

    def run(params: Any, batch: Batch, key: PRNGKeyArray | None) -> tuple[Any, Any]:
        (start, end, none), penalty = scores_of(config, params, batch, key, encode)
        score = none if config.unanswerable else None
        return answer_loss(start, end, score, batch["answers"], batch["weights"]), penalty

    return make_loss(config, run)


def _real(text: Text) -> Bool[Array, "B T"]:
    return jnp.arange(text.words.shape[1])[None, :] < jnp.asarray(text.lengths)[:, None]
