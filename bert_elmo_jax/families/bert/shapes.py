"""The shapes of BERT's parameters, by their path in the tree."""

from collections.abc import Mapping

from bert_elmo_jax.families.bert.config import BertConfig

HEADS = ("mlm", "nsp", "classify", "choice", "tag", "span")


def bert_shapes(config: BertConfig, outputs: Mapping[str, int] | None = None) -> dict[str, tuple[int, ...]]:
    """Return the shape of every parameter that a BERT of this configuration may have.

    `outputs` are the sizes of `classify` and `tag`; without it these two are left out.
    """
    from bert_elmo_jax.families.bert.family import FAMILY
    from bert_elmo_jax.families.init_params import param_shapes

    outputs = dict(outputs or {})
    heads = [head for head in HEADS if head not in ("classify", "tag") or head in outputs]
    return param_shapes(FAMILY, config, heads, outputs=outputs)
