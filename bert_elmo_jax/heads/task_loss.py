"""The tasks a BERT is fine-tuned for: what it says of a batch, and the loss of it, for `train.make_step`."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.init_params import init_params
from bert_elmo_jax.families.bert.model import Bert
from bert_elmo_jax.heads.choice import Choice
from bert_elmo_jax.heads.classify import Classify
from bert_elmo_jax.heads.features import Features, Reader, mean_over_pieces
from bert_elmo_jax.heads.span import Span
from bert_elmo_jax.heads.tag import Tag
from bert_elmo_jax.losses import accuracy, cross_entropy

Kind = Literal["classification", "regression", "tags", "choice", "questions"]
Batch = Mapping[str, Any]
Sums = dict[str, tuple[Any, Any]]
Loss = Callable[[Any, Batch, PRNGKeyArray | None, Any], tuple[Sums, Sums, Any]]

# The head of each kind, as it is called in the parameter tree.
HEAD_OF: dict[Kind, str] = {
    "classification": "classify",
    "regression": "classify",
    "tags": "tag",
    "choice": "choice",
    "questions": "span",
}
NOWHERE = -1e9  # the score of what is no choice, or no piece


@dataclass(frozen=True)
class TaskHead:
    """What stands on the encoder: the head of a kind, on the last layer (or its pooled vector) or on `features`.

    >>> TaskHead("tags", 9).name, TaskHead("regression").pooled
    ('tag', True)
    """

    kind: Kind
    num_labels: int = 1
    features: Features | None = None

    @property
    def name(self) -> str:
        """The head's name in the parameter tree."""
        return HEAD_OF[self.kind]

    @property
    def pooled(self) -> bool:
        """Whether it reads the pooled vector."""
        return self.features is None and self.kind in ("classification", "regression", "choice")


def init_task_params(config: BertConfig, head: TaskHead, key: PRNGKeyArray) -> dict[str, Any]:
    """Fresh parameters of an encoder, of the reader of its features where there is one, and of the head.

    >>> config = BertConfig(vocab_size=50, hidden_size=8, num_layers=2, num_heads=2, feed_forward_size=16)
    >>> params = init_task_params(config, TaskHead("tags", 3, Features((1, 2))), jax.random.key(0))
    >>> sorted(params), params["tag"]["kernel"].shape
    (['encoder', 'tag'], (16, 3))
    """
    if head.features is None:
        return init_params(config, key, (head.name,), head.num_labels, add_pooler=head.pooled)
    width = head.features.width(config.hidden_size, config.num_layers)
    params = init_params(config, key, (), add_pooler=False)
    # The head is drawn for an encoder as wide as the features; nothing else of a configuration tells in it.
    wide = dataclasses.replace(config, hidden_size=width, num_heads=1)
    params[head.name] = init_params(wide, key, (head.name,), head.num_labels, add_pooler=False)[head.name]
    layers = jnp.zeros((len(head.features.layers), 1, 1, config.hidden_size))
    reader = Reader(head.features).init(jax.random.fold_in(key, 1), layers, jnp.ones((1, 1), bool))
    return params | ({"reader": reader["params"]} if reader else {})


def task_outputs(
    config: BertConfig, head: TaskHead, params: Any, batch: Batch, key: PRNGKeyArray | None = None, frozen: bool = False
) -> Any:
    """The scores of a batch, float32: [B, labels], [B] of a regression, [B, T, labels] of tags, [B, C] of choices.

    Of questions two of [B, T], for starts and ends. Without a key there is no dropout; a `frozen` encoder has none in
    any case, and gets no gradients (but for its pooler).

    >>> config = BertConfig(vocab_size=50, hidden_size=8, num_layers=1, num_heads=2, feed_forward_size=16)
    >>> head, ones = TaskHead("choice"), jnp.ones((2, 4, 5), jnp.int32)
    >>> params = init_task_params(config, head, jax.random.key(0))
    >>> task_outputs(config, head, params, {"tokens": ones, "types": ones, "segments": ones}).shape
    (2, 4)
    """
    tokens, types, segments = (jnp.asarray(batch[name]) for name in ("tokens", "types", "segments"))
    choices = tokens.shape[1] if head.kind == "choice" else None
    present = segments.any(axis=-1)
    if choices is not None:
        tokens, types, segments = (x.reshape(-1, x.shape[-1]) for x in (tokens, types, segments))
    encoder = params["encoder"]
    if frozen:
        encoder = {name: x if name == "pooler" else jax.lax.stop_gradient(x) for name, x in encoder.items()}
    keys = (None, None, None) if key is None else tuple(jax.random.split(key, 3))
    # From left to right the first piece has seen nothing of its row: the last one stands for the whole.
    at_end = head.pooled and config.attention == "causal"
    ends = jnp.maximum((segments > 0).sum(axis=1) - 1, 0)[:, None]
    pooled_at: dict[str, Any] = {"nsp_positions": ends} if at_end else {}
    output: Any = Bert(config, add_pooler=head.pooled).apply(
        {"params": encoder}, tokens, types, None, segments, layers=head.features and head.features.layers,
        **pooled_at, **_with_dropout(None if frozen else keys[0]),
    )  # fmt: skip
    x: Any = (output.pooled[:, 0] if at_end else output.pooled) if head.pooled else output.last
    if head.features is not None:
        real = segments > 0
        reader = {"params": params.get("reader", {})}
        x = Reader(head.features).apply(reader, output.layers, real, **_with_dropout(keys[1]))
        if head.kind not in ("tags", "questions"):
            x = mean_over_pieces(x, real)
    own = {"params": params[head.name]}
    if head.kind == "questions":
        # Padding is no place for an answer, whatever the width that a row happens to have.
        sides: Any = Span(config).apply(own, x)
        return tuple(jnp.where(segments > 0, side, NOWHERE) for side in sides)
    if head.kind == "tags":
        return Tag(config, head.num_labels).apply(own, x, **_with_dropout(keys[2]))
    if choices is not None:
        scores: Any = Choice(config).apply(own, x.reshape(-1, choices, x.shape[-1]), **_with_dropout(keys[2]))
        return jnp.where(present, scores, NOWHERE)
    logits: Any = Classify(config, head.num_labels).apply(own, x, **_with_dropout(keys[2]))
    return logits[:, 0] if head.kind == "regression" else logits


def task_loss(
    config: BertConfig, head: TaskHead, class_weights: Sequence[float] | None = None, frozen: bool = False
) -> Loss:
    """`loss(params, batch, key, carry)` of a task's batches; see `coefficients` for its terms.

    Cross entropy, each example weighing as much as its label's `class_weights`; of a regression the squared error;
    of questions the cross entropies of start and end.

    >>> config = BertConfig(vocab_size=50, hidden_size=8, num_layers=1, num_heads=2, feed_forward_size=16)
    >>> head, ones = TaskHead("classification", 2), jnp.ones((3, 5), jnp.int32)
    >>> batch = {"tokens": ones, "types": ones, "segments": ones, "labels": ones[:, 0], "weights": ones[:, 0]}
    >>> params = init_task_params(config, head, jax.random.key(0))
    >>> terms, _, _ = jax.jit(task_loss(config, head))(params, batch, None, None)
    >>> {name: float(weight) for name, (_, weight) in terms.items()}
    {'cross_entropy': 3.0}
    """
    scale = None if class_weights is None else np.asarray(class_weights, np.float32)
    if scale is not None and len(scale) != head.num_labels:
        raise ValueError(f"{len(scale)} class weights were given for {head.num_labels} labels; give one for each")

    def loss(params: Any, batch: Batch, key: PRNGKeyArray | None, carry: Any) -> tuple[Sums, Sums, Any]:
        batch = jax.tree.map(jnp.asarray, dict(batch))
        outputs = task_outputs(config, head, params, batch, key, frozen)
        weights = batch["weights"]
        if head.kind == "questions":
            sides = zip(("start", "end"), outputs, (batch["starts"], batch["ends"]))
            return {name: cross_entropy(scores, places, weights) for name, scores, places in sides}, {}, carry
        if head.kind == "regression":
            error = jnp.where(weights > 0, jnp.square(outputs - batch["labels"]), 0.0)
            return {"squared_error": ((weights * error).sum(), weights.sum())}, {}, carry
        labels = batch["labels"]
        scaled = weights if scale is None else weights * jnp.asarray(scale)[labels]
        metrics = {"accuracy": accuracy(outputs, labels, weights)}
        return {"cross_entropy": cross_entropy(outputs, labels, scaled)}, metrics, carry

    return loss


def coefficients(kind: Kind) -> dict[str, float]:
    """How much each term of a task's loss counts.

    >>> coefficients("questions")
    {'start': 0.5, 'end': 0.5}
    """
    if kind == "questions":
        return {"start": 0.5, "end": 0.5}
    return {"squared_error" if kind == "regression" else "cross_entropy": 1.0}


def _with_dropout(key: PRNGKeyArray | None) -> dict[str, Any]:
    return {"deterministic": key is None, "rngs": {} if key is None else {"dropout": key}}
