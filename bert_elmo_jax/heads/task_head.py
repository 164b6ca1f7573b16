"""Task heads with their encoder: the scores of a batch, and the loss for `train.make_step`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from bert_elmo_jax.heads.features import Features, Reader, mean_over_pieces, pieces_of_segments
from bert_elmo_jax.heads.modules import Choice, Classify, Span, Tag
from bert_elmo_jax.heads.sentence_head import NAME, SentenceHead, init_sentence_head, sentence_vectors
from bert_elmo_jax.losses import accuracy, cross_entropy
from bert_elmo_jax.losses.loss_types import Batch, Loss, Terms
from bert_elmo_jax.nn.dropout import dropout_options

Kind = Literal["classification", "regression", "tags", "choice", "questions", "sentences"]

# The name of each kind's head in the parameter tree; the others are called "classify".
NAMES: dict[Kind, str] = {"tags": "tag", "choice": "choice", "questions": "span", "sentences": NAME}
NOWHERE = -1e9  # the score of padding, and of choices that are absent
OF_PIECES = ("tags", "questions")  # kinds with scores of pieces; the others have scores of examples
NUMBERED = "nsp_positions"  # of packed batches: the first position of each example, in the order of the segments


@dataclass(frozen=True)
class TaskHead:
    """The head of one kind of task, on the last layer, on its pooled vector, or on `features`.

    >>> TaskHead("tags", 9).name, TaskHead("regression").pooled
    ('tag', True)
    """

    kind: Kind
    num_labels: int = 1
    features: Features | None = None
    dropout: float = 0.1
    initializer_range: float | None = 0.02
    at_end: bool = False  # a causal encoder is pooled at the last token, the only one that has seen the whole row
    pools_pieces: bool = False  # heads of pieces read each piece through the encoder's pooler, too
    sentences: SentenceHead | None = None  # of the kind "sentences"
    use_bias: bool = True  # of the dense layer of `classify`
    logistic: bool = False  # the output of a regression is the log-odds of its label, a number between 0 and 1
    both_orders: bool = False  # an example is two rows, a pair in both orders, whose vectors are added

    @property
    def name(self) -> str:
        """The head's name in the parameter tree."""
        return NAMES.get(self.kind, "classify")

    @property
    def pooled(self) -> bool:
        """True if the head reads what the encoder's pooler gives."""
        if self.features is not None or self.sentences is not None:
            return False
        return self.kind not in OF_PIECES or self.pools_pieces

    @property
    def packs(self) -> bool:
        """True if the head can read packed rows; BiLSTMs would read on from one example to the next."""
        return self.features is None or not self.features.lstm_layers

    @property
    def module(self) -> nn.Module:
        """The head's Linen module."""
        how = self.dropout, self.initializer_range
        if self.kind == "questions":
            return Span(self.initializer_range)
        if self.kind == "choice":
            return Choice(*how)
        return Tag(self.num_labels, *how) if self.kind == "tags" else Classify(self.num_labels, *how, self.use_bias)


def init_task_head(head: TaskHead, key: PRNGKeyArray, width: int) -> dict[str, Any]:
    """Return fresh parameters of a head that reads vectors of `width` numbers; {} if it has none."""
    if head.sentences is not None:
        return init_sentence_head(head.sentences, key)
    rank = 2 if head.name == "classify" else 3
    return head.module.lazy_init(key, jax.ShapeDtypeStruct((1,) * (rank - 1) + (width,), jnp.float32))["params"]


class Read(NamedTuple):
    """The pieces of a batch's texts, one row each or packed, and their states in the last layer."""

    last: Any
    tokens: Any
    segments: Any
    number: int  # the largest number of texts in a row


def task_outputs(
    encoder: nn.Module, head: TaskHead, params: Any, batch: Batch, key: PRNGKeyArray | None = None, frozen: bool = False
) -> Any:
    """Return the float32 scores of a batch, by kind of task.

    Classification [B, labels], regression [B], tags [B, T, labels], choice [B, C], questions two of [B, T] (starts and
    ends), sentences the vectors of an example's texts [B, C, E]. In a batch with `nsp_positions` [B, S] (or [B, S, C]
    of choices or texts), rows are packed with S examples: the results of classification, regression, choice and
    sentences have another axis S after B. `encoder` is a family's module, with its pooler if the head reads it. Without
    a key there is no dropout. A `frozen` encoder has no dropout and gets no
    gradients, except for its pooler.

    >>> from bert_elmo_jax.families.bert.family import FAMILY
    >>> from bert_elmo_jax.families.init_params import init_task_params
    >>> config = FAMILY.config(vocab_size=50, hidden_size=8, num_layers=1, num_heads=2, feed_forward_size=16)
    >>> head, ones = (TaskHead("choice"), jnp.ones((2, 4, 5), jnp.int32))
    >>> params = init_task_params(FAMILY, config, head, jax.random.key(0))
    >>> encoder = FAMILY.build(config, pooler=head.pooled)
    >>> task_outputs(encoder, head, params, {"tokens": ones, "types": ones, "segments": ones}).shape
    (2, 4)
    """
    return run_head(encoder, head, params, batch, key, frozen)[0]


def run_head(
    encoder: nn.Module, head: TaskHead, params: Any, batch: Batch, key: PRNGKeyArray | None = None, frozen: bool = False
) -> tuple[Any, Read]:
    """Return the results of `task_outputs`, and the states of the pieces that the encoder has read."""
    tokens, types, segments = (jnp.asarray(batch[name]) for name in ("tokens", "types", "segments"))
    positions, first = (jnp.asarray(batch[name]) if is_packed(batch) else None for name in ("positions", NUMBERED))
    shape = segments.shape[:-1] if first is None else first.shape  # of the examples, and of their choices
    tokens, types, segments = (x.reshape(-1, x.shape[-1]) for x in (tokens, types, segments))
    rows = tokens.shape[0]  # unlike len(tokens), it may be a symbolic size of `jax.export`
    first = jnp.zeros((rows, 1), jnp.int32) if first is None else first.reshape(rows, -1)
    lengths = pieces_of_segments(segments, first.shape[1]).sum(axis=2)
    if head.at_end:
        first = jnp.maximum(first + lengths - 1, 0)
    encoder_params = params["encoder"]
    if frozen:
        encoder_params = {
            name: x if name == "pooler" else jax.lax.stop_gradient(x) for name, x in encoder_params.items()
        }
    keys = (None, None, None) if key is None else tuple(jax.random.split(key, 3))
    of_pieces = head.kind in OF_PIECES
    pooled_at: Any = {"pool_pieces": True} if of_pieces else {"nsp_positions": first}
    pooled_at = pooled_at if head.pooled else {}
    output: Any = encoder.apply(
        {"params": encoder_params}, tokens, types, positions, segments, layers=head.features and head.features.layers,
        **pooled_at, **dropout_options(None if frozen else keys[0]),
    )  # fmt: skip
    read = Read(output.last, tokens, segments, first.shape[1])
    if head.sentences is not None:
        dense = params.get(NAME, {})
        places = jnp.broadcast_to(jnp.arange(tokens.shape[1])[None], tokens.shape) if positions is None else positions
        vectors = sentence_vectors(head.sentences, dense, output.last, segments, places, first.shape[1])
        return vectors.reshape(*shape, vectors.shape[-1]), read
    x: Any = output.pooled if head.pooled else output.last
    if head.features is not None:
        layers = {"params": params.get("reader", {})}
        x = Reader(head.features).apply(layers, output.layers, segments > 0, **dropout_options(keys[1]))
        if not of_pieces:
            x = mean_over_pieces(x, segments, first.shape[1])
    parts = {"params": params[head.name]}
    if head.kind == "questions":
        # Padding cannot hold an answer, so that a row's width changes nothing.
        sides: Any = head.module.apply(parts, x)
        return tuple(jnp.where(segments > 0, side, NOWHERE) for side in sides), read
    if not of_pieces:
        x = x.reshape(*shape, x.shape[-1])
    if head.both_orders:
        x = x.sum(axis=-2)
    scores: Any = head.module.apply(parts, x, **dropout_options(keys[2]))
    if head.kind == "choice":
        return jnp.where(lengths.reshape(shape) > 0, scores, NOWHERE), read
    return scores[..., 0] if head.kind == "regression" and head.num_labels == 1 else scores, read


def is_packed(batch: Batch) -> bool:
    """Return True if the rows of a batch are packed with several examples.

    >>> is_packed({"tokens": np.ones((2, 8))})
    False
    """
    return NUMBERED in batch


def next_pieces(read: Read, logits: Any) -> tuple[Any, Any]:
    """Return the cross entropy of each piece given those before it: the mean of each text, summed over texts.

    >>> tokens, segments = jnp.array([[0, 1, 1]]), jnp.array([[1, 1, 1]])
    >>> total, weight = next_pieces(Read(None, tokens, segments, 1), jnp.zeros((1, 3, 2)))
    >>> round(float(total), 4), float(weight)
    (0.6931, 1.0)
    """
    inside = pieces_of_segments(read.segments, read.number).astype(jnp.float32)
    shares = inside / jnp.maximum(inside.sum(axis=2, keepdims=True) - 1, 1)
    follows = (read.segments[:, 1:] == read.segments[:, :-1]) & (read.segments[:, 1:] > 0)
    weights = shares.sum(axis=1)[:, 1:] * follows
    return cross_entropy(logits[:, :-1], read.tokens[:, 1:], weights)


def task_loss(
    encoder: nn.Module,
    head: TaskHead,
    class_weights: Sequence[float] | None = None,
    frozen: bool = False,
    score_next: Callable[[Any, Any], Any] | None = None,
) -> Loss:
    """Return `loss(params, batch, key, carry)` for a task's batches; `coefficients` names its terms.

    The loss is cross entropy, with each example weighted by its label's `class_weights`; for regression squared
    error, or the cross entropy of a label between 0 and 1 if the head is `logistic`; for questions the cross entropies
    of start and end. `score_next(params, states)` returns logits of the next pieces; with it, the term `lm` is the loss
    of a language model on the texts of the task.
    """
    scale = None if class_weights is None else np.asarray(class_weights, np.float32)
    if scale is not None and len(scale) != head.num_labels:
        raise ValueError(f"{len(scale)} class weights were given for {head.num_labels} labels; give one for each")

    def loss(params: Any, batch: Batch, key: PRNGKeyArray | None, carry: Any) -> tuple[Terms, Terms, Any]:
        batch = jax.tree.map(jnp.asarray, dict(batch))
        outputs, read = run_head(encoder, head, params, batch, key, frozen)
        more = {} if score_next is None else {"lm": next_pieces(read, score_next(params, read.last))}
        weights = batch["weights"]
        if head.kind == "questions":
            places = [batch["starts"], batch["ends"]]
            if is_packed(batch):
                # An answer is looked for in its own example: one softmax for each segment.
                inside = pieces_of_segments(batch["segments"], batch[NUMBERED].shape[1])
                outputs = [jnp.where(inside, scores[:, None, :], NOWHERE) for scores in outputs]
                places = [batch[NUMBERED] + place for place in places]
            sides = zip(("start", "end"), outputs, places)
            return {name: cross_entropy(scores, at, weights) for name, scores, at in sides} | more, {}, carry
        if head.logistic:
            error = jnp.where(weights > 0, jax.nn.softplus(outputs) - batch["labels"] * outputs, 0.0)
            return {"cross_entropy": ((weights * error).sum(), weights.sum()), **more}, {}, carry
        if head.kind == "regression":
            error = jnp.where(weights > 0, jnp.square(outputs - batch["labels"]), 0.0)
            return {"squared_error": ((weights * error).sum(), weights.sum()), **more}, {}, carry
        labels = batch["labels"]
        scaled = weights if scale is None else weights * jnp.asarray(scale)[labels]
        metrics = {"accuracy": accuracy(outputs, labels, weights)}
        return {"cross_entropy": cross_entropy(outputs, labels, scaled), **more}, metrics, carry

    return loss


def coefficients(kind: Kind, logistic: bool = False) -> dict[str, float]:
    """Return the coefficient of each term of a task's loss.

    >>> coefficients("questions")
    {'start': 0.5, 'end': 0.5}
    """
    if kind == "questions":
        return {"start": 0.5, "end": 0.5}
    if kind == "sentences":
        return {"sentences": 1.0}
    return {"squared_error" if kind == "regression" and not logistic else "cross_entropy": 1.0}
