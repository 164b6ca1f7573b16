"""A loaded model as a plain function of ids and mask, one row per text, with named outputs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bert_elmo_jax.families.piece_encoder import PieceEncoder
from bert_elmo_jax.families.sentences import find_head, most_pieces
from bert_elmo_jax.heads.sentence_head import NAME, SentenceHead, sentence_vectors
from bert_elmo_jax.heads.task_head import task_outputs
from bert_elmo_jax.inference.task_model import TaskModel
from bert_elmo_jax.nn.int8_kernels import is_int8

IDS, MASK, TYPES = "input_ids", "attention_mask", "token_type_ids"
VECTORS = "last_hidden_state"
ROWS = "batch, length"
EXPORTED = (
    "encoders and sentence models of pieces, classifiers, regressions, rerankers, taggers and readers, ELMo with "
    "characters, tagging networks, and models that write"
)


class Input(NamedTuple):
    """An input: its sizes, which may be symbols, and its type; ids are below `high`, a mask has the `high` 2."""

    sizes: str
    high: int = 2
    dtype: Any = np.int32


@dataclass(frozen=True)
class PlainForward:
    """The function `(params, ids, mask[, types]) -> arrays` of a model, and the kind of its outputs.

    `kind` is vectors, sentences, classify, regress, tag, read, words, network or write; `max_length` is the largest
    number of pieces of a row, None if there is no limit.
    """

    kind: str
    function: Callable[..., tuple[Any, ...]]
    read: Mapping[str, Input]
    outputs: tuple[str, ...]
    max_length: int | None
    params: Any

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return tuple(self.read)

    def symbolic_inputs(self) -> dict[str, jax.ShapeDtypeStruct]:
        """Return the inputs with symbolic sizes."""
        limit = [] if self.max_length is None else [f"length <= {self.max_length}"]
        scope = jax.export.SymbolicScope(limit)
        return {
            name: jax.ShapeDtypeStruct(jax.export.symbolic_shape(x.sizes, scope=scope), x.dtype)
            for name, x in self.read.items()
        }

    def example(self, rows: int, length: int, seed: int = 0) -> dict[str, np.ndarray]:
        """Return random inputs of rows of different lengths."""
        draw, lengths = np.random.default_rng(seed), np.maximum(length - np.arange(rows) % 3, 1)
        arrays: dict[str, np.ndarray] = {}
        for name, x in self.read.items():
            sizes = {"batch": rows, "length": length, "words": length, "source": length, "past": max(length - 1, 1)}
            shape = tuple(
                sum(sizes.get(part.strip()) or int(part) for part in size.split("+")) for size in x.sizes.split(",")
            )
            if x.dtype != np.int32:
                arrays[name] = draw.normal(size=shape).astype(np.float32)
                arrays[name] = arrays[name] > -1 if x.dtype == np.bool_ else arrays[name].astype(x.dtype)
                continue
            masks = np.arange(shape[1])[None, :] < lengths[:, None] + shape[1] - length
            real = masks.reshape(*shape[:2], *(1,) * (len(shape) - 2))
            ids = np.ones(shape, np.int64) if x.high == 2 else draw.integers(1, x.high, shape)
            arrays[name] = ids * (0 if name == TYPES else 1) * real
        return arrays


def plain_forward(model: Any) -> PlainForward:
    """Return the function of a model that `load` returned; raise ValueError if it cannot be exported.

    >>> from bert_elmo_jax import load
    >>> plain = plain_forward(load("tests/goldens/bert_tiny"))
    >>> plain.inputs, plain.outputs
    (('input_ids', 'attention_mask', 'token_type_ids'), ('last_hidden_state',))
    """
    from bert_elmo_jax.exports.plain_words import plain_words

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


def check_numbers(model: Any) -> None:
    """Raise ValueError if a model computes in another type than float32."""
    parts: list[Any] = [model, getattr(model, "encoder", None)]
    for part in parts:
        params = getattr(part, "params", None)
        if params is None:
            continue
        if is_int8(params):
            raise ValueError(f"{part.source} is an int8 model: export the model that it was made from, with --int8")
        dtype = getattr(part.config, "dtype", "float32")
        if dtype != "float32":
            raise ValueError(f"{part.source} computes in {dtype}: load it without dtype= to export it")


def _with_sentences(model: Any, head: SentenceHead | None) -> Callable[..., tuple[Any, ...]]:
    """Return the function of an encoder: the last layer, and with a head the vectors of the texts."""
    module = model.family.build(model.config, pooler=False)

    def function(params: Any, ids: Any, mask: Any, types: Any = None) -> tuple[Any, ...]:
        last = module.apply({"params": params["encoder"]}, ids, types, None, mask).last
        if head is None:
            return (last,)
        places = jnp.broadcast_to(jnp.arange(ids.shape[1], dtype=jnp.int32)[None], ids.shape)
        return last, sentence_vectors(head, params.get(NAME, {}), last, mask, places, 1)[:, 0]

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
