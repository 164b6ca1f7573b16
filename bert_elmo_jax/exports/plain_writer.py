"""One step of a model that writes as plain functions, with the memory of the pieces before as inputs and outputs."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bert_elmo_jax.exports.plain_graph import IDS, MASK, Input, PlainForward, check_numbers
from bert_elmo_jax.families.piece_encoder import PieceEncoder
from bert_elmo_jax.generation.options import count_pieces

EMPTY = 1  # slots of the first memory, which the mask hides: no array has a size of zero


def plain_writer(model: Any) -> dict[str, PlainForward]:
    """Return the functions of a model that writes, by the names of their files.

    A model that continues a text has `model`: `(ids, mask, memory) -> (logits, memory)`, where the mask also covers the
    pieces in the memory. One that translates has `decoder_model`, and `encoder_model`, which returns the first memory.

    >>> from bert_elmo_jax import load
    >>> step = plain_writer(load("tests/goldens/gpt2_tiny"))["model"]
    >>> step.inputs[:3], step.outputs[:2]
    (('input_ids', 'attention_mask', 'past_key_values.0.key'), ('logits', 'present.0.key'))
    """
    check_numbers(model)
    if not isinstance(model, PieceEncoder):
        name = f"{getattr(model, 'source', 'this model')} ({type(model).__name__})"
        raise ValueError(f"{name} cannot be exported with generate, only models that read and write pieces")
    decoder: Any = model.find_decoder()  # raises for a model that does not write
    prepare: Callable[[Any], Any] = decoder.prepare or (lambda params: params)
    params, limit = dict(model.params), decoder.most
    batch, length, slots = jax.export.symbolic_shape("batch, length, past")
    ids = jax.ShapeDtypeStruct((batch, length), jnp.int32)
    memory = jax.eval_shape(
        lambda params, ids, mask: decoder.start(prepare(params), ids, mask, slots), params, ids, ids
    )
    leaves, tree = jax.tree.flatten_with_path(memory)
    names = [_name([str(getattr(key, "key", getattr(key, "name", key))) for key in path]) for path, _ in leaves]
    growing = [
        list(map(str, leaf.shape)).index("past") if "past" in map(str, leaf.shape) else None for _, leaf in leaves
    ]
    # A source has its own length.
    sizes = [", ".join(map(str, leaf.shape)).replace("length", "source") for _, leaf in leaves]

    def step(params: Any, ids: Any, mask: Any, *arrays: Any) -> tuple[Any, ...]:
        new, past = ids.shape[1], mask.shape[1] - ids.shape[1]
        arrays = tuple(x if axis is None else _add_slots(x, new, axis) for x, axis in zip(arrays, growing))
        positions = jnp.maximum(jnp.cumsum(mask, axis=1) - 1, 0)[:, past:]
        logits, after = decoder.step(prepare(params), jax.tree.unflatten(tree, arrays), ids, positions, past, mask > 0)
        changed = [x for name, x in zip(names, jax.tree.leaves(after)) if not name.startswith("source")]
        return logits, *changed

    vocab_size = count_pieces(model, decoder)
    read = {IDS: Input("batch, length", vocab_size), MASK: Input("batch, past + length")}
    for name, size, (_, leaf) in zip(names, sizes, leaves):
        read[name.replace("present", "past_key_values")] = Input(size, dtype=np.dtype(leaf.dtype))
    outputs = ("logits", *(name for name in names if not name.startswith("source")))
    graphs = {"model": PlainForward("write", step, read, outputs, limit, params)}
    if decoder.first is None:
        return graphs

    def begin(params: Any, ids: Any, mask: Any) -> tuple[Any, ...]:
        return tuple(jax.tree.leaves(decoder.start(prepare(params), ids, mask, EMPTY)))

    source = {IDS: Input("batch, length", model.config.vocab_size), MASK: Input("batch, length")}
    first = PlainForward("write", begin, source, tuple(names), limit, params)
    return {"encoder_model": first, "decoder_model": graphs["model"]}


def _name(keys: list[str]) -> str:
    """Return the name of a part of the memory; keys and values have the names of transformers."""
    keys = [key.removeprefix("layer_") for key in keys if key != "own"]
    return ".".join(keys) if keys[0] == "source" else ".".join(["present", *keys])


def _add_slots(array: Any, count: Any, axis: int) -> Any:
    shape = (*array.shape[:axis], count, *array.shape[axis + 1 :])
    return jnp.concatenate([array, jnp.zeros(shape, array.dtype)], axis=axis)
