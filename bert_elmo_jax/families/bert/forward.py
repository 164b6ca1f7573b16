"""The model and its heads as one pure function of ids, which `BertEncoder` compiles."""

from collections.abc import Mapping
from typing import Any, NamedTuple, no_type_check

from flax import struct
from jaxtyping import Array, Float, Int

from bert_elmo_jax.families.bert.mlm import MaskedLM
from bert_elmo_jax.families.bert.model import Bert, BertConfig, Output
from bert_elmo_jax.families.bert.nsp import NextSentence
from bert_elmo_jax.nn.any_array import AnyArray


@no_type_check  # JAX rebuilds it around whatever a tree operation returns, not only around arrays of these shapes
@struct.dataclass
class ForwardOutput:
    """Everything the model says about a batch of ids; what the weights have no head for is None."""

    last: Float[Array, "B T D"]
    layers: Float[Array, "L+1 B T D"] | None = None
    attentions: Float[Array, "L B A T T"] | None = None
    pooled: Float[Array, "B D"] | None = None
    mlm_logits: Float[Array, "B T V"] | None = None
    nsp_logits: Float[Array, "B 2"] | None = None


class Wanted(NamedTuple):
    """Which outputs to compute; what is not wanted costs nothing."""

    layers: tuple[int, ...] = ()
    attentions: bool = False
    mlm: bool = False
    nsp: bool = False


def run(
    config: BertConfig,
    params: Mapping[str, Any],
    tokens: Int[AnyArray, "B T"],
    types: Int[AnyArray, "B T"] | None,
    positions: Int[AnyArray, "B T"] | None,
    segments: Int[AnyArray, "B T"] | None,
    *,
    wanted: Wanted,
) -> ForwardOutput:
    """The model and the heads that are wanted, as one pure function."""
    output: Output = Bert(config, add_pooler="pooler" in params["encoder"]).apply(  # type: ignore[assignment]
        {"params": params["encoder"]},
        tokens,
        types,
        positions,
        segments,
        layers=wanted.layers or None,
        attentions=wanted.attentions,
    )
    mlm: Any = None
    nsp: Any = None
    if wanted.mlm:
        words = params["encoder"]["embeddings"]["word"]
        mlm = MaskedLM(config).apply({"params": params["mlm"]}, output.last, words)
    if wanted.nsp:
        nsp = NextSentence(config).apply({"params": params["nsp"]}, output.pooled)
    return ForwardOutput(output.last, output.layers, output.attentions, output.pooled, mlm, nsp)
