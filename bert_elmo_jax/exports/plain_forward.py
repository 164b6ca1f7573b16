"""A loaded model as a plain function of ids and mask, one row per text, with named outputs."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from bert_elmo_jax.exports.plain_graph import IDS, MASK, TYPES, VECTORS, Input, PlainForward, check_numbers
from bert_elmo_jax.exports.plain_words import plain_words
from bert_elmo_jax.families.piece_encoder import PieceEncoder
from bert_elmo_jax.families.sentences import find_head, most_pieces, read_row
from bert_elmo_jax.heads.sentence_head import NAME, SentenceHead, sentence_vectors
from bert_elmo_jax.heads.task_head import task_outputs
from bert_elmo_jax.inference.task_model import TaskModel

ROWS = "batch, length"
EXPORTED = (
    "encoders and sentence models of pieces, classifiers, regressions, rerankers, taggers and readers, ELMo with "
    "characters, tagging networks, and models that write"
)


def plain_forward(model: Any) -> PlainForward:
    """Return the function of a model that `load` returned; raise ValueError if it cannot be exported.

    >>> from bert_elmo_jax import load
    >>> plain = plain_forward(load("tests/goldens/bert_tiny"))
    >>> plain.inputs, plain.outputs
    (('input_ids', 'attention_mask', 'token_type_ids'), ('last_hidden_state',))
    """
    check_numbers(model)
    words = plain_words(model)
    if words is not None:
        return words
    if not isinstance(model, PieceEncoder) or not model.family.inputs.takes_heads:
        source = getattr(model, "source", "this model")
        raise ValueError(f"{source} ({type(model).__name__}) cannot be exported, only {EXPORTED}")
    c, params = model.config, dict(model.params)
    read = {IDS: Input(ROWS, c.vocab_size), MASK: Input(ROWS)}
    if getattr(c, "type_vocab_size", 1) > 1:
        read[TYPES] = Input(ROWS, c.type_vocab_size)
    if isinstance(model, TaskModel) and model.task.kind != "sentences":
        kind, function, outputs = _with_task(model)
        return PlainForward(kind, function, read, outputs, model.task.max_length, params)
    if "sentence_head" in vars(model):
        head = find_head(model)
        function, outputs = _with_sentences(model, head), (VECTORS, "sentence_embedding")
        return PlainForward("sentences", function, read, outputs, most_pieces(model, head), params)
    return PlainForward("vectors", _with_sentences(model, None), read, (VECTORS,), c.max_positions, params)


def _with_sentences(model: Any, head: SentenceHead | None) -> Callable[..., tuple[Any, ...]]:
    """Return the function of an encoder: the last layer, and with a head the vectors of the texts."""
    module = model.family.build(model.config, pooler=False)
    skip = 0
    if head is not None and head.prompt and not head.include_prompt:
        skip = len(read_row(model, head, head.prompt, 0, "truncate")) - len(model.tokenizer.frame.after)

    def function(params: Any, ids: Any, mask: Any, types: Any = None) -> tuple[Any, ...]:
        last = module.apply({"params": params["encoder"]}, ids, types, None, mask).last
        if head is None:
            return (last,)
        places = jnp.broadcast_to(jnp.arange(ids.shape[1], dtype=jnp.int32)[None], ids.shape)
        vectors = sentence_vectors(head, params.get(NAME, {}), last, mask, places, 1, skip)[:, 0]
        return last, vectors[:, : head.default_width(model.config.hidden_size)]

    return function


def _with_task(model: TaskModel) -> tuple[str, Callable[..., tuple[Any, ...]], tuple[str, ...]]:
    """Return the kind, the function and the outputs of a model with a task."""
    kinds = {"classification": "classify", "regression": "regress", "tags": "tag", "questions": "read"}
    if model.task.kind not in kinds or model.head.both_orders:
        raise ValueError(
            f"{model.source}: a model of the task {model.task.name} reads several rows for an example and cannot be "
            f"exported, only {EXPORTED}"
        )
    kind = kinds[model.task.kind]
    module = model.family.build(model.config, pooler=model.head.pooled)

    def function(params: Any, ids: Any, mask: Any, types: Any = None) -> tuple[Any, ...]:
        batch = {"tokens": ids, "types": jnp.zeros_like(ids) if types is None else types, "segments": mask}
        scores = task_outputs(module, model.head, params, batch)
        if kind == "read":
            return (*scores, jnp.stack(scores, axis=-1))
        return (scores[:, None] if scores.ndim == 1 else scores,)

    outputs = ("start_logits", "end_logits", "logits") if kind == "read" else ("logits",)
    return kind, function, outputs
