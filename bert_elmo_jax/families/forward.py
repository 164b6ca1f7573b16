"""A model fed with pieces and its pretraining heads, as one pure function of ids."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, no_type_check

import jax
import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Float, Int

from bert_elmo_jax.encoders.encoded import show_shapes
from bert_elmo_jax.families.family import PIECE_HEADS, TASK_HEADS, Family, Output
from bert_elmo_jax.families.piece_embeddings import word_table
from bert_elmo_jax.nn import Dense
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.matrix_product import turn_kernels


@no_type_check  # tree operations put other values than arrays of these shapes into it
@struct.dataclass(repr=False)
class ForwardOutput(Output):
    """Hidden states and logits of a batch of ids; fields without a head in the weights are None.

    `logits` come from the head of a task if the weights have one: [B, labels], for the heads `tag` and `span` [B, T,
    labels] (two, start and end, of `span`). Else they come from the pretraining head that reads pieces: from `mlm` or
    from another one.
    """

    logits: Float[Array, "B T V"] | Float[Array, "B T"] | None = None  # "B T" of task heads is [B, labels]
    nsp_logits: Float[Array, "B 2"] | None = None
    head: str | None = struct.field(pytree_node=False, default=None)  # whose `logits` they are

    @property
    def mlm_logits(self) -> Float[Array, "B T V"] | None:
        """The logits of the masked-language-model head."""
        return self.logits if self.head == "mlm" else None

    def __repr__(self) -> str:
        shown = {name: getattr(self, name) for name in ("last", "layers", "attentions", "pooled")}
        shown |= {f"{self.head}_logits": self.logits, "nsp_logits": self.nsp_logits}
        return show_shapes("ForwardOutput", len(self.last), **shown)


class Request(NamedTuple):
    """The outputs to compute; `head` is the head of `logits`."""

    layers: tuple[int, ...] = ()
    attentions: bool = False
    head: str | None = None
    nsp: bool = False
    pooled: bool = False


def choose_head(family: Family, params: Mapping[str, Any]) -> str | None:
    """Return the head that gives `logits`: a task's, or else `mlm`, or else the family's first that reads pieces."""
    if task_heads := [name for name in TASK_HEADS if name in params]:
        return task_heads[0]
    names = [name for name, head in family.heads.items() if (name in params or head.tied) and not head.pooled]
    return "mlm" if "mlm" in names else next(iter(names), None)


def run(
    family: Family,
    config: Any,
    params: Mapping[str, Any],
    tokens: Int[AnyArray, "B T"],
    types: Int[AnyArray, "B T"] | None,
    positions: Int[AnyArray, "B T"] | None,
    segments: Int[AnyArray, "B T"] | None,
    firsts: Int[AnyArray, "B S"] | None = None,
    *,
    request: Request,
) -> ForwardOutput:
    """Return the requested outputs; `firsts` are the places of the pooled vectors, by default the first."""
    logits: Any = None
    nsp: Any = None
    task_head = request.head if request.head in TASK_HEADS else None
    reads_pooled = task_head is not None and family.task_head(task_head).pooled
    every = reads_pooled and task_head in PIECE_HEADS  # each piece goes through the pooler
    pooler = ((request.pooled or request.nsp) and "pooler" in params["encoder"]) or reads_pooled
    places: dict[str, Any] = {} if firsts is None or not pooler else {"nsp_positions": firsts}
    if every:
        places = {"pool_pieces": True}
    output: Any = family.build(config, pooler=pooler).apply(
        {"params": params["encoder"]}, tokens, types, positions, segments,
        layers=request.layers or None, attentions=request.attentions, **places,
    )  # fmt: skip
    if task_head is not None:
        logits = _task_logits(params[task_head], output.pooled if reads_pooled else output.last)
        output = output.replace(pooled=None) if every else output
    elif request.head is not None:
        words = word_table(params["encoder"]["embeddings"])
        logits = family.head(request.head, config).apply({"params": params.get(request.head, {})}, output.last, words)
    if request.nsp:
        nsp = family.head("nsp", config).apply({"params": params["nsp"]}, output.pooled)
    return ForwardOutput(output.last, output.layers, output.attentions, output.pooled, logits, nsp, request.head)


def _task_logits(layer: Mapping[str, Any], x: Float[Array, "*B D"]) -> Float[Array, "*B N"]:
    """Return the outputs of a task head without dropout: its dense layer, in float32."""
    dense = Dense(layer["kernel"].shape[1], use_bias="bias" in layer)
    logits: Any = dense.apply({"params": layer}, x.astype(jnp.float32))
    return logits


def run_turned(family: Family, config: Any, params: Mapping[str, Any], *inputs: Any, request: Request) -> ForwardOutput:
    """Return the outputs of `run` for parameters whose encoder has its kernels transposed."""
    return run(family, config, {**params, "encoder": turn_kernels(params["encoder"])}, *inputs, request=request)


@functools.lru_cache(maxsize=16)
def compile_run(family: Family, config: Any, *, turned: bool = False) -> Callable[..., ForwardOutput]:
    """Return `run` or `run_turned`, compiled once for each shape and request, for all encoders of a configuration."""
    return jax.jit(functools.partial(run_turned if turned else run, family, config), static_argnames="request")
