"""A model fed with pieces and its pretraining heads, as one pure function of ids."""

from collections.abc import Mapping
from typing import Any, NamedTuple, no_type_check

from flax import struct
from jaxtyping import Array, Float, Int

from bert_elmo_jax.encoders.encoded import show_shapes
from bert_elmo_jax.families.family import Family, Output
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.matrix_product import turn_kernels


@no_type_check  # tree operations put other values than arrays of these shapes into it
@struct.dataclass(repr=False)
class ForwardOutput(Output):
    """Hidden states and logits of a batch of ids; fields without a head in the weights are None."""

    mlm_logits: Float[Array, "B T V"] | None = None
    nsp_logits: Float[Array, "B 2"] | None = None

    def __repr__(self) -> str:
        return show_shapes("ForwardOutput", len(self.last), **vars(self))


class Wanted(NamedTuple):
    """The outputs to compute."""

    layers: tuple[int, ...] = ()
    attentions: bool = False
    mlm: bool = False
    nsp: bool = False
    pooled: bool = False


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
    wanted: Wanted,
) -> ForwardOutput:
    """Return the outputs that are wanted; `firsts` are the places of the pooled vectors, by default the first."""
    mlm: Any = None
    nsp: Any = None
    pooler = (wanted.pooled or wanted.nsp) and "pooler" in params["encoder"]
    places: dict[str, Any] = {} if firsts is None or not pooler else {"nsp_positions": firsts}
    output: Any = family.build(config, pooler=pooler).apply(
        {"params": params["encoder"]}, tokens, types, positions, segments,
        layers=wanted.layers or None, attentions=wanted.attentions, **places,
    )  # fmt: skip
    if wanted.mlm:
        words = params["encoder"]["embeddings"]["word"]
        mlm = family.head("mlm", config).apply({"params": params["mlm"]}, output.last, words)
    if wanted.nsp:
        nsp = family.head("nsp", config).apply({"params": params["nsp"]}, output.pooled)
    return ForwardOutput(output.last, output.layers, output.attentions, output.pooled, mlm, nsp)


def run_turned(family: Family, config: Any, params: Mapping[str, Any], *inputs: Any, wanted: Wanted) -> ForwardOutput:
    """Return the outputs of `run` for parameters whose encoder has its kernels transposed."""
    return run(family, config, {**params, "encoder": turn_kernels(params["encoder"])}, *inputs, wanted=wanted)
