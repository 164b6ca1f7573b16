"""BERT as it is pretrained: masked words, and whether the second segment follows the first."""

from collections.abc import Mapping
from typing import Any, no_type_check

from flax import struct
from jaxtyping import Array, Float32, Int, PRNGKeyArray

from bert_elmo_jax.families.bert.mlm import MaskedLM
from bert_elmo_jax.families.bert.model import Bert, BertConfig, Output
from bert_elmo_jax.families.bert.nsp import NextSentence
from bert_elmo_jax.nn.any_array import AnyArray


@no_type_check  # JAX rebuilds it around whatever a tree operation returns, not only around arrays of these shapes
@struct.dataclass
class PretrainingLogits:
    """The two predictions: a word for each position asked for, next or random (1) for each pair (None: not asked)."""

    mlm: Float32[Array, "B K V"]
    nsp: Float32[Array, "B S 2"] | None


def pretraining_logits(
    config: BertConfig,
    params: Mapping[str, Any],
    tokens: Int[AnyArray, "B T"],
    types: Int[AnyArray, "B T"] | None = None,
    positions: Int[AnyArray, "B T"] | None = None,
    segments: Int[AnyArray, "B T"] | None = None,
    *,
    mlm_positions: Int[AnyArray, "B K"],
    nsp_positions: Int[AnyArray, "B S"] | None,
    dropout_key: PRNGKeyArray | None = None,
) -> PretrainingLogits:
    """Runs the encoder and both heads on a BERT batch; with a key, with dropout.

    With `nsp_positions=None` there is only the first of the two, and neither pooler nor second head are needed.

    >>> import jax, jax.numpy as jnp
    >>> from bert_elmo_jax.families.bert.init_params import init_params
    >>> from bert_elmo_jax.families.bert.pretraining_logits import pretraining_logits
    >>> from bert_elmo_jax.families.bert.config import BertConfig
    >>> config = BertConfig(vocab_size=50, hidden_size=8, num_layers=1, num_heads=2, feed_forward_size=16)
    >>> params = init_params(config, jax.random.key(0))
    >>> tokens = jnp.array([[2, 40, 4, 3, 41, 3]])
    >>> def mlm_loss(params, positions=jnp.array([[1, 2]]), targets=jnp.array([[40, 17]]), weights=jnp.ones((1, 2))):
    ...     logits = pretraining_logits(config, params, tokens, mlm_positions=positions, nsp_positions=jnp.array([[0]]))
    ...     chosen = jnp.take_along_axis(jax.nn.log_softmax(logits.mlm), targets[..., None], axis=-1)[..., 0]
    ...     return -(weights * chosen).sum() / weights.sum()
    >>> jax.tree.map(jnp.shape, jax.jit(jax.grad(mlm_loss))(params)["mlm"]["dense"])
    {'bias': (8,), 'kernel': (8, 8)}
    """
    output: Output = Bert(config, add_pooler=nsp_positions is not None).apply(  # type: ignore[assignment]
        {"params": params["encoder"]},
        tokens,
        types,
        positions,
        segments,
        nsp_positions=nsp_positions,
        deterministic=dropout_key is None,
        rngs={} if dropout_key is None else {"dropout": dropout_key},
    )
    words = params["encoder"]["embeddings"]["word"]
    mlm: Array = MaskedLM(config).apply({"params": params["mlm"]}, output.last, words, mlm_positions)  # type: ignore[assignment]
    nsp: Any = None
    if nsp_positions is not None:
        nsp = NextSentence(config).apply({"params": params["nsp"]}, output.pooled)
    return PretrainingLogits(mlm, nsp)
